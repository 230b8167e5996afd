"""What chains keep of their steps: in memory, or in a file where it is much more than the data."""

import mmap
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

# Bytes that are kept in memory whatever the size of the data.
_SMALL = 2**26
# Numbers that are read at once from what was kept.
_AT_ONCE = 2**22


class KeptSteps:
    """Steps of one group of chains, piece by piece.

    **Arguments**
    - `axis` of the steps in each leaf of a piece.
    - `steps` that are expected; `limit`, bytes of a leaf, beyond which it goes to a file.
    """

    def __init__(self, axis: int, steps: int, limit: int) -> None:
        self._axis, self._steps, self._limit = axis, steps, max(limit, _SMALL)
        self._structure: Any = None
        self._leaves: list[list[np.ndarray] | _File] = []

    def add(self, piece: PyTree) -> int:
        """Keep some steps, and return how many they are."""
        leaves, self._structure = jax.tree.flatten(piece)
        count = leaves[0].shape[self._axis]
        if not self._leaves:
            large = [leaf.nbytes // max(count, 1) * self._steps > self._limit for leaf in leaves]
            self._leaves = [_File(self._axis) if to_file else [] for to_file in large]
        for kept, leaf in zip(self._leaves, leaves):
            kept.append(leaf)
        return count

    def joined(self) -> PyTree:
        """All steps; those in a file as an array that is read when it is used."""
        return self._structure.unflatten(
            kept.joined() if isinstance(kept, _File) else np.concatenate(kept, self._axis)
            for kept in self._leaves
        )


class _File:
    """One leaf in a temporary file, steps first."""

    def __init__(self, axis: int) -> None:
        self._axis = axis
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the arrays over it)
        self._shape: tuple[int, ...] = ()
        self._kind: Any = None
        self._steps = 0

    def append(self, leaf: np.ndarray) -> None:
        moved = np.moveaxis(leaf, self._axis, 0)
        self._shape, self._kind = moved.shape[1:], moved.dtype
        self._steps += len(moved)
        for step in moved:
            self._file.write(np.ascontiguousarray(step).data)

    def joined(self) -> np.ndarray:
        self._file.flush()
        shape = (self._steps, *self._shape)
        return np.moveaxis(np.memmap(self._file, self._kind, "r", 0, shape), 0, self._axis)


def pieces_of_draws(values: np.ndarray) -> Iterator[np.ndarray]:
    """Draws `(chains, draws, ...)`, some at a time `(some, ...)` in double precision."""
    size = max(1, _AT_ONCE // max(values[0, :1].size, 1))
    for chain in values:
        for first in range(0, len(chain), size):
            yield np.asarray(chain[first : first + size], np.float64)
            _release(values)


def mean_of_draws(
    values: np.ndarray, function: Callable[[np.ndarray], np.ndarray] | None = None
) -> np.ndarray:
    """Means over draws `(chains, draws, ...)`, of a function of them if there is one."""
    total, count = np.zeros(values.shape[2:]), 0
    for piece in pieces_of_draws(values):
        total = total + np.sum(piece if function is None else function(piece), axis=0)
        count += len(piece)
    return total / count


def coefficients_at(values: np.ndarray, places: Any) -> np.ndarray:
    """Draws `(chains, draws, places, ...)` of some coefficients."""
    found = np.concatenate([piece[:, places] for piece in pieces_of_draws(values)])
    return found.reshape(*values.shape[:2], *found.shape[1:])


def _release(values: np.ndarray) -> None:
    """Let go of the memory that reading a file has filled."""
    file = getattr(values, "_mmap", None)
    if file is not None and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)
