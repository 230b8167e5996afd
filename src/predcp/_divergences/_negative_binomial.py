"""Negative binomial counts: coordinates are the log odds `log(mean / concentration)` and log concentration.

The log mean, their sum, is one more, which tells whether a concentration moves alone.

With concentration n, a count is the number of ones before the n-th zero of a coin with those log
odds. For a shared concentration a divergence is that of the coin times the expected number of throws,
`n (1 + mean / n)`. A geometric count has n = 1.

A concentration that moves has an integral, see `pair_terms`.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.nn import softplus
from jaxtyping import Array
from numpyro.distributions.discrete import GeometricLogits, GeometricProbs

from predcp._divergences import _bernoulli as coins
from predcp._divergences._closed_form import closed_form, hellinger_from
from predcp._divergences._divergence import (
    Coordinates,
    Rule,
    alike,
    kl,
    register_family,
    reverse_kl,
    squared_hellinger,
)
from predcp._numerics.coin import coin
from predcp._numerics.concentrations import pair_terms
from predcp._numerics.special import Terms, capped_exp, log_cosh, log_softplus


# Every NumPyro class of negative binomial is a gamma mixture of Poissons with rate
# concentration / mean.
@register_family(dist.GammaPoisson, dist.GammaPoisson)
def _coordinates(count: dist.GammaPoisson) -> Coordinates:
    rate, concentration = alike(count.rate, count.concentration)
    log_n, log_rate = jnp.log(concentration), jnp.log(rate)
    return {"logits": -log_rate, "log_concentration": log_n, "log_mean": log_n - log_rate}


@register_family(dist.GammaPoisson, GeometricLogits, GeometricProbs)
def _geometric_coordinates(count) -> Coordinates:
    """A geometric count is the number of failures before a success of log odds `logits`."""
    logits = -jnp.asarray(count.logits)
    return {"logits": logits, "log_concentration": jnp.zeros_like(logits), "log_mean": logits}


def _times(terms, reference, log_throws):
    log_throws = reference["log_concentration"] + log_throws
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


# Bhattacharyya distance: n log cosh(u - u_0) with sinh(u)^2 = mean / n.
def distance_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    """Terms of the Bhattacharyya distance."""

    def angle(logits: Array) -> Array:
        large = logits > 0.0
        far = 0.5 * jnp.where(large, logits, 0.0)
        near = jnp.arcsinh(jnp.exp(0.5 * jnp.where(large, 0.0, logits)))
        return jnp.where(large, far + jnp.log1p(jnp.sqrt(1.0 + jnp.exp(-2.0 * far))), near)

    start = reference["logits"]
    gap = angle(start + displacement["logits"]) - angle(start)
    return [(reference["log_concentration"], log_cosh(gap))]


# With a concentration e^40 times the other, counts are Poisson (or zero) to rounding.
_MOST_CHANGE = 40.0


def _formula(nodes: int, reversed_too: bool) -> Callable[[Coordinates, Coordinates], list[Terms]]:
    def formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
        change = displacement["log_concentration"]
        held = jnp.clip(change, -_MOST_CHANGE, _MOST_CHANGE)
        start = [reference[name] for name in (*MOVING, "log_mean")]
        # The mean does not change.
        moves = displacement["logits"] + (change - held), held, displacement["log_mean"]
        moved = [here + move for here, move in zip(start, moves)]
        pair = (start, moved) if reversed_too else (moved, start)
        terms = pair_terms(*pair, nodes)
        if reversed_too:
            # Each other count adds its whole share of a log concentration that falls further.
            others = -jnp.expm1(-jnp.exp(start[1] + log_softplus(start[0])))
            fallen = jnp.maximum(-change - _MOST_CHANGE, 0.0)
            terms.append((jnp.zeros_like(change), fallen * others))
        # A slope below rounding, where D no longer depends on the concentration.
        flat = jnp.where(jnp.abs(change) > _MOST_CHANGE, -1.0, 0.0)
        return [*terms, (-jnp.abs(change), flat.astype(change.dtype))]

    return formula


MOVING = ("logits", "log_concentration")
_NODES = 241
_DISTANCE = closed_form(distance_formula, ("logits",), bounded=False, fixed=("log_concentration",))
squared_hellinger.add(dist.GammaPoisson, hellinger_from(_DISTANCE))
for _divergence, _values in (
    (kl, (_value, _slope)),
    (reverse_kl, (_reverse_value, _reverse_slope)),
):
    _whole, _half = (
        closed_form(
            _formula(count, _divergence is reverse_kl),
            (*MOVING, "log_mean"),
            bounded=False,
            nodes=count,
        )
        for count in (_NODES, _NODES // 2 + 1)
    )
    # With one mean counts come to be Poisson, or 0 but for a few: KL has a limit.
    _along = (*MOVING,) if _divergence is kl else ()
    _free = ("log_concentration", _whole._replace(coarse=_half, bounded_along=_along))
    _divergence.add(
        dist.GammaPoisson,
        Rule(*_values, bounded=False, fixed=("log_concentration",), freed=_free),
    )
