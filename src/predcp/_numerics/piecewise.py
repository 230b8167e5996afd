"""Two polynomials on pieces of equal width, looked up at a cost independent of their number."""

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array

from predcp._numerics.power_law import floating_range

# What log D does above the pieces: a line, a constant, or an exponential.
Above = Literal["line", "level", "exponential"]


def _place(log_tau: Array, pieces: int, low: Array, width: Array) -> tuple[Array, ...]:
    """The piece of a scale, the position in it, and how far it is below and above all of them."""
    position = (log_tau - low) * (1.0 / width)
    # NaN has no piece: it must stay NaN.
    inside = jnp.clip(position, 0.0, pieces)
    index = jnp.minimum(inside.astype(jnp.int32), pieces - 1)
    x = 2.0 * (inside - index) - 1.0
    return index, x, width * jnp.minimum(position, 0.0), width * jnp.maximum(position - pieces, 0.0)


def _row(coefficients: Array, index: Array) -> tuple[list[Array], list[Array]]:
    """The coefficients of both polynomials of a piece, as single numbers."""
    row = jax.lax.dynamic_index_in_dim(coefficients, index, keepdims=False)
    first, second = ([row[v, k] for k in range(row.shape[1])] for v in range(2))
    return first, second


def _polynomial(x: Array, coefficients: list[Array]) -> tuple[Array, Array]:
    """Value and derivative, by Horner's rule."""
    value, slope = coefficients[-1], jnp.zeros_like(x)
    for coefficient in coefficients[-2::-1]:
        slope = slope * x + value
        value = value * x + coefficient
    return value, slope


def _tail(slope: Array, above: Array) -> tuple[Array, Array, Array]:
    """Integral of `exp(slope x)` from 0 to `above`, its value there, and its exponent.

    The exponent stops where the exponential would leave floating point.
    """
    exponent = slope * above
    inside = jnp.minimum(exponent, 0.5 * floating_range(exponent.dtype))
    tiny = jnp.abs(inside) < 1e-30
    mean = jnp.where(tiny, 1.0, jnp.expm1(inside) / jnp.where(tiny, 1.0, inside))
    return above * mean, jnp.where(exponent > inside, mean, jnp.exp(inside)), inside


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def look_up(kind: Above, log_tau, coefficients, low, width, outer_elasticity, outer_slope):
    """`log D` and its log elasticity at one scale.

    **Arguments**: what log D does above the pieces; the scale; coefficients of the two polynomials of
    each piece, shape (pieces, 2, degree + 1); where the pieces begin and how wide they are; the
    elasticities at both ends; the slope of the log elasticity above: 0 for a line, below 0 for a map
    that has saturated, above 0 for one whose log grows as a power.
    The table is a constant: there are no derivatives with respect to it.
    """
    index, x, below, above = _place(log_tau, coefficients.shape[0], low, width)
    (log_kappa, _), (log_elasticity, _) = (_polynomial(x, c) for c in _row(coefficients, index))
    log_kappa = log_kappa + outer_elasticity[0] * below
    if kind == "line":
        return log_kappa + outer_elasticity[1] * above, log_elasticity
    if kind == "level":
        return log_kappa, log_elasticity + outer_slope * above
    grown, _, exponent = _tail(outer_slope, above)
    return log_kappa + outer_elasticity[1] * grown, log_elasticity + exponent


# Written by hand: one look-up and one pass give value and slope; the backward pass is a product.
@look_up.defjvp
def _look_up_jvp(kind, primals, tangents):
    log_tau, coefficients, low, width, outer_elasticity, outer_slope = primals
    index, x, below, above = _place(log_tau, coefficients.shape[0], low, width)
    (_, rise), (_, bend) = (_polynomial(x, c) for c in _row(coefficients, index))
    per_unit = 2.0 / width
    # Of log D and of the log elasticity, above all pieces.
    slopes = outer_elasticity[1], jnp.zeros_like(x)
    if kind == "level":
        slopes = jnp.zeros_like(x), outer_slope
    elif kind == "exponential":
        _, rate, exponent = _tail(outer_slope, above)
        capped = exponent != outer_slope * above
        slopes = outer_elasticity[1] * rate, jnp.where(capped, 0.0, outer_slope)
    rise = jnp.where(above > 0.0, slopes[0], per_unit * rise)
    bend = jnp.where(above > 0.0, slopes[1], per_unit * bend)
    rise = jnp.where(below < 0.0, outer_elasticity[0], rise)
    bend = jnp.where(below < 0.0, 0.0, bend)
    return look_up(kind, *primals), (rise * tangents[0], bend * tangents[0])
