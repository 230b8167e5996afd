"""Observations that are zero with some probability: hurdle and zero-inflated distributions.

Whether an observation is zero is a coin with log odds `nonzero_logits`; given that it is not, it has
the distribution behind the hurdle. KL is the coin's and, with the probability p of a non-zero,
that of the rest: `KL = KL_coin + p KL_rest`. p may fall as fast as KL_rest grows, so that their
exponents are added before anything is rounded.

A zero-inflated count is read as a hurdle whose rest is the count without its zero. Counts with
probabilities `h(y) exp(y a - A)` and h(0) = 1, Poisson and negative binomial, then have
`B = log(e^A - 1)` in place of A, and KL_rest is `m (a - a_0) - B + B_0` with the mean `m = dB / da`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.nn import log_sigmoid
from jaxtyping import Array
from numpyro.distributions.discrete import ZeroInflatedProbs

from predcp._divergences import _bernoulli as coins
from predcp._divergences import _gamma
from predcp._divergences._closed_form import Gate, closed_form
from predcp._divergences._divergence import (
    Coordinates,
    Member,
    Rule,
    alike,
    kl,
    members,
    register_reader,
)
from predcp._numerics.special import LARGEST_LOG_COUNT, Terms, log_share, log_softplus

_GATE = "nonzero_logits"


@cache
def hurdle(behind: Any) -> type:
    """The family of observations behind a hurdle, by the family of what is behind it."""
    return type(f"Hurdle{behind.__name__}", (), {})


@register_reader(dist.HurdleProbs)
def _read_hurdle(gated: Any) -> Member:
    (rest,) = members(gated.base_dist)
    return _gated_member(rest, gated, _logits_of_rest(gated))


@register_reader(ZeroInflatedProbs)
def _read_zero_inflated(inflated: Any) -> Member:
    (rest,) = members(inflated.base_dist)
    if rest.family not in _COUNTS:
        raise ValueError(
            f"zero-inflated {rest.family.__name__} observations have no divergence: it is known for "
            "Poisson and negative binomial counts"
        )
    nonzero = _COUNTS[rest.family].log_odds(rest.coordinates)
    # Odds of a non-zero: (1 - g) P / (g + (1 - g) (1 - P)).
    open_logits = _logits_of_rest(inflated)
    log_open, log_shut = log_sigmoid(open_logits), log_sigmoid(-open_logits)
    log_zero = jnp.logaddexp(log_shut, log_open + log_sigmoid(-nonzero))
    logits = log_open + log_sigmoid(nonzero) - log_zero
    return _gated_member(rest, inflated, logits)


def _gated_member(rest: Member, whole: Any, logits: Array) -> Member:
    if not kl.knows(hurdle(rest.family)):
        raise ValueError(
            f"{rest.family.__name__} observations behind a hurdle have no divergence: it is known "
            "for Poisson, negative binomial, gamma and log-normal ones"
        )
    coordinates = dict(zip([_GATE, *rest.coordinates], alike(logits, *rest.coordinates.values())))
    return Member(hurdle(rest.family), coordinates, whole.batch_shape, 0)


def _logits_of_rest(gated: Any) -> Array:
    """Log odds that the gate is open."""
    if "gate_logits" in vars(gated):
        return -jnp.asarray(gated.gate_logits)
    (gate,) = alike(gated.gate)
    return jnp.log1p(-gate) - jnp.log(gate)


class _Count(NamedTuple):
    """A count without its zero, as functions of its moving coordinate x.

    **Arguments**: the coordinate; those that must not move; the log of a fixed factor of the mean,
    which is that factor times e^x; `log(A / mean)`; the change of a from x_0 to x.
    """

    coordinate: str
    fixed: tuple[str, ...]
    log_unit: Callable[[Coordinates], Array]
    log_ratio: Callable[[Array], Array]
    natural: Callable[[Array, Array, Array], Array]

    def log_odds(self, coordinates: Coordinates) -> Array:
        """B, the log odds of a count that is not zero."""
        x = coordinates[self.coordinate]
        log_total = self.log_unit(coordinates) + x + self.log_ratio(x)
        return log_total + jnp.exp(jnp.minimum(log_total, LARGEST_LOG_COUNT)) + log_share(log_total)

    def formula(
        self, reference: Coordinates, displacement: Coordinates, weigh: _gamma.Weigh = jnp.add
    ) -> list[Terms]:
        """KL between two such counts; `weigh` as for gamma observations."""
        start, change = reference[self.coordinate], displacement[self.coordinate]
        x, unit = start + change, self.log_unit(reference)
        natural, ratio = self.natural(start, x, change), self.log_ratio(x)
        log_total = unit + x + ratio
        low = log_total < 0.0
        # Below, x itself is taken out of a and of B on paper: R = B - x, and the mean is near 1.
        log_near = jnp.where(low, log_total, 0.0)
        lost = log_share(log_near)
        mean = jnp.expm1(-jnp.where(low, ratio, 0.0) - lost)
        shortfall = jnp.where(low, natural - change, 0.0)
        below = change * mean + shortfall * (1.0 + mean) - ratio - jnp.exp(log_near) - lost - start
        high = jnp.exp(jnp.minimum(jnp.where(low, 0.0, log_total), LARGEST_LOG_COUNT))
        share = -jnp.expm1(-high)
        zero = jnp.zeros_like(below)
        odds = self.log_odds(reference)
        below = jnp.where(low, below - unit, -jnp.log(share))
        return [
            (weigh(zero, zero), odds + below),
            (
                weigh(jnp.where(low, 0.0, unit + start), jnp.where(low, 0.0, change)),
                jnp.where(low, 0.0, natural / share - jnp.exp(jnp.where(low, 0.0, ratio))),
            ),
        ]


_COUNTS = {
    dist.Poisson: _Count(
        "log_rate",
        (),
        lambda reference: jnp.zeros_like(reference["log_rate"]),
        jnp.zeros_like,
        lambda start, x, change: change,
    ),
    dist.GammaPoisson: _Count(
        "logits",
        ("concentration",),
        lambda reference: jnp.log(reference["concentration"]),
        lambda x: log_softplus(x) - x,
        lambda start, x, change: log_sigmoid(x) - log_sigmoid(start),
    ),
}


def _normal_formula(
    reference: Coordinates, displacement: Coordinates, weigh: _gamma.Weigh = jnp.add
) -> list[Terms]:
    """KL of normals, as in that family, and so of log-normals."""
    shift = displacement["loc"] * jnp.exp(-reference["log_scale"])
    change, zero = displacement["log_scale"], jnp.zeros_like(shift)
    return [
        (weigh(zero, zero), 0.5 * shift**2 - change - 0.5),
        (weigh(zero, 2.0 * change), jnp.full_like(shift, 0.5)),
    ]


def _gated(formula: Callable[..., list[Terms]], moving: tuple[str, ...], fixed=()) -> Rule:
    """`KL_coin + p KL_rest`."""

    def logits(reference: Coordinates, displacement: Coordinates) -> Array:
        return reference[_GATE] + displacement[_GATE]

    def opened(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
        # log p is the logit where it is negative, less a softplus: add the logit part by part.
        odds = logits(reference, displacement)
        shut = odds < 0.0
        log_rest = log_sigmoid(jnp.abs(odds))

        def weigh(start: Array, moved: Array) -> Array:
            start = start + jnp.where(shut, reference[_GATE], 0.0)
            return (start + (moved + jnp.where(shut, displacement[_GATE], 0.0))) + log_rest

        return formula(reference, displacement, weigh)

    gate = Gate(_GATE, lambda *given: log_sigmoid(logits(*given)), opened)
    rest = closed_form(formula, moving, bounded=False, fixed=fixed, gate=gate)

    def coin(coordinates: Coordinates) -> Coordinates:
        return {"logits": coordinates[_GATE]}

    def value(reference, direction, log_size):
        return [
            *coins.KL.value(coin(reference), coin(direction), log_size),
            *rest.value(reference, direction, log_size),
        ]

    def slope(reference, direction, log_size, velocity):
        return [
            *coins.KL.slope(coin(reference), coin(direction), log_size, coin(velocity)),
            *rest.slope(reference, direction, log_size, velocity),
        ]

    return rest._replace(value=value, slope=slope, bounded_along=(_GATE,))


for _family, _count in _COUNTS.items():
    kl.add(hurdle(_family), _gated(_count.formula, (_count.coordinate,), _count.fixed))
kl.add(hurdle(dist.Gamma), _gated(_gamma.kl_formula, _gamma.MOVING))
kl.add(hurdle(dist.Normal), _gated(_normal_formula, ("loc", "log_scale")))
