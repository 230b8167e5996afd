"""Standard normal draws for Monte Carlo maps: plain, antithetic, or scrambled Sobol."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, PyTree, UInt32

from predcp._support.check import require_whole

# (key, count, dimension, dtype) to draws of shape (count, dimension)
Method = Callable[[Array, int, int, Any], Float[Array, "count dimension"]]

_BITS = 32
_MOST_SOBOL_DIMENSIONS = 21201


def plain(key: Array, count: int, dimension: int, dtype: Any) -> Float[Array, "count dimension"]:
    """Independent draws."""
    return jax.random.normal(key, (count, dimension), dtype)


def antithetic(
    key: Array, count: int, dimension: int, dtype: Any
) -> Float[Array, "count dimension"]:
    """Draws in pairs of opposite sign (the last has no partner when the count is odd)."""
    half = jax.random.normal(key, ((count + 1) // 2, dimension), dtype)
    return jnp.stack([half, -half], axis=1).reshape(-1, dimension)[:count]


def sobol(key: Array, count: int, dimension: int, dtype: Any) -> Float[Array, "count dimension"]:
    """Sobol points, scrambled by a random linear map and shift per dimension: each point is uniform."""
    blocks = []
    for start in range(0, dimension, _MOST_SOBOL_DIMENSIONS):
        key, key_order, key_scramble = jax.random.split(key, 3)
        points = jnp.asarray(_sobol_points(count, min(dimension - start, _MOST_SOBOL_DIMENSIONS)))
        if start:
            # More dimensions than direction numbers: reuse the points in a new random order.
            points = jax.random.permutation(key_order, points)
        blocks.append(_scrambled(key_scramble, points))
    return _as_normal(jnp.concatenate(blocks, axis=1), jnp.dtype(dtype))


def _sobol_points(count: int, dimension: int) -> np.ndarray:
    """The first points of the sequence, as 32-bit fractions."""
    # Imported here, because scipy.stats is slow to import and rarely needed.
    from scipy.stats import qmc

    size = 2 ** max(0, math.ceil(math.log2(count)))
    fractions = qmc.Sobol(dimension, scramble=False, bits=_BITS).random(size)[:count]
    return (fractions * 2.0**_BITS).astype(np.uint32)


@partial(jax.jit, static_argnums=1)
def _as_normal(
    bits: UInt32[Array, "count dimension"], dtype: np.dtype
) -> Float[Array, "count dimension"]:
    """Normal quantiles at the middles of the cells given by the leading bits."""
    kept = min(_BITS, jnp.finfo(dtype).nmant)
    return ndtri(((bits >> (_BITS - kept)).astype(dtype) + 0.5) / 2.0**kept)


@jax.jit
def _scrambled(
    key: Array, points: UInt32[Array, "count dimension"]
) -> UInt32[Array, "count dimension"]:
    """Each bit becomes the parity of itself and a random choice of the bits above it, shifted."""
    key_rows, key_shift = jax.random.split(key)
    dimension = points.shape[1]
    rows = jax.random.bits(key_rows, (_BITS, dimension), jnp.uint32)
    shift = jax.random.bits(key_shift, (dimension,), jnp.uint32)
    places = np.arange(_BITS - 1, -1, -1, dtype=np.uint32)
    own = np.uint32(1) << places
    above = ~(own | (own - np.uint32(1)))

    # A loop, because 32 copies of its body take a second to compile.
    def one_bit(result: Array, bit: tuple[Array, Array]) -> tuple[Array, None]:
        chosen, place = bit
        parity = jax.lax.population_count(points & chosen) & np.uint32(1)
        return result ^ (parity << place), None

    chosen = (rows & above[:, None]) | own[:, None]
    return jax.lax.scan(one_bit, shift ^ jnp.zeros_like(points), (chosen, jnp.asarray(places)))[0]


_METHODS: dict[str, Method] = {"plain": plain, "antithetic": antithetic, "sobol": sobol}


# Type checkers see a PyTree as an unknown type.
@overload
def normal_noise(
    key: Array, count: int, shape: tuple[int, ...], method: str | Method = ..., dtype: Any = ...
) -> Array: ...
@overload
def normal_noise(
    key: Array, count: int, shape: Any, method: str | Method = ..., dtype: Any = ...
) -> Any: ...
def normal_noise(
    key: Array, count: int, shape: Any, method: str | Method = "plain", dtype: Any = None
) -> PyTree[Float[Array, "count ..."]]:
    """Standard normal draws with a leading axis of `count`.

    **Arguments**
    - `key`: a JAX random key.
    - `count`: how many draws.
    - `shape`: of one draw: a tuple, or a pytree of arrays (or tuples) with the wanted shapes.
    - `method`: "plain", "antithetic" or "sobol" (for which powers of two are best), or a
        function (key, count, dimension, dtype) to an array (count, dimension).
    - `dtype`: of draws where `shape` is a tuple; for arrays, theirs is used.
    """
    count = require_whole("count", count)
    if isinstance(method, str):
        if method not in _METHODS:
            raise ValueError(
                f"method must be one of {sorted(_METHODS)} or a function, got {method!r}"
            )
        method = _METHODS[method]
    if isinstance(shape, int):
        shape = (shape,)
    leaves, structure = jax.tree.flatten(shape, is_leaf=_is_shape)
    if not leaves and not _is_shape(shape):
        raise ValueError(f"shape must be a tuple or a pytree of arrays, got {shape!r}")
    default = jnp.result_type(float) if dtype is None else jnp.dtype(dtype)
    shapes = [leaf if _is_shape(leaf) else jnp.shape(leaf) for leaf in leaves]
    dtypes = [
        leaf.dtype
        if hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
        else default
        for leaf in leaves
    ]
    sizes = [math.prod(each) for each in shapes]
    noise = method(key, count, sum(sizes), jnp.result_type(*dtypes))
    parts = jnp.split(noise, np.cumsum(sizes)[:-1], axis=1)
    arrays = [
        part.reshape((count, *each)).astype(kind) for part, each, kind in zip(parts, shapes, dtypes)
    ]
    return jax.tree.unflatten(structure, arrays)


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(size, int) for size in value)
