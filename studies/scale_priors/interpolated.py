"""Functions on even grids, interpolated linearly and continued linearly."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


def _place(grid: Any, at: Any) -> tuple[Array, Array]:
    step = grid[1] - grid[0]
    at = (at - grid[0]) / step
    index = jnp.clip(jnp.floor(at), 0, len(grid) - 2).astype(int)
    return index, at - index


class Curve(NamedTuple):
    """Values over an even grid."""

    grid: Any
    values: Any

    def __call__(self, at: Any) -> Array:
        index, part = _place(self.grid, at)
        values = jnp.asarray(self.values)
        return (1.0 - part) * values[index] + part * values[index + 1]


class Surface(NamedTuple):
    """Values over an even grid of two arguments; the first is clipped to its range."""

    first: Any
    second: Any
    values: Any

    def __call__(self, first: Any, second: Any) -> Array:
        first = jnp.clip(first, self.first[0], self.first[-1])
        i, s = _place(self.first, first)
        j, t = _place(self.second, second)
        values = jnp.asarray(self.values)
        low = (1.0 - t) * values[i, j] + t * values[i, j + 1]
        high = (1.0 - t) * values[i + 1, j] + t * values[i + 1, j + 1]
        return (1.0 - s) * low + s * high


def on(grid: np.ndarray, function: Any) -> Curve:
    """The curve of a function of an array."""
    return Curve(grid, np.asarray(function(jnp.asarray(grid))))
