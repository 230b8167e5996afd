"""Checkpoints: the state of a fit in a file, from which the fit resumes with bit-identical results."""

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from predcp._support.saved import SavedModel, SavedModelError, load_model, save_model

KIND = "checkpoint"
_STATE, _HISTORY = "state/", "history/"


class CheckpointError(ValueError):
    """A checkpoint from which this fit cannot resume; the message says why and what to do."""


class Checkpoint:
    """The two latest states of one fit; the older is used if the newer is damaged.

    **Arguments**
    - `path`: of the newer; the older is beside it.
    - `identity`: plain values that identify the fit; a checkpoint of another fit is refused.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, Any]):
        self.path = Path(path)
        self.older = self.path.with_name(f"{self.path.name}.older")
        self.identity = json.loads(json.dumps(identity, sort_keys=True))

    def save(
        self,
        state: PyTree,
        notes: Mapping[str, Any] | None = None,
        history: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a state; the previous checkpoint becomes the older one.

        **Arguments**
        - `state`: a pytree of arrays.
        - `notes`: plain values; `history`: arrays by name, of any length.
        """
        arrays = {
            f"{_STATE}{place:04d}": np.asarray(leaf)
            for place, leaf in enumerate(jax.tree.leaves(state))
        }
        for name, values in (history or {}).items():
            arrays[f"{_HISTORY}{name}"] = np.asarray(values)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.is_file():
            self.path.replace(self.older)
        config = {"identity": self.identity, "notes": dict(notes or {})}
        save_model(self.path, SavedModel(KIND, arrays, config))

    def load(self, like: PyTree) -> tuple[PyTree, dict[str, Any], dict[str, np.ndarray]] | None:
        """The latest intact state, its notes and its history; None if there is no checkpoint.

        **Arguments**: `like`, a state of the same structure, shapes and types.
        """
        problems = []
        for path in (self.path, self.older):
            if not path.is_file():
                continue
            try:
                return self._read(path, like)
            except SavedModelError as error:
                problems.append(str(error))
                warnings.warn(f"{error}; trying the checkpoint before it", stacklevel=2)
        if problems:
            raise CheckpointError(
                f"no checkpoint of {self.path} is intact ({'; '.join(problems)}); delete them to "
                "start this fit again"
            )
        return None

    def _read(
        self, path: Path, like: PyTree
    ) -> tuple[PyTree, dict[str, Any], dict[str, np.ndarray]]:
        saved = load_model(path, KIND)
        found = saved.config["identity"]
        if found != self.identity:
            names = sorted({*self.identity, *found})
            different = [name for name in names if self.identity.get(name) != found.get(name)]
            raise CheckpointError(
                f"{path} belongs to another fit (it differs in {', '.join(different)}); use another "
                "folder, or delete it"
            )
        leaves, structure = jax.tree.flatten(like)
        read = []
        for place, old in enumerate(leaves):
            new = saved.arrays.get(f"{_STATE}{place:04d}")
            if new is None or np.atleast_1d(old).shape != new.shape or new.dtype != old.dtype:
                raise CheckpointError(
                    f"{path} holds other arrays than this fit has (another precision, perhaps); "
                    "use another folder, or delete it"
                )
            # The file format has no arrays without axes.
            new = new.reshape(np.shape(old))
            # NumPy arrays keep their precision, whatever JAX's is.
            read.append(new if isinstance(old, np.ndarray) else jnp.asarray(new))
        state = jax.tree.unflatten(structure, read)
        return state, dict(saved.config["notes"]), history_of(saved)


def history_of(saved: SavedModel) -> dict[str, np.ndarray]:
    """The history in a checkpoint file that was read with `load_model`."""
    return {
        name.removeprefix(_HISTORY): values
        for name, values in saved.arrays.items()
        if name.startswith(_HISTORY)
    }


def digest(*arrays: Any) -> str:
    """A short name for data: the hash of their bytes, shapes and types."""
    total = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray(array)
        total.update(f"{values.dtype.str} {values.shape}".encode())
        total.update(values.data)
    return total.hexdigest()[:16]
