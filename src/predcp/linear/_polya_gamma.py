"""Polya-gamma variables: the scale mixture that makes a logistic likelihood normal.

Polson, Scott and Windle (2013): `(e^c)^y / (1 + e^c)` is, up to a constant, the mean over
`omega ~ PG(1, 0)` of `exp((y - 1/2) c - omega c^2 / 2)`, and `omega | c ~ PG(1, c)`.
"""

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Float

# The point that separates the two expansions of the density (Devroye, 2009).
_MEETING = 0.64
# Terms of either expansion: the next is below 1e-30 of the first on its side.
_TERMS = 5
_LARGEST = 1e15
_LEVY_MASS = 4.0 * float(ndtr(-1.0 / math.sqrt(_MEETING)))


def polya_gamma(key: Array, c: Float[Array, "..."]) -> Float[Array, "..."]:
    """One exact draw of PG(1, c) for each c.

    Rejection from an envelope in two pieces: an exponential to the right of the point that separates
    the expansions, and the lower of a Levy and an inverse normal density to its left. Both expansions
    have a fixed number of terms, accurate to rounding, in place of the alternating-series test.
    """
    # For larger c the result is 1 / (2 c) to all digits; the cap avoids overflow.
    z = jnp.minimum(0.5 * jnp.abs(c), _LARGEST)
    rate = math.pi**2 / 8.0 + 0.5 * z * z
    right_mass = 0.5 * math.pi / rate * jnp.exp(-rate * _MEETING)
    normal_mass = 2.0 * jnp.exp(-z)
    levy = normal_mass > _LEVY_MASS
    left_mass = jnp.where(levy, _LEVY_MASS, normal_mass)
    # If both masses underflow, use the left one.
    share = jnp.where(left_mass > 0.0, right_mass / (right_mass + left_mass), 0.0)

    def propose(key: Array) -> tuple[Array, Array]:
        side, place, accept, tail = jax.random.uniform(
            key, (4, *z.shape), z.dtype, minval=jnp.finfo(z.dtype).tiny
        )
        right = _MEETING - jnp.log(place) / rate
        # The reciprocal square of a normal beyond 1 / sqrt(t).
        levy_left = 1.0 / ndtri(0.25 * _LEVY_MASS * place) ** 2
        x = jnp.where(
            side < share, right, jnp.where(levy, levy_left, _inverse_normal(place, tail, z))
        )
        tilt = jnp.where(levy, jnp.exp(-0.5 * z * z * x), 1.0)
        inside = jnp.where(side < share, True, x <= _MEETING)
        ratio = _series(x) * jnp.where(side < share, 1.0, tilt)
        return x, inside & (accept < ratio)

    def again(carry):
        return ~jnp.all(carry[2])

    def body(carry):
        key, x, done = carry
        key, key_proposal = jax.random.split(key)
        proposed, accepted = propose(key_proposal)
        return key, jnp.where(done, x, proposed), done | accepted

    # NaN has no draw: do not wait for one.
    start = (key, jnp.where(jnp.isnan(z), z, 0.0), jnp.isnan(z))
    return 0.25 * jax.lax.while_loop(again, body, start)[1]


def _series(x: Array) -> Array:
    """The density of J*(1, 0) in units of the first term of its expansion there."""
    small = x < _MEETING
    safe = jnp.where(small, x, 1.0)
    total = jnp.zeros_like(x)
    for n in range(_TERMS):
        # ((n + 1/2)^2 - 1/4) is n (n + 1).
        square = float(n * (n + 1))
        left = jnp.exp(-2.0 * square / safe)
        right = jnp.exp(-0.5 * square * math.pi**2 * jnp.where(small, 1.0, x))
        total = total + (-1) ** n * (2 * n + 1) * jnp.where(small, left, right)
    return total


def _inverse_normal(chi: Array, choice: Array, z: Array) -> Array:
    """An inverse normal of mean 1 / z and shape 1 (Michael, Schucany and Haas, 1976)."""
    z = jnp.maximum(z, jnp.finfo(z.dtype).tiny)
    y = ndtri(chi) ** 2
    # The smaller root of the quadratic, without cancellation.
    w = 0.5 * y / z
    root = 1.0 / (z * (1.0 + w + jnp.sqrt(w * (w + 2.0))))
    mean = 1.0 / z
    return jnp.where(choice * (mean + root) <= mean, root, mean * mean / root)
