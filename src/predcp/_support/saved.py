"""Saved models: arrays and JSON in one safetensors file. Data, never code."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from predcp._version import __version__

_FORMAT = "predcp-model-1"


class SavedModelError(ValueError):
    """A file that is not an intact saved model; the message names it and the reason."""


@dataclass(frozen=True)
class SavedModel:
    """The content of a file: `kind` names the class it belongs to, `config` is plain JSON."""

    kind: str
    arrays: Mapping[str, np.ndarray]
    config: Mapping[str, Any]


def save_model(path: str | os.PathLike[str], model: SavedModel) -> None:
    """Write a model atomically: an older file of that name is replaced only by a complete one."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(values) for name, values in model.arrays.items()}
    for name, values in arrays.items():
        if values.dtype == object:
            raise TypeError(f"arrays[{name!r}] must hold numbers, not objects")
    try:
        config = json.dumps(dict(model.config), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"config must be plain JSON values: {error}") from error
    header = {
        "format": _FORMAT,
        "kind": model.kind,
        "predcp": __version__,
        "config": config,
        "checksum": _checksum(model.kind, config, arrays),
    }
    path = Path(path)
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        staging.write_bytes(save(arrays, metadata=header))
        staging.replace(path)
    finally:
        staging.unlink(missing_ok=True)


def load_model(path: str | os.PathLike[str], kind: str) -> SavedModel:
    """Read a model of that kind; a foreign, damaged or altered file is an error."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise SavedModelError(f"there is no saved model {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise SavedModelError(f"{path} is not a saved model of predcp: {error}") from error
    if header.get("format") != _FORMAT:
        raise SavedModelError(f"{path} was not written by predcp, or by a newer version of it")
    if header.get("kind") != kind:
        raise SavedModelError(f"{path} holds a {header.get('kind')!r}, expected a {kind!r}")
    config = header.get("config", "")
    if header.get("checksum") != _checksum(kind, config, arrays):
        raise SavedModelError(f"{path} was altered or damaged after it was saved")
    return SavedModel(kind, arrays, json.loads(config))


def _checksum(kind: str, config: str, arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(f"{kind}\n{config}\n".encode())
    for name, values in sorted(arrays.items()):
        digest.update(f"{name} {values.dtype.str} {values.shape}\n".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()
