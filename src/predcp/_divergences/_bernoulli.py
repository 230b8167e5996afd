"""Bernoulli and binomial observations: the coordinate is the logit.

With reference logit `a_0`, displacement `d` and model logit `a = a_0 + d`, write p, q for the
model's probabilities of 1 and 0, p_0, q_0 for the reference's, t_1 = log p_0 / p and
t_0 = log q_0 / q. Every divergence below is a sum of non-negative terms in t_1 and t_0.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.nn import log_sigmoid
from jaxtyping import Array
from numpyro.distributions.discrete import (
    BernoulliLogits,
    BernoulliProbs,
    BinomialLogits,
    BinomialProbs,
)

from predcp._divergences._divergence import (
    Coordinates,
    Rule,
    counted,
    jensen_shannon,
    kl,
    register_family,
    reverse_kl,
    squared_hellinger,
)
from predcp._numerics.coin import coin
from predcp._numerics.special import fair_coin_divergence, log_mean_exp_zero, relative_entropy_parts


@register_family(dist.Bernoulli, BernoulliLogits, BernoulliProbs)
def _coordinates(bernoulli) -> Coordinates:
    return {"logits": jnp.asarray(bernoulli.logits)}


@register_family(dist.Binomial, BinomialLogits, BinomialProbs)
def _binomial_coordinates(binomial) -> Coordinates:
    logits = jnp.asarray(binomial.logits)
    count = jnp.broadcast_to(jnp.asarray(binomial.total_count, logits.dtype), logits.shape)
    return {"logits": logits, "total_count": count}


def kl_part(log_p: Array, log_p0: Array, t: Array) -> Array:
    """`p (e^t - 1 - t)` with `p_0 = p e^t`: one outcome's share of KL, never negative."""
    return jnp.exp(jnp.maximum(log_p, log_p0)) * relative_entropy_parts(t)


def reversed_kl_part(log_p: Array, log_p0: Array, t: Array) -> Array:
    """The same with the two exchanged."""
    return kl_part(log_p0, log_p, -t)


def hellinger_part(log_p: Array, log_p0: Array, t: Array) -> Array:
    """`(sqrt p - sqrt p_0)^2 / 2`, one outcome's share of the squared Hellinger distance."""
    larger = jnp.maximum(log_p, log_p0)
    return 0.5 * jnp.exp(larger) * jnp.expm1(-jnp.abs(t) / 2.0) ** 2


def jensen_shannon_part(log_p: Array, log_p0: Array, t: Array) -> Array:
    """`(p + p_0) / 2` times the divergence of a coin with logit t from a fair one."""
    return 0.5 * (jnp.exp(log_p) + jnp.exp(log_p0)) * fair_coin_divergence(t)


def _value(part: Callable[[Array, Array, Array], Array], curvature: float) -> Callable:
    def value(reference, direction, log_size):
        size, a_0 = jnp.exp(log_size), reference["logits"]
        c = coin(a_0, direction["logits"] * size)
        far = part(c.log_p, c.log_p0, c.t_1) + part(c.log_q, c.log_q0, c.t_0)
        # Below rounding only the Fisher form is left; it alone survives underflow.
        tiny = jnp.abs(c.displacement) < jnp.finfo(far.dtype).eps
        return [
            (
                jnp.where(tiny, 2.0 * log_size + c.log_p0 + c.log_q0, 0.0),
                jnp.where(tiny, 0.5 * curvature * direction["logits"] ** 2, far),
            )
        ]

    return value


def _kl_slope(reference, direction, log_size, velocity):
    a = reference["logits"] + direction["logits"] * jnp.exp(log_size)
    log_weight = 2.0 * log_size + log_sigmoid(a) + log_sigmoid(-a)
    return [(log_weight, direction["logits"] * velocity["logits"])]


# p - p_0 = p q_0 (1 - e^-d), or q p_0 (e^d - 1): use the one that does not overflow.
def _reverse_slope(reference, direction, log_size, velocity):
    c = coin(reference["logits"], direction["logits"] * jnp.exp(log_size))
    up = c.displacement > 0.0
    log_weight = jnp.where(up, c.log_p + c.log_q0, c.log_q + c.log_p0) + log_size
    step = -jnp.expm1(-jnp.abs(c.displacement)) * jnp.sign(c.displacement)
    return [(log_weight, step * velocity["logits"])]


# dH^2 / dd = p sqrt(q q_0) (1 - e^(-d/2)) / 2 for d > 0, and its mirror image.
def _hellinger_slope(reference, direction, log_size, velocity):
    c = coin(reference["logits"], direction["logits"] * jnp.exp(log_size))
    up = c.displacement > 0.0
    log_weight = log_size + jnp.where(
        up,
        c.log_p + 0.5 * (c.log_q + c.log_q0),
        c.log_q + 0.5 * (c.log_p + c.log_p0),
    )
    step = -0.5 * jnp.expm1(-jnp.abs(c.displacement) / 2.0) * jnp.sign(c.displacement)
    return [(log_weight, step * velocity["logits"])]


# dJS / dd = p q (L(t_0) - L(t_1)) / 2 with L(t) = log((1 + e^t) / 2).
def _jensen_shannon_slope(reference, direction, log_size, velocity):
    c = coin(reference["logits"], direction["logits"] * jnp.exp(log_size))
    lift = log_mean_exp_zero(c.t_0) - log_mean_exp_zero(c.t_1)
    return [(log_size + c.log_p + c.log_q, 0.5 * lift * velocity["logits"])]


KL = Rule(_value(kl_part, 1.0), _kl_slope, bounded=True)
REVERSE = Rule(_value(reversed_kl_part, 1.0), _reverse_slope, bounded=False)
kl.add(dist.Bernoulli, KL)
kl.add(dist.Binomial, counted(KL))
reverse_kl.add(dist.Bernoulli, REVERSE)
reverse_kl.add(dist.Binomial, counted(REVERSE))
squared_hellinger.add(
    dist.Bernoulli, Rule(_value(hellinger_part, 0.25), _hellinger_slope, bounded=True)
)
jensen_shannon.add(
    dist.Bernoulli, Rule(_value(jensen_shannon_part, 0.25), _jensen_shannon_slope, bounded=True)
)
