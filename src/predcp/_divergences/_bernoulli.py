"""Bernoulli and binomial observations: the coordinate is the logit.

With reference logit `a_0`, displacement `d` and model logit `a = a_0 + d`, write p, q for the
model's probabilities of 1 and 0, p_0, q_0 for the reference's, t_1 = log p_0 / p and
t_0 = log q_0 / q. Every divergence below is a sum of non-negative terms in t_1 and t_0.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpyro.distributions as dist
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
    register_family,
    register_rules,
)
from predcp._numerics.coin import coin, log_coin
from predcp._numerics.special import fair_coin_divergence, log_mean_exp_zero, product_in_units
from predcp._numerics.special import relative_entropy_part as kl_part


@register_family(dist.Bernoulli, BernoulliLogits, BernoulliProbs)
def _coordinates(bernoulli) -> Coordinates:
    return {"logits": _logits(bernoulli, BernoulliProbs)}


def _logits(distribution, by_probabilities: type):
    """Log odds; those of probabilities have two derivatives also where a probability underflows."""
    if not isinstance(distribution, by_probabilities):
        return jnp.asarray(distribution.logits)
    probs = jnp.asarray(distribution.probs)
    kind = jnp.finfo(probs.dtype)
    kept = jnp.clip(probs, float(kind.tiny) ** 0.4, 1.0 - float(kind.eps))
    return jnp.log(kept) - jnp.log1p(-kept)


@register_family(dist.Binomial, BinomialLogits, BinomialProbs)
def _binomial_coordinates(binomial) -> Coordinates:
    logits = _logits(binomial, BinomialProbs)
    count = jnp.broadcast_to(jnp.asarray(binomial.total_count, logits.dtype), logits.shape)
    return {"logits": logits, "total_count": count}


def reversed_kl_part(log_p: Array, log_p0: Array, t: Array) -> Array:
    """One outcome's share of the reverse KL."""
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
        # Below rounding only the Fisher form is used: it does not underflow.
        tiny = jnp.abs(c.displacement) < jnp.finfo(far.dtype).eps
        return [
            (
                jnp.where(tiny, 2.0 * log_size + c.log_p0 + c.log_q0, 0.0),
                jnp.where(tiny, 0.5 * curvature * direction["logits"] ** 2, far),
            )
        ]

    return value


def _kl_slope(reference, direction, log_size, velocity):
    log_p, log_q = log_coin(reference["logits"] + direction["logits"] * jnp.exp(log_size))
    log_unit, coefficient = product_in_units(direction["logits"], velocity["logits"])
    return [(2.0 * log_size + log_p + log_q + log_unit, coefficient)]


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
    size = jnp.exp(log_size)
    c = coin(reference["logits"], direction["logits"] * size)
    # In units of the size, as the velocity: the product of two huge numbers may overflow.
    lift = (log_mean_exp_zero(c.t_0) - log_mean_exp_zero(c.t_1)) / size
    return [(2.0 * log_size + c.log_p + c.log_q, 0.5 * lift * velocity["logits"])]


KL = Rule(_value(kl_part, 1.0), _kl_slope, bounded=True)
REVERSE = Rule(_value(reversed_kl_part, 1.0), _reverse_slope, bounded=False)
HELLINGER = Rule(_value(hellinger_part, 0.25), _hellinger_slope, bounded=True)
_RULES = {
    "kl": KL,
    "reverse_kl": REVERSE,
    "squared_hellinger": HELLINGER,
    "jensen_shannon": Rule(_value(jensen_shannon_part, 0.25), _jensen_shannon_slope, bounded=True),
}
register_rules(dist.Bernoulli, **_RULES)
register_rules(dist.Binomial, **{name: counted(rule) for name, rule in _RULES.items()})
