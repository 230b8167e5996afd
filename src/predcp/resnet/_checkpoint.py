"""Where a fit stands, in a file: a fit that goes on from it ends with the same bits."""

import hashlib
import os
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from predcp._support.saved import SavedModel, load_model, save_model

_KIND = "resnet-checkpoint"


class CheckpointError(ValueError):
    """A checkpoint of another fit; the message says what to do."""


def fingerprint(*parts: Any) -> str:
    """A hash of settings and data: the same fit, the same hash, on every machine."""
    digest = hashlib.sha256()
    for part in parts:
        for leaf in jax.tree.leaves(part, is_leaf=lambda value: is_dataclass(value)):
            if isinstance(leaf, (np.ndarray, jax.Array)):
                array = np.asarray(leaf)
                digest.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
            else:
                digest.update(_words(leaf).encode())
    return digest.hexdigest()


def write(path: str | os.PathLike[str], name: str, state: Any, notes: dict[str, Any]) -> None:
    """Save a pytree of arrays, in one step."""
    leaves = jax.tree.leaves(state)
    arrays = {f"{number:03d}": np.asarray(leaf) for number, leaf in enumerate(leaves)}
    save_model(path, SavedModel(_KIND, arrays, {"fit": name, "notes": notes}))


def read(path: str | os.PathLike[str], name: str, like: Any) -> tuple[Any, dict[str, Any]] | None:
    """What was saved, in the structure of `like`; None where there is no such file yet."""
    if not Path(path).exists():
        return None
    saved = load_model(path, _KIND)
    if saved.config["fit"] != name:
        raise CheckpointError(
            f"{path} is a checkpoint of another fit (other data, settings or seed); "
            "remove it, or give this fit another file"
        )
    leaves = [
        _like(saved.arrays[key], leaf)
        for key, leaf in zip(sorted(saved.arrays), jax.tree.leaves(like), strict=True)
    ]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), dict(saved.config["notes"])


def _like(array: np.ndarray, leaf: Any) -> Any:
    # A file has no arrays without axes; the structure knows which had none.
    shaped = array.reshape(()) if np.ndim(leaf) == 0 else array
    # NumPy arrays stay as precise as they were, whatever precision JAX is in.
    return shaped if isinstance(leaf, np.ndarray) else jnp.asarray(shaped)


def _words(value: Any) -> str:
    """A description without addresses in memory."""
    if is_dataclass(value) and not isinstance(value, type):
        inner = ", ".join(f"{f.name}={_words(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({inner})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_words, value))})"
    if isinstance(value, str | int | float | bool | None):
        return repr(value)
    leaves = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(value) if not callable(leaf)]
    return f"{getattr(value, '__qualname__', type(value).__qualname__)}{leaves}"
