"""Convolution as shifted slices and one matrix product.

With separate weights for every task, `vmap` turns a convolution into a grouped one, which is slow in
GPU libraries; a batched matrix product is fast.
"""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Precision = Literal["highest", "default", "bfloat16"]
PRECISIONS: tuple[Precision, ...] = ("highest", "default", "bfloat16")
_SIZE = 3
# Tensor cores read rows of sixteen bytes; without padding, rows of 27 or 9 numbers are copied at each use.
_ALIGNED = 8


def patches(x: Float[Array, "n h w c"], stride: int) -> Float[Array, "n i j k"]:
    """The 3 x 3 neighbourhood of every `stride`-th pixel, zero outside the image."""
    _, height, width, _ = x.shape
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows, columns = -(-height // stride), -(-width // stride)
    slices = [
        padded[
            :,
            down : down + stride * (rows - 1) + 1 : stride,
            right : right + stride * (columns - 1) + 1 : stride,
        ]
        for down in range(_SIZE)
        for right in range(_SIZE)
    ]
    return jnp.concatenate(slices, axis=-1)


def aligned(x: Float[Array, "... k"]) -> Float[Array, "... wider"]:
    """`x` padded with zeros on its last axis to a width that is fast in products."""
    missing = -x.shape[-1] % _ALIGNED
    return jnp.pad(x, (*[(0, 0)] * (x.ndim - 1), (0, missing)))


def product(
    x: Float[Array, "... wide"], weight: Float[Array, "k o"], precision: Precision
) -> Array:
    """`x @ weight` in the given precision; `x` may be padded with zeros."""
    weight = jnp.pad(weight, ((0, x.shape[-1] - weight.shape[0]), (0, 0)))
    if precision == "bfloat16":
        return x.astype(jnp.bfloat16) @ weight.astype(jnp.bfloat16)
    exact = jax.lax.Precision.HIGHEST if precision == "highest" else jax.lax.Precision.DEFAULT
    return jnp.matmul(x, weight, precision=exact)


def max_pool(x: Float[Array, "n h w c"]) -> Float[Array, "n i j c"]:
    """The largest of each 2 x 2 square; an odd last row or column is left out."""
    rows, columns = x.shape[1] // 2 * 2, x.shape[2] // 2 * 2
    top, bottom = x[:, 0:rows:2, :columns], x[:, 1:rows:2, :columns]
    tall = jnp.maximum(top, bottom)
    return jnp.maximum(tall[:, :, 0::2], tall[:, :, 1::2])


def rounding(precision: Precision, dtype: jnp.dtype) -> float:
    """The relative error of a product: 11 bits (tensor cores) unless the precision is `highest`."""
    bits = {"highest": float(jnp.finfo(dtype).eps), "default": 2.0**-11, "bfloat16": 2.0**-8}
    return max(bits[precision], float(jnp.finfo(dtype).eps))
