"""Exact Hamiltonian paths of a truncated normal vector, for logits of separable rows.

Pakman and Paninski (2014): for `eta ~ N(0, C)` the path is an ellipse, `eta cos t + nu sin t`, and
at a boundary the velocity is reflected. A logistic outcome is a boundary at a random height e with a
logistic distribution, `P(y = 1 | eta) = P(e <= eta)`. Saturated logits are then restricted by their
signs only and can move far.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# After a quarter of a period a free normal is an independent draw.
_TIME = 0.5 * math.pi


def bounced_logits(
    key: Array,
    eta: Float[Array, " rows"],
    velocity: Float[Array, " rows"],
    covariance: Float[Array, "rows rows"],
    signs: Float[Array, " rows"],
    most: int,
) -> tuple[Float[Array, " rows"], Array]:
    """The logits after one path, and whether the path ended; `eta` itself if it did not.

    **Arguments**: `velocity`, a draw of the prior; `covariance` of the prior, of any rank; `signs`
    of the outcomes, 1 or -1; `most`, the number of reflections after which a path is abandoned (as
    its reverse would be).
    """
    kind = eta.dtype
    height = _height(key, signs * eta)
    variance = jnp.diagonal(covariance)

    def going(carry):
        _, _, left, count = carry
        return (left > 0.0) & (count < most)

    def onward(carry):
        eta, velocity, left, count = carry
        place, speed = signs * eta, signs * velocity
        size = jnp.hypot(place, speed)
        # Cosine and sine of the time at which a path crosses its wall downwards, in units that cannot
        # overflow; only times within a quarter of a period matter, and they have the order of their sines.
        place, speed, wall_at = place / size, speed / size, height / size
        root = jnp.sqrt(jnp.maximum(1.0 - wall_at**2, 0.0))
        cosines, sines = place * wall_at - speed * root, speed * wall_at + place * root
        reached = (jnp.abs(wall_at) < 1.0) & (sines > 0.0) & (cosines >= 0.0)
        order = jnp.where(reached, sines, jnp.inf)
        beyond = (place <= wall_at) & (speed < 0.0) & (jnp.abs(wall_at) < 1.0)
        order = jnp.where(beyond, 0.0, order)
        wall = jnp.argmin(order)
        when = jnp.arctan2(sines[wall], cosines[wall])
        when = jnp.where(beyond[wall], 0.0, jnp.where(reached[wall], when, jnp.inf))
        time = jnp.minimum(when, left)
        cosine, sine = jnp.cos(time), jnp.sin(time)
        eta, velocity = eta * cosine + velocity * sine, velocity * cosine - eta * sine
        back = 2.0 * velocity[wall] / variance[wall] * covariance[:, wall]
        velocity = jnp.where(when < left, velocity - back, velocity)
        return eta, velocity, left - time, count + 1

    begin = (eta, velocity, jnp.asarray(_TIME, kind), jnp.zeros((), int))
    moved, _, left, _ = jax.lax.while_loop(going, onward, begin)
    slack = 1e-6 * jnp.abs(moved) + jnp.finfo(kind).tiny
    ended = (left <= 0.0) & jnp.all(signs * moved + slack >= height)
    return jnp.where(ended, moved, eta), ended


def _height(key: Array, place: Array) -> Array:
    """A logistic variable below `place`."""
    uniform = jax.random.uniform(key, place.shape, place.dtype, jnp.finfo(place.dtype).tiny)
    # log of a uniform part of the distribution function there, and its logit.
    log_p = jax.nn.log_sigmoid(place) + jnp.log(uniform)
    return log_p - jnp.log(-jnp.expm1(log_p))
