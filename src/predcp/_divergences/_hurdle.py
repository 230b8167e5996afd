"""Observations that are zero with some probability: hurdle and zero-inflated distributions.

Whether an observation is zero is a coin with log odds `nonzero_logits`; given that it is not, it has
the distribution behind the hurdle. KL is the coin's and, with the probability p of a non-zero,
that of the rest: `KL = KL_coin + p KL_rest`. A zero-inflated Poisson is read as a hurdle whose rest
is a Poisson without its zero.
"""

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.nn import log_sigmoid
from jaxtyping import Array

from predcp._divergences import _bernoulli as coins
from predcp._divergences import _gamma, _normal
from predcp._divergences._closed_form import closed_form
from predcp._divergences._divergence import (
    Coordinates,
    Rule,
    alike,
    kl,
    register_family,
)
from predcp._numerics.special import Terms, capped_exp

# A rate above e^10 has no zeros: their log probability, minus the rate, need not be followed on.
_LARGEST_LOG_RATE = 10.0


@register_family(dist.HurdleGamma, dist.HurdleGamma)
def _gamma_behind(hurdle: dist.HurdleGamma) -> Coordinates:
    return {"nonzero_logits": _logits_of_rest(hurdle.gate), **_gamma.gamma_coordinates(hurdle)}


@register_family(dist.HurdleLogNormal, dist.HurdleLogNormal)
def _log_normal_behind(hurdle: dist.HurdleLogNormal) -> Coordinates:
    loc, scale = alike(hurdle.loc, hurdle.scale)
    return {
        "nonzero_logits": _logits_of_rest(hurdle.gate),
        "loc": loc,
        "log_scale": jnp.log(scale),
    }


@register_family(dist.HurdlePoisson, dist.HurdlePoisson)
def _poisson_behind(hurdle: dist.HurdlePoisson) -> Coordinates:
    return {
        "nonzero_logits": _logits_of_rest(hurdle.gate),
        "log_rate": jnp.log(jnp.asarray(hurdle.rate)),
    }


@register_family(dist.HurdlePoisson, dist.ZeroInflatedPoisson)
def _zero_inflated_poisson(inflated: dist.ZeroInflatedPoisson) -> Coordinates:
    gate, rate = alike(inflated.gate, inflated.rate)
    log_gate, log_open, log_rate = jnp.log(gate), jnp.log1p(-gate), jnp.log(rate)
    lost = -jnp.exp(jnp.minimum(log_rate, _LARGEST_LOG_RATE))
    log_zero = jnp.logaddexp(log_gate, log_open + lost)
    return {
        "nonzero_logits": log_open + log_rate + _log_share(log_rate) - log_zero,
        "log_rate": log_rate,
    }


def _logits_of_rest(gate) -> Array:
    (gate,) = alike(gate)
    return jnp.log1p(-gate) - jnp.log(gate)


def _log_share(log_rate: Array) -> Array:
    """`log((1 - e^-rate) / rate)`"""
    small = log_rate < -12.0
    rate = jnp.exp(jnp.clip(jnp.where(small, 0.0, log_rate), None, _LARGEST_LOG_RATE))
    exact = jnp.log(-jnp.expm1(-rate)) - jnp.where(small, 0.0, log_rate)
    return jnp.where(small, -0.5 * jnp.exp(log_rate), exact)


def _truncated_poisson(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    """KL of Poissons without their zero, rates e^x and e^x_0: `u d - log((e^rate - 1) / (..))`.

    Here d = x - x_0 and u = rate / (1 - e^-rate) is the mean.
    """
    start, change = reference["log_rate"], displacement["log_rate"]
    log_rate = start + change
    low = log_rate < 0.0
    log_near = jnp.where(low, log_rate, 0.0)
    lost = _log_share(log_near)
    rest = jnp.exp(start) + start + _log_share(start)
    below = change * jnp.expm1(-lost) - start - lost - jnp.exp(log_near)
    high = jnp.where(low, 0.0, log_rate)
    share = -jnp.expm1(-jnp.exp(jnp.minimum(high, _LARGEST_LOG_RATE)))
    return [
        (jnp.zeros_like(rest), rest + jnp.where(low, below, -jnp.log(share))),
        (high, jnp.where(low, 0.0, change / share - 1.0)),
    ]


def _gated(rest: Rule) -> Rule:
    """`KL_coin + p KL_rest`."""

    def coin_of(coordinates: Coordinates) -> Coordinates:
        return {"logits": coordinates["nonzero_logits"]}

    def opened(terms: list[Terms], reference, direction, log_size) -> list[Terms]:
        logits = reference["nonzero_logits"] + direction["nonzero_logits"] * capped_exp(log_size)
        return [(weight + log_sigmoid(logits), c) for weight, c in terms]

    def value(reference, direction, log_size):
        behind = rest.value(reference, direction, log_size)
        return [
            *coins.KL.value(coin_of(reference), coin_of(direction), log_size),
            *opened(behind, reference, direction, log_size),
        ]

    def slope(reference, direction, log_size, velocity):
        behind = rest.slope(reference, direction, log_size, velocity)
        # p itself moves: dp = p (1 - p) d logits
        logits = reference["nonzero_logits"] + direction["nonzero_logits"] * capped_exp(log_size)
        shut = jnp.exp(log_sigmoid(-logits)) * velocity["nonzero_logits"]
        moving = [
            (weight + log_size, c * shut)
            for weight, c in rest.value(reference, direction, log_size)
        ]
        return [
            *coins.KL.slope(coin_of(reference), coin_of(direction), log_size, coin_of(velocity)),
            *opened([*behind, *moving], reference, direction, log_size),
        ]

    return Rule(value, slope, bounded=False, fixed=rest.fixed)


kl.add(dist.HurdleGamma, _gated(_gamma.KL))
kl.add(dist.HurdleLogNormal, _gated(_normal.KL))
kl.add(
    dist.HurdlePoisson,
    _gated(closed_form(_truncated_poisson, ("log_rate",), bounded=False)),
)
