"""Observations that are zero with some probability: hurdle and zero-inflated distributions.

Whether an observation is zero is a coin with log odds `nonzero_logits`; given that it is not, it has
the distribution behind the hurdle. KL is the coin's and, with the probability p of a non-zero,
that of the rest: `KL = KL_coin + p KL_rest`. p may fall as fast as KL_rest grows, so that their
exponents are added before anything is rounded.

The rest of a zero-inflated count is the count without its zero. Counts with probabilities
`h(y) exp(y a - A)` and h(0) = 1, Poisson and negative binomial, then have `B = log(e^A - 1)` in place
of A, and KL_rest is `m (a - a_0) - B + B_0` with the mean `m = dB / da`. The coin depends on the gate
and on the count; their coordinates stay apart, so that exponents that cancel are still exact.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.nn import log_sigmoid, softplus
from jaxtyping import Array
from numpyro.distributions.discrete import ZeroInflatedProbs

from predcp._divergences import _bernoulli as coins
from predcp._divergences import _gamma
from predcp._divergences._bounded_counts import gated_count
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
from predcp._numerics.coin import both_ones, coin
from predcp._numerics.special import (
    LARGEST_LOG_COUNT,
    Terms,
    capped_exp,
    log_share,
    log_softplus_less,
)

_GATE, _OPEN = "nonzero_logits", "open_logits"
# Displacements from here on are far from equality, as in `closed_form`.
_FAR = 0.2


@cache
def hurdle(behind: Any) -> type:
    """The family of observations behind a hurdle, by the family of what is behind it."""
    return type(f"Hurdle{behind.__name__}", (), {})


def _read_hurdle(gated: Any) -> Member:
    (rest,) = members(gated.base_dist)
    bounded = gated_count(rest, _logits_of_rest(gated), gated, inflated=False)
    if bounded is not None:
        return bounded
    if not kl.knows(hurdle(rest.family)):
        raise ValueError(
            f"{rest.family.__name__} observations behind a hurdle have no divergence: it is known "
            "for Poisson, negative binomial, gamma and log-normal ones and for counts with a largest one"
        )
    return _gated_member(hurdle(rest.family), rest, gated, _GATE)


# NumPyro 0.20 has no hurdles.
if hasattr(dist, "HurdleProbs"):
    register_reader(dist.HurdleProbs)(_read_hurdle)


@cache
def zero_inflated(behind: Any) -> type:
    """The family of zero-inflated counts, by the family of the count."""
    return type(f"ZeroInflated{behind.__name__}", (), {})


@register_reader(ZeroInflatedProbs)
def _read_zero_inflated(inflated: Any) -> Member:
    (rest,) = members(inflated.base_dist)
    bounded = gated_count(rest, _logits_of_rest(inflated), inflated, inflated=True)
    if bounded is not None:
        return bounded
    if rest.family not in _COUNTS:
        raise ValueError(
            f"zero-inflated {rest.family.__name__} observations have no divergence: it is known for "
            "Poisson and negative binomial counts and for counts with a largest one"
        )
    return _gated_member(zero_inflated(rest.family), rest, inflated, _OPEN)


def _gated_member(family: type, rest: Member, whole: Any, gate: str) -> Member:
    arrays = alike(_logits_of_rest(whole), *rest.coordinates.values())
    return Member(family, dict(zip([gate, *rest.coordinates], arrays)), whole.batch_shape, 0)


def _logits_of_rest(gated: Any) -> Array:
    """Log odds that the gate is open."""
    if "gate_logits" in vars(gated):
        return -jnp.asarray(gated.gate_logits)
    (gate,) = alike(gated.gate)
    return jnp.log1p(-gate) - jnp.log(gate)


class _Count(NamedTuple):
    """A count without its zero, as functions of its moving coordinate x.

    **Arguments**: the coordinate; those that must not move; the log of a fixed factor of the mean,
    which is that factor times e^x; `log(A / mean)`; the change of a from x_0 to x; the same less the
    change of x.
    """

    coordinate: str
    fixed: tuple[str, ...]
    log_unit: Callable[[Coordinates], Array]
    log_ratio: Callable[[Array], Array]
    natural: Callable[[Array, Array, Array], Array]
    shortfall: Callable[[Array, Array], Array]

    def log_odds(self, coordinates: Coordinates) -> Array:
        """B, the log odds of a count that is not zero."""
        x = coordinates[self.coordinate]
        log_total = self.log_unit(coordinates) + x + self.log_ratio(x)
        return log_total + capped_exp(log_total) + log_share(log_total)

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
        shortfall = jnp.where(low, self.shortfall(start, x), 0.0)
        below = change * mean + shortfall * (1.0 + mean) - ratio - jnp.exp(log_near) - lost - start
        high = jnp.exp(jnp.minimum(jnp.where(low, 0.0, log_total), LARGEST_LOG_COUNT))
        share = -jnp.expm1(-high)
        zero = jnp.zeros_like(below)
        odds = self.log_odds(reference)
        below = jnp.where(low, below - unit, -jnp.log(share))
        grown = jnp.where(low, 0.0, natural / share - jnp.exp(jnp.where(low, 0.0, ratio)))
        # Where only the gate moves nothing is left, not even what large counts leave of rounding.
        still = change == 0.0
        return [
            (weigh(zero, zero), jnp.where(still, 0.0, odds + below)),
            (
                weigh(jnp.where(low, 0.0, unit + start), jnp.where(low, 0.0, change)),
                jnp.where(still, 0.0, grown),
            ),
        ]


_COUNTS = {
    dist.Poisson: _Count(
        "log_rate",
        (),
        lambda reference: jnp.zeros_like(reference["log_rate"]),
        jnp.zeros_like,
        lambda start, x, change: change,
        lambda start, x: jnp.zeros_like(x),
    ),
    dist.GammaPoisson: _Count(
        "logits",
        ("log_concentration",),
        lambda reference: reference["log_concentration"],
        log_softplus_less,
        lambda start, x, change: log_sigmoid(x) - log_sigmoid(start),
        lambda start, x: softplus(start) - softplus(x),
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


def _weigh_open(odds: Array, start: Array, move: Array, log_rest: Array) -> _gamma.Weigh:
    """Add the log probability of an open gate, of log odds `odds = start + move`, and a log factor."""
    # It is the logit where that is negative, less a softplus: add the logit part by part.
    shut = odds < 0.0
    log_rest = log_sigmoid(jnp.abs(odds)) + log_rest

    def weigh(first: Array, moved: Array) -> Array:
        first = first + jnp.where(shut, start, 0.0)
        return (first + (moved + jnp.where(shut, move, 0.0))) + log_rest

    return weigh


def _gated(formula: Callable[..., list[Terms]], moving: tuple[str, ...], fixed=()) -> Rule:
    """`KL_coin + p KL_rest`."""

    def logits(reference: Coordinates, displacement: Coordinates) -> Array:
        return reference[_GATE] + displacement[_GATE]

    def opened(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
        odds = logits(reference, displacement)
        move = displacement[_GATE]
        weigh = _weigh_open(odds, reference[_GATE], move, jnp.zeros_like(odds))
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


def _inflated(count: _Count) -> Rule:
    """`KL_coin + p KL_rest` with p the probability of an open gate and of a count that is not zero."""

    def formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
        moving = (_OPEN, count.coordinate)
        moved = reference | {name: reference[name] + displacement[name] for name in moving}
        before, after = (both_ones(at[_OPEN], count.log_odds(at)) for at in (reference, moved))
        both = coin(before, after - before)
        log_rest = log_sigmoid(count.log_odds(moved))
        weigh = _weigh_open(moved[_OPEN], reference[_OPEN], displacement[_OPEN], log_rest)
        parts = [(both.log_p, both.log_p0, both.t_1), (both.log_q, both.log_q0, both.t_0)]
        coins_parts = [(jnp.zeros_like(after), coins.kl_part(*part)) for part in parts]
        return [*coins_parts, *count.formula(reference, displacement, weigh)]

    rule = closed_form(formula, (_OPEN, count.coordinate), bounded=False, fixed=count.fixed)

    def slope(reference, direction, log_size, velocity):
        terms = rule.slope(reference, direction, log_size, velocity)
        # Where only the gate moves, dKL = (z - z_0) q (1 - open) with z the log odds of q, the
        # probability of a count that is not zero: its log stays where the formula has saturated.
        size = capped_exp(log_size)
        odds, start = count.log_odds(reference), reference[_OPEN]
        opened = start + direction[_OPEN] * size
        before, after = both_ones(start, odds), both_ones(opened, odds)
        still = (direction[count.coordinate] == 0.0) & (velocity[count.coordinate] == 0.0)
        alone = still & (jnp.abs(direction[_OPEN] * size) >= _FAR)
        weight = jnp.where(alone, log_sigmoid(after) + log_sigmoid(-opened), 0.0)
        change = jnp.where(alone, size * velocity[_OPEN] * (after - before), 0.0)
        return [*((w, jnp.where(alone, 0.0, c)) for w, c in terms), (weight, change)]

    return rule._replace(slope=slope, bounded_along=(_OPEN,))


for _family, _count in _COUNTS.items():
    kl.add(hurdle(_family), _gated(_count.formula, (_count.coordinate,), _count.fixed))
    kl.add(zero_inflated(_family), _inflated(_count))
kl.add(hurdle(dist.Gamma), _gated(_gamma.kl_formula, _gamma.MOVING))
kl.add(hurdle(dist.Normal), _gated(_normal_formula, ("loc", "log_scale")))
