"""Standardise columns, and convert coefficients back to the original units."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from predcp._support.cores import available_cores
from predcp.linear._kept_steps import pieces_of_draws

# Outside, a coefficient per unit of the column leaves floating point.
_SMALLEST_SCALE = 1e-280
# Larger values are cut here: they act as infinite, but their sums do not overflow.
_FURTHEST = 1e100
# Numbers that are worked on at once; fewest columns of them; and few such tiles.
_AT_ONCE, _NARROWEST, _FEW_TILES = 2**17, 64, 16
# Rows and columns.
_Tile = tuple[slice, slice]
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
        shares, columns = weights / weights.sum(), x.shape[1]
        low, high = np.full(columns, np.inf), np.full(columns, -np.inf)
        for tile, ends in _over(x, lambda tile: (x[tile].min(axis=0), x[tile].max(axis=0))):
            at = tile[1]
            low[at], high[at] = np.minimum(low[at], ends[0]), np.maximum(high[at], ends[1])
        size = np.maximum(np.abs(low), np.abs(high))
        # In units of the largest value, whose square cannot overflow; a power of two rounds nothing.
        unit = np.where(size > 0.0, 2.0 ** np.clip(np.frexp(size)[1], -1000, 1000), 1.0)
        mean, square = np.zeros(columns), np.zeros(columns)
        if centre:
            for tile, part in _over(x, lambda tile: shares[tile[0]] @ (x[tile] / unit[tile[1]])):
                mean[tile[1]] += part

        def squares(tile: _Tile) -> np.ndarray:
            scores = x[tile] / unit[tile[1]]
            scores -= mean[tile[1]]
            return shares[tile[0]] @ np.square(scores, out=scores)

        for tile, part in _over(x, squares):
            square[tile[1]] += part
        range_ = (high / unit - low / unit) if centre else size / unit
        spread = np.sqrt(square)
        rounding = 8.0 * np.finfo(np.float64).eps
        varying = (range_ > rounding) & (spread > 0.0) & (spread * unit > _SMALLEST_SCALE)
        return cls(mean * unit, np.where(varying, spread * unit, 1.0), varying)

    def transform(self, x: np.ndarray, kind: Any = np.float64) -> Float[np.ndarray, "rows varying"]:
        """Columns in standard units; those that never vary are left out."""
        scores = aligned((len(x), int(self.varying.sum())), kind)
        before = np.append(0, np.cumsum(self.varying))

        def scale(tile: _Tile) -> None:
            rows, columns = tile
            kept = self.varying[columns]
            given = x[tile] if kept.all() else x[tile][:, kept]
            with np.errstate(over="ignore"):
                part = given - self.mean[columns][kept]
                part /= self.scale[columns][kept]
            place = slice(before[columns.start], before[columns.stop])
            np.clip(part, -_FURTHEST, _FURTHEST, out=scores[rows, place], casting="same_kind")

        for _ in _over(x, scale):
            pass
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


def _tiles(shape: tuple[int, int]) -> list[_Tile]:
    """Parts of an array that fit into a processor's cache in double precision."""
    rows, columns = shape
    width = min(columns, max(_NARROWEST, _AT_ONCE // rows))
    height = min(rows, max(1, _AT_ONCE // width))
    return [
        (slice(row, min(row + height, rows)), slice(column, min(column + width, columns)))
        for column in range(0, columns, width)
        for row in range(0, rows, height)
    ]


def _over(x: np.ndarray, work: Callable[[_Tile], Any]) -> Iterator[tuple[_Tile, Any]]:
    """Each tile of an array and what `work` makes of it, in order; by several threads if there are many."""
    tiles = _tiles(x.shape)
    if len(tiles) < _FEW_TILES:
        yield from ((tile, work(tile)) for tile in tiles)
        return
    with ThreadPoolExecutor(len(available_cores())) as workers:
        yield from zip(tiles, workers.map(work, tiles))


def aligned(shape: tuple[int, int], kind: Any) -> np.ndarray:
    """An array without values that JAX can use without a copy."""
    kind = np.dtype(kind)
    size = math.prod(shape) * kind.itemsize
    raw = np.empty(size + _ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % _ALIGNMENT
    return raw[first : first + size].view(kind).reshape(shape)
