"""Noise of a training step, all from one call of the generator."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import erfinv
from jaxtyping import Array, Bool, Float, UInt32

try:
    from jax.extend.random import threefry_2x32
except ImportError:
    # Not in every release of JAX.
    threefry_2x32 = None

_WORD = 32


def normals(bits: UInt32[Array, "..."]) -> Float[Array, "..."]:
    """Standard normal numbers of random words, in single precision and never infinite."""
    # The middles of 2^23 cells: each is exact, and they are symmetric about one half.
    unit = ((bits >> 9).astype(jnp.float32) + 0.5) * jnp.float32(2.0**-22) - 1.0
    return jnp.float32(math.sqrt(2.0)) * erfinv(unit)


def coins(
    bits: UInt32[Array, "samples words width"], points: int
) -> Bool[Array, "samples points width"]:
    """Fair coins, one per point; each bit of a word is used once."""
    masks = jnp.asarray(2 ** np.arange(_WORD), jnp.uint32)[:, None]
    tossed = (bits[:, :, None, :] & masks) != 0
    samples, words, _, width = tossed.shape
    return tossed.reshape(samples, words * _WORD, width)[:, :points]


def words_for(points: int) -> int:
    """Number of words that hold one bit per point."""
    return -(-points // _WORD)


def random_words(key: Array, count: int) -> UInt32[Array, " count"]:
    """Words of Threefry that use both halves of every block: half the work of `jax.random.bits`."""
    if threefry_2x32 is None:
        return jax.random.bits(key, (count,), jnp.uint32)
    counters = jnp.arange(count + count % 2, dtype=jnp.uint32)
    return threefry_2x32(jax.random.key_data(key), counters)[:count]


class Source:
    """Pieces of one long draw of random words, in order."""

    def __init__(self, key: Array, count: int) -> None:
        # Without the barrier XLA fuses the generator into every use and draws all words each time.
        self._bits = lax.optimization_barrier(random_words(key, count))
        self._used = 0

    def take(self, *shape: int) -> UInt32[Array, "..."]:
        """The next words, in this shape."""
        size = math.prod(shape)
        piece = self._bits[self._used : self._used + size]
        if piece.shape[0] < size:
            raise ValueError(f"{size} words asked for, {piece.shape[0]} left")
        self._used += size
        return piece.reshape(shape)
