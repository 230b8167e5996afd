"""Noise of a training step, all of it from one call of the generator."""

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import erfinv
from jaxtyping import Array, Float, UInt32

_WORD = 32


def normals(bits: UInt32[Array, "..."]) -> Float[Array, "..."]:
    """Standard normal numbers of random words, in single precision and never infinite."""
    # The middles of 2^23 cells: each is exact, and they are symmetric about one half.
    unit = ((bits >> 9).astype(jnp.float32) + 0.5) * jnp.float32(2.0**-22) - 1.0
    return jnp.float32(math.sqrt(2.0)) * erfinv(unit)


def coins(
    bits: UInt32[Array, "samples words width"], points: int
) -> Float[Array, "samples points width"]:
    """Zeros and ones, one a point, each bit of a word used once."""
    shifts = jnp.arange(_WORD, dtype=jnp.uint32)[:, None]
    spread = (bits[:, :, None, :] >> shifts) & jnp.uint32(1)
    samples, words, _, width = spread.shape
    return spread.reshape(samples, words * _WORD, width)[:, :points].astype(jnp.float32)


def words_for(points: int) -> int:
    """Words that hold a bit a point."""
    return -(-points // _WORD)


class Source:
    """Hands out pieces of one long draw of random words, in order."""

    def __init__(self, key: Array, count: int) -> None:
        self._bits = jax.random.bits(key, (count,), jnp.uint32)
        self._used = 0

    def take(self, *shape: int) -> UInt32[Array, "..."]:
        """The next words, in this shape."""
        size = math.prod(shape)
        piece = self._bits[self._used : self._used + size]
        if piece.shape[0] < size:
            raise ValueError(f"{size} words asked for, {piece.shape[0]} left")
        self._used += size
        return piece.reshape(shape)
