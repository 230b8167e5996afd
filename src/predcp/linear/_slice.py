"""Slice sampling of one number: no step size to tune, no density to normalise."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_MOST_STEPS = 12
_MOST_SHRINKS = 60
# Phases of the loop.
_LEFT, _RIGHT, _SHRINK, _DONE = range(4)


def slice_sample(
    key: Array,
    log_density: Callable[[Array], Array],
    start: Float[Array, ""],
    width: float,
) -> Float[Array, ""]:
    """One transition that leaves the density invariant (Neal, 2003: stepping out, shrinking).

    A density that is NaN counts as zero. A start where it is zero stays where it is.

    **Arguments**: `width` of the first interval, which may grow by twelve times that.
    """
    key_level, key_place, key_steps, key_shrink = jax.random.split(key, 4)
    kind = start.dtype
    at_start = log_density(start)
    level = at_start + jnp.log(jax.random.uniform(key_level, (), kind, jnp.finfo(kind).tiny))
    lower = start - width * jax.random.uniform(key_place, (), kind)
    # Neal's rule: share out the steps at random beforehand, or the transition is not reversible.
    left_steps = jax.random.randint(key_steps, (), 0, _MOST_STEPS)

    def point_of(phase: Array, lower: Array, upper: Array, count: Array) -> Array:
        place = jax.random.uniform(jax.random.fold_in(key_shrink, count), (), kind)
        inner = lower + (upper - lower) * place
        return jnp.where(phase == _LEFT, lower, jnp.where(phase == _RIGHT, upper, inner))

    # One loop for all three phases, so that the density is compiled once instead of three times.
    def onward(carry):
        phase, lower, upper, left, right, count, found = carry
        point = point_of(phase, lower, upper, count)
        inside = log_density(point) > level
        shrinking = phase == _SHRINK
        found = jnp.where(shrinking & inside, point, found)
        lower = jnp.where(shrinking & ~inside & (point < start), point, lower)
        upper = jnp.where(shrinking & ~inside & (point >= start), point, upper)
        grow_left = (phase == _LEFT) & inside & (left > 0)
        grow_right = (phase == _RIGHT) & inside & (right > 0)
        lower = jnp.where(grow_left, lower - width, lower)
        upper = jnp.where(grow_right, upper + width, upper)
        left, right = left - grow_left, right - grow_right
        ended = inside | (count + 1 >= _MOST_SHRINKS)
        following = jnp.where(
            shrinking,
            jnp.where(ended, _DONE, _SHRINK),
            jnp.where(grow_left | grow_right, phase, phase + 1),
        )
        # An end that may not grow any more is not evaluated.
        following = jnp.where((following == _LEFT) & (left == 0), _RIGHT, following)
        following = jnp.where((following == _RIGHT) & (right == 0), _SHRINK, following)
        return following, lower, upper, left, right, count + shrinking, found

    usable = jnp.isfinite(at_start)
    right_steps = _MOST_STEPS - 1 - left_steps
    phase = jnp.where(left_steps > 0, _LEFT, jnp.where(right_steps > 0, _RIGHT, _SHRINK))
    phase = jnp.where(usable, phase, _DONE)
    count = jnp.zeros((), left_steps.dtype)
    begin = (phase, lower, lower + width, left_steps, right_steps, count, start)
    return jax.lax.while_loop(lambda carry: carry[0] < _DONE, onward, begin)[-1]
