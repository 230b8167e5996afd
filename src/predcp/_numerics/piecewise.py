"""Two polynomials on pieces of equal width, looked up at a cost independent of their number."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from predcp._numerics.power_law import floating_range


def _piece(log_tau: Array, coefficients: Array, low: Array, width: Array) -> tuple[Array, ...]:
    """Polynomials of the piece at a scale, the position in it, and how far it is outside of all."""
    pieces = coefficients.shape[0]
    position = (log_tau - low) / width
    # NaN has no piece: it must stay NaN.
    inside = jnp.clip(position, 0.0, pieces)
    index = jnp.minimum(inside.astype(jnp.int32), pieces - 1)
    row = jax.lax.dynamic_index_in_dim(coefficients, index, keepdims=False)
    x = 2.0 * (inside - index) - 1.0
    return row, x, width * jnp.minimum(position, 0.0), width * jnp.maximum(position - pieces, 0.0)


def _tail(slope: Array, above: Array) -> tuple[Array, Array, Array]:
    """Integral of `exp(slope x)` from 0 to `above`, its value there, and its exponent.

    The exponent stops where the exponential would leave floating point.
    """
    exponent = slope * above
    inside = jnp.minimum(exponent, 0.5 * floating_range(exponent.dtype))
    tiny = jnp.abs(inside) < 1e-30
    mean = jnp.where(tiny, 1.0, jnp.expm1(inside) / jnp.where(tiny, 1.0, inside))
    return above * mean, jnp.where(exponent > inside, mean, jnp.exp(inside)), inside


def _ends_added(value, below, above, outer_elasticity, outer_slope):
    grown, _, exponent = _tail(outer_slope, above)
    log_kappa = value[0] + outer_elasticity[0] * below + outer_elasticity[1] * grown
    return log_kappa, value[1] + exponent


@jax.custom_jvp
def look_up(log_tau, coefficients, low, width, outer_elasticity, outer_slope):
    """`log D` and its log elasticity at one scale.

    **Arguments**: the scale; coefficients of the two polynomials of each piece, shape (pieces, 2,
    degree + 1); where the pieces begin and how wide they are; the elasticities at both ends; the slope
    of the log elasticity above: 0 for a power law, below 0 for a map that has saturated, above 0 for
    one whose log grows as a power.
    The table is a constant: there are no derivatives with respect to it.
    """
    row, x, below, above = _piece(log_tau, coefficients, low, width)
    value = row[:, -1]
    for place in range(row.shape[1] - 2, -1, -1):
        value = value * x + row[:, place]
    return _ends_added(value, below, above, outer_elasticity, outer_slope)


# Written by hand: one look-up and one pass give value and slope; the backward pass is a product.
@look_up.defjvp
def _look_up_jvp(primals, tangents):
    log_tau, coefficients, low, width, outer_elasticity, outer_slope = primals
    row, x, below, above = _piece(log_tau, coefficients, low, width)
    value, slope = row[:, -1], jnp.zeros_like(row[:, 0])
    for place in range(row.shape[1] - 2, -1, -1):
        slope = slope * x + value
        value = value * x + row[:, place]
    result = _ends_added(value, below, above, outer_elasticity, outer_slope)
    slope = jnp.where((below < 0.0) | (above > 0.0), 0.0, slope * (2.0 / width))
    _, rate, exponent = _tail(outer_slope, above)
    outside = (
        outer_elasticity[0] * (below < 0.0) + outer_elasticity[1] * rate * (above > 0.0),
        outer_slope * ((above > 0.0) & (exponent == outer_slope * above)),
    )
    return result, tuple(
        (inner + outer) * tangents[0] for inner, outer in zip((slope[0], slope[1]), outside)
    )
