"""Slice sampling of one number: no step size to tune, no density to normalise."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_MOST_STEPS = 12
_MOST_SHRINKS = 60


def slice_sample(
    key: Array,
    log_density: Callable[[Array], Array],
    start: Float[Array, ""],
    width: float,
) -> Float[Array, ""]:
    """One transition that leaves the density as it is (Neal, 2003: stepping out, shrinking).

    Where the density is not a number it counts as zero; a start without one stays where it is.

    **Arguments**: `width`, of the first interval; it is widened by at most twelve times that.
    """
    key_level, key_place, key_steps, key_shrink = jax.random.split(key, 4)
    kind = start.dtype
    at_start = log_density(start)
    level = at_start + jnp.log(jax.random.uniform(key_level, (), kind, jnp.finfo(kind).tiny))
    left = start - width * jax.random.uniform(key_place, (), kind)
    # The steps are shared out at random beforehand, which keeps the transition reversible.
    left_steps = jax.random.randint(key_steps, (), 0, _MOST_STEPS)

    def out(end: Array, direction: float, allowed: Array) -> Array:
        def more(carry):
            end, steps = carry
            return (steps > 0) & (log_density(end) > level)

        def step(carry):
            end, steps = carry
            return end + direction * width, steps - 1

        return jax.lax.while_loop(more, step, (end, allowed))[0]

    lower = out(left, -1.0, left_steps)
    upper = out(left + width, 1.0, _MOST_STEPS - 1 - left_steps)

    def refused(carry):
        return (~carry[4]) & (carry[5] < _MOST_SHRINKS)

    def shrink(carry):
        key, lower, upper, _, _, count = carry
        key, key_point = jax.random.split(key)
        point = lower + (upper - lower) * jax.random.uniform(key_point, (), kind)
        inside = log_density(point) > level
        lower = jnp.where((point < start) & ~inside, point, lower)
        upper = jnp.where((point >= start) & ~inside, point, upper)
        return key, lower, upper, point, inside, count + 1

    begin = (key_shrink, lower, upper, start, ~jnp.isfinite(at_start), jnp.zeros((), int))
    *_, point, inside, _ = jax.lax.while_loop(refused, shrink, begin)
    return jnp.where(inside & jnp.isfinite(at_start), point, start)
