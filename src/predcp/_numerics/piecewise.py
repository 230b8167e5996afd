"""Two polynomials on pieces of equal width, looked up at a cost that does not depend on their number."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array


def _piece(log_tau: Array, coefficients: Array, low: Array, width: Array) -> tuple[Array, ...]:
    """Polynomials of the piece at a scale, the place in it, and the distances below and above all."""
    pieces = coefficients.shape[0]
    position = (log_tau - low) / width
    # NaN has no piece: it must stay NaN.
    inside = jnp.clip(position, 0.0, pieces)
    index = jnp.minimum(inside.astype(jnp.int32), pieces - 1)
    row = jax.lax.dynamic_index_in_dim(coefficients, index, keepdims=False)
    x = 2.0 * (inside - index) - 1.0
    return row, x, width * jnp.minimum(position, 0.0), width * jnp.maximum(position - pieces, 0.0)


def _ends_added(bounded, value, below, above, outer_elasticity, outer_slope):
    log_kappa = value[0] + outer_elasticity[0] * below
    if not bounded:
        log_kappa = log_kappa + outer_elasticity[1] * above
    return log_kappa, value[1] + outer_slope * above


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def look_up(bounded, log_tau, coefficients, low, width, outer_elasticity, outer_slope):
    """`log D` and its log elasticity at one scale.

    **Arguments**: whether D stays at its supremum above the pieces; the scale; coefficients of the
    two polynomials of each piece, shape (pieces, 2, degree + 1); where the pieces begin and how
    wide they are; the elasticities below and above them; the slope of the log elasticity above.
    The table is a constant: there are no derivatives with respect to it.
    """
    row, x, below, above = _piece(log_tau, coefficients, low, width)
    value = row[:, -1]
    for place in range(row.shape[1] - 2, -1, -1):
        value = value * x + row[:, place]
    return _ends_added(bounded, value, below, above, outer_elasticity, outer_slope)


# By hand: one look-up and one pass for value and slope, and a backward pass that is a product.
@look_up.defjvp
def _look_up_jvp(bounded, primals, tangents):
    log_tau, coefficients, low, width, outer_elasticity, outer_slope = primals
    row, x, below, above = _piece(log_tau, coefficients, low, width)
    value, slope = row[:, -1], jnp.zeros_like(row[:, 0])
    for place in range(row.shape[1] - 2, -1, -1):
        slope = slope * x + value
        value = value * x + row[:, place]
    result = _ends_added(bounded, value, below, above, outer_elasticity, outer_slope)
    slope = jnp.where((below < 0.0) | (above > 0.0), 0.0, slope * (2.0 / width))
    outside = (
        outer_elasticity[0] * (below < 0.0)
        + (0.0 if bounded else outer_elasticity[1]) * (above > 0.0),
        outer_slope * (above > 0.0),
    )
    return result, tuple(
        (inner + outer) * tangents[0] for inner, outer in zip((slope[0], slope[1]), outside)
    )
