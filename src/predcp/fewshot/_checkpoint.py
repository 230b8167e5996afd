"""Checkpoints: where training stands, as data, written whole or not at all."""

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from predcp._support.saved import SavedModel, SavedModelError, load_model, save_model
from predcp.fewshot._train import State

KIND = "fewshot-checkpoint"
History = dict[str, list[Any]]


class CheckpointError(ValueError):
    """A checkpoint that cannot be gone on from; the message says why and what to do."""


class Checkpoints:
    """The two latest checkpoints of one fit in a folder; the older is used if the newer is damaged.

    **Arguments**: `path` of the newer; `identity`, what the fit is, as plain values: a
    checkpoint of another fit is refused.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, Any]):
        self.path = Path(path)
        self.older = self.path.with_name(f"{self.path.name}.older")
        self.identity = json.loads(json.dumps(identity, sort_keys=True))

    def save(self, state: State, history: History, finished: bool) -> None:
        """Write the state; the checkpoint before it becomes the older one."""
        leaves = jax.tree.leaves(state)
        # An interrupt may have come between a look and the state it belongs to.
        known = sum(number <= int(state.iteration) for number in history["iteration"])
        arrays = {f"leaf{place:04d}": np.asarray(leaf) for place, leaf in enumerate(leaves)}
        arrays |= {
            f"history/{name}": np.asarray(values[:known]) for name, values in history.items()
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.is_file():
            self.path.replace(self.older)
        config = {"identity": self.identity, "finished": finished}
        save_model(self.path, SavedModel(KIND, arrays, config))

    def load(self, like: State) -> tuple[State, History, bool] | None:
        """The latest intact state of this fit, its history and whether it had finished; None if none.

        **Arguments**: `like`, a state of the same structure.
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

    def _read(self, path: Path, like: State) -> tuple[State, History, bool]:
        saved = load_model(path, KIND)
        if saved.config["identity"] != self.identity:
            different = [
                name
                for name in sorted({*self.identity, *saved.config["identity"]})
                if self.identity.get(name) != saved.config["identity"].get(name)
            ]
            raise CheckpointError(
                f"{path} belongs to another fit (it differs in {', '.join(different)}); use another "
                "folder, or delete it"
            )
        leaves, structure = jax.tree.flatten(like)
        read = []
        for place, old in enumerate(leaves):
            new = saved.arrays.get(f"leaf{place:04d}")
            if new is None or np.atleast_1d(old).shape != new.shape or new.dtype != old.dtype:
                raise CheckpointError(
                    f"{path} holds other arrays than this fit has (another precision, perhaps); "
                    "use another folder, or delete it"
                )
            # A file has no numbers without an axis.
            read.append(new.reshape(old.shape))
        history = {
            name.removeprefix("history/"): list(values)
            for name, values in saved.arrays.items()
            if name.startswith("history/")
        }
        return jax.tree.unflatten(structure, read), history, bool(saved.config["finished"])


def digest(*arrays: Any) -> str:
    """A short name for data: the hash of their bytes, shapes and types."""
    total = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray(array)
        total.update(f"{values.dtype.str} {values.shape}".encode())
        total.update(values.data)
    return total.hexdigest()[:16]
