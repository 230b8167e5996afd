"""The stretch of pi under which a statement about its tail holds after truncation."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp._divergence_priors._base import DivergencePrior
from predcp._support.check import known
from predcp._support.compiled import compiled

_NODES = 2048
_BISECTIONS = 100
# How far above the supremum the centre of pi may go, in units of its width.
_FARTHEST = 1e4


def with_truncated_tail(
    pi: DivergencePrior, log_upper: Array, log_supremum: Array, probability: Array
) -> DivergencePrior:
    """pi stretched so that `P(kappa > upper | kappa < supremum) = probability`.

    Truncation removes mass from the upper tail only, so pi must be stretched upwards. As it is
    stretched, the tail of a truncated log-Cauchy rises and falls again: the smallest stretch is taken.

    **Arguments**: `pi`, which has that tail before truncation; the others, of shapes that broadcast.
    """
    stretched, most = _stretched(pi, log_upper, log_supremum, probability)
    _require_reached(most, probability)
    return stretched


@compiled()
def _stretched(
    pi: DivergencePrior, log_upper: Array, log_supremum: Array, probability: Array
) -> tuple[DivergencePrior, Array]:
    """The stretched pi, NaN where there is none; and the largest tail that any stretch gives."""
    shape = jnp.broadcast_shapes(
        pi.batch_shape, *(jnp.shape(each) for each in (log_upper, log_supremum, probability))
    )
    pi = pi.with_parameters(pi.spread(shape)) if shape else pi
    log_upper, log_supremum, log_wanted = (
        jnp.broadcast_to(each, shape) for each in (log_upper, log_supremum, jnp.log(probability))
    )
    lower, middle, upper = (pi.icdf_log(jnp.full(shape, q)) for q in (0.25, 0.5, 0.75))
    width = upper - lower
    distance = log_supremum - middle
    # Stretches from none to far beyond the supremum, dense where the centre of pi is near it.
    first = jnp.arcsinh(-distance / width)
    last = jnp.arcsinh(_FARTHEST * (1.0 + (log_supremum - log_upper) / width))
    last = jnp.maximum(last, first + 1.0)

    def tail_at(t: Array) -> Array:
        moved = pi.stretched(distance + width * jnp.sinh(t))
        return moved.log_tail_below(log_upper, log_supremum)

    fraction = jnp.linspace(0.0, 1.0, _NODES)
    nodes = first[..., None] + fraction * (last - first)[..., None]
    tails = jnp.moveaxis(jax.lax.map(tail_at, jnp.moveaxis(nodes, -1, 0)), 0, -1)
    reached = tails >= log_wanted[..., None]
    high_place = jnp.maximum(jnp.argmax(reached, axis=-1), 1)[..., None]
    low = jnp.take_along_axis(nodes, high_place - 1, -1)[..., 0]
    high = jnp.take_along_axis(nodes, high_place, -1)[..., 0]

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        above = tail_at(middle) >= log_wanted
        return jnp.where(above, low, middle), jnp.where(above, middle, high)

    low, high = jax.lax.fori_loop(0, _BISECTIONS, halve, (low, high))
    found = jnp.where(reached.any(-1), 0.5 * (low + high), jnp.nan)
    return pi.stretched(distance + width * jnp.sinh(found)), jnp.exp(jnp.nanmax(tails, axis=-1))


def _require_reached(most: Array, probability: Array) -> None:
    """Refuse a probability that no stretch of pi gives; inside a transformation the answer is NaN."""
    largest, wanted = known(most), known(probability)
    if largest is None or wanted is None or np.all(largest >= wanted):
        return
    raise ValueError(
        f"probability must be at most {largest.min():.4g} for this upper, got {wanted.max():.4g}: "
        "however far this pi is stretched, truncated at the supremum of the complexity it puts no "
        "more above upper; state a larger upper or choose another family"
    )
