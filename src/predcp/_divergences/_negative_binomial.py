"""Negative binomial counts: the coordinate is the log odds `log(mean / concentration)`.

With concentration n a count is the number of ones before the n-th zero of a coin with those log
odds. The divergences are the coin's times the expected number of throws, `n (1 + mean / n)`. The
concentration is shared. A geometric count has n = 1.
"""

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.nn import softplus
from numpyro.distributions.discrete import GeometricLogits, GeometricProbs

from predcp._divergences import _bernoulli as coins
from predcp._divergences._divergence import (
    Coordinates,
    Rule,
    alike,
    kl,
    register_family,
    reverse_kl,
)
from predcp._numerics.coin import coin
from predcp._numerics.special import capped_exp


# Every NumPyro class of negative binomial is a gamma mixture of Poissons with rate
# concentration / mean.
@register_family(dist.GammaPoisson, dist.GammaPoisson)
def _coordinates(count: dist.GammaPoisson) -> Coordinates:
    rate, concentration = alike(count.rate, count.concentration)
    return {"logits": -jnp.log(rate), "concentration": concentration}


@register_family(dist.GammaPoisson, GeometricLogits, GeometricProbs)
def _geometric_coordinates(count) -> Coordinates:
    """A geometric count is the number of failures before a success of log odds `logits`."""
    logits = -jnp.asarray(count.logits)
    return {"logits": logits, "concentration": jnp.ones_like(logits)}


def _times(terms, reference, log_throws):
    log_throws = jnp.log(reference["concentration"]) + log_throws
    return [(weight + log_throws, coefficient) for weight, coefficient in terms]


def _moved(reference, direction, log_size):
    return reference["logits"] + direction["logits"] * capped_exp(log_size)


def _value(reference, direction, log_size):
    throws = softplus(_moved(reference, direction, log_size))
    return _times(coins.KL.value(reference, direction, log_size), reference, throws)


# d KL / d a = (mean / n) log(p / p_0) with p the coin's probability of a one.
def _slope(reference, direction, log_size, velocity):
    size = capped_exp(log_size)
    moved = coin(reference["logits"], direction["logits"] * size)
    tiny = jnp.abs(moved.displacement) < jnp.finfo(moved.displacement.dtype).eps
    near = jnp.exp(moved.log_q0) * direction["logits"]
    terms = [
        (
            jnp.where(tiny, 2.0 * log_size, 0.0),
            jnp.where(tiny, near, -moved.t_1 * size) * velocity["logits"],
        )
    ]
    return _times(terms, reference, _moved(reference, direction, log_size))


def _reverse_value(reference, direction, log_size):
    terms = coins.REVERSE.value(reference, direction, log_size)
    return _times(terms, reference, softplus(reference["logits"]))


def _reverse_slope(reference, direction, log_size, velocity):
    terms = coins.REVERSE.slope(reference, direction, log_size, velocity)
    return _times(terms, reference, softplus(reference["logits"]))


kl.add(dist.GammaPoisson, Rule(_value, _slope, bounded=False, fixed=("concentration",)))
reverse_kl.add(
    dist.GammaPoisson,
    Rule(_reverse_value, _reverse_slope, bounded=False, fixed=("concentration",)),
)
