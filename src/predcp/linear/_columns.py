"""Standardise columns, and convert coefficients back to the original units."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from predcp.linear._kept_steps import pieces_of_draws

# Outside, a coefficient per unit of the column leaves floating point.
_SMALLEST_SCALE = 1e-280
# Larger values are cut here: they act as infinite, but their sums do not overflow.
_FURTHEST = 1e100
# Numbers of a wide table that are worked on at once, in double precision.
_AT_ONCE = 2**22
# Of an array's first byte.
_ALIGNMENT = 64


@dataclass(frozen=True)
class Columns:
    """Location and scale of every column in the training rows.

    **Arguments**
    - `mean`, `scale`: `(D,)`.
    - `varying`: `(D,)`, false for constant columns, whose coefficient is 0.
    """

    mean: Float[np.ndarray, " columns"]
    scale: Float[np.ndarray, " columns"]
    varying: Bool[np.ndarray, " columns"]

    @classmethod
    def fit(cls, x: np.ndarray, weights: np.ndarray, centre: bool) -> "Columns":
        """Weighted means and standard deviations of `x` `(N, D)`.

        **Arguments**: `centre`, false for a model through the origin: means are not subtracted, and a
        constant column is used like any other.
        """
        shares = weights / weights.sum()
        found = [_fitted(x[:, block], shares, centre) for block in _blocks(x)]
        return cls(*map(np.concatenate, zip(*found)))

    def transform(self, x: np.ndarray, kind: Any = np.float64) -> Float[np.ndarray, "rows varying"]:
        """Columns in standard units; those that never vary are left out."""
        scores = aligned((len(x), int(self.varying.sum())), kind)
        done = 0
        for block in _blocks(x):
            kept = self.varying[block]
            mean, scale = self.mean[block][kept], self.scale[block][kept]
            given = x[:, block] if kept.all() else x[:, block][:, kept]
            with np.errstate(over="ignore"):
                part = given - mean
                part /= scale
            np.clip(part, -_FURTHEST, _FURTHEST, out=part)
            scores[:, done : done + len(mean)] = part
            done += len(mean)
        return scores

    def coefficients(self, beta: np.ndarray) -> np.ndarray:
        """Coefficients `(..., D, [K])` in original units, from standardised ones `(..., d, [K])`.

        **Arguments**: `beta` has its columns on axis 2, after chains and draws.
        """
        tail = (1,) * (beta.ndim - 3)
        full = np.zeros((*beta.shape[:2], len(self.scale), *beta.shape[3:]))
        full[:, :, self.varying] = beta / self.scale[self.varying].reshape(-1, *tail)
        return full

    def shift(self, beta: np.ndarray) -> np.ndarray:
        """Change of the intercept that centring the columns made, `(chains, draws, [K])`."""
        ratio = self.mean[self.varying] / self.scale[self.varying]
        pieces = [np.einsum("dp...,p->d...", piece, ratio) for piece in pieces_of_draws(beta)]
        return np.concatenate(pieces).reshape(*beta.shape[:2], *beta.shape[3:])


def _fitted(x: np.ndarray, shares: np.ndarray, centre: bool) -> tuple[np.ndarray, ...]:
    """Means, standard deviations and whether they vary, of some columns."""
    x = np.asarray(x, np.float64)
    size = np.abs(x).max(axis=0)
    # In units of the largest value, whose square cannot overflow.
    unit = np.where(size > 0.0, size, 1.0)
    scores = x / unit
    mean = shares @ scores if centre else np.zeros(x.shape[1])
    range_ = np.ptp(scores, axis=0) if centre else np.abs(scores).max(axis=0)
    # In place: a table may be as large as half of the memory.
    scores -= mean
    spread = np.sqrt(shares @ np.square(scores, out=scores))
    rounding = 8.0 * np.finfo(np.float64).eps
    varying = (range_ > rounding) & (spread > 0.0) & (spread * unit > _SMALLEST_SCALE)
    return mean * unit, np.where(varying, spread * unit, 1.0), varying


def _blocks(x: np.ndarray) -> list[slice]:
    """Columns that are worked on at once; all of a table with fewer columns than rows."""
    columns = x.shape[1]
    size = columns if columns <= len(x) else max(1, _AT_ONCE // len(x))
    return [slice(first, first + size) for first in range(0, columns, size)]


def aligned(shape: tuple[int, int], kind: Any) -> np.ndarray:
    """An array without values that JAX can use without a copy."""
    kind = np.dtype(kind)
    size = math.prod(shape) * kind.itemsize
    raw = np.empty(size + _ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % _ALIGNMENT
    return raw[first : first + size].view(kind).reshape(shape)
