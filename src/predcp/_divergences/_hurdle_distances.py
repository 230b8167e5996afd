"""Reverse KL and Hellinger distance of observations that are zero with some probability.

With p and p_0 the probabilities of an observation that is not zero,

    reverse KL = KL_coin(p_0, p) + p_0 reverse KL_rest,    H^2 = H^2_coin + sqrt(p p_0) H^2_rest.

The Bhattacharyya distance of counts without their zero is `(B + B_0) / 2 - B_m`, m midway in a.
"""

from functools import partial

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.nn import log_sigmoid, softplus
from jaxtyping import Array

from predcp._divergences import _bernoulli as coins
from predcp._divergences import _gamma, _normal  # noqa: F401  (register the rules)
from predcp._divergences import _negative_binomial as negative_binomial
from predcp._divergences._closed_form import closed_form, hellinger_from
from predcp._divergences._divergence import Coordinates, Rule, reverse_kl, squared_hellinger
from predcp._divergences._hurdle import _COUNTS, _GATE, _OPEN, _Count, hurdle, zero_inflated
from predcp._numerics.coin import both_ones, coin
from predcp._numerics.special import Terms, capped_exp, log_share

# Half steps of a log rate from here on leave no overlap.
_MOST_HALF_STEP = 20.0


def _with_zeros(family: type, reference: Coordinates, displacement: Coordinates) -> Array:
    """The Bhattacharyya distance of the counts with their zeros."""
    if family is dist.Poisson:
        step = jnp.expm1(jnp.minimum(0.5 * displacement["log_rate"], _MOST_HALF_STEP))
        return 0.5 * jnp.exp(reference["log_rate"]) * step**2
    ((weight, coefficient),) = negative_binomial.distance_formula(reference, displacement)
    return jnp.exp(weight) * coefficient


def _midway(family: type, start: Array, x: Array) -> Array:
    """The coordinate at the mean of the natural parameters."""
    if family is dist.Poisson:
        return 0.5 * (start + x)
    log_p = 0.5 * (log_sigmoid(start) + log_sigmoid(x))
    return log_p - jnp.log(-jnp.expm1(log_p))


def _count_distance(family: type, count: _Count):
    """The formula of the Bhattacharyya distance of counts without their zero."""

    def formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
        start = reference[count.coordinate]
        x = start + displacement[count.coordinate]

        def rest(at: Array) -> Array:
            """B - A - a, up to a constant: it is small where the count is small."""
            ratio = count.log_ratio(at)
            log_total = count.log_unit(reference) + at + ratio
            return log_share(log_total) + ratio - count.shortfall(start, at)

        found = 0.5 * (rest(x) + rest(start)) - rest(_midway(family, start, x))
        found = found + _with_zeros(family, reference, displacement)
        return [(jnp.zeros_like(found), found)]

    return formula


def _backwards(count: _Count):
    """The formula of reverse KL of counts without their zero."""

    def formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
        change = displacement[count.coordinate]
        moved = reference | {count.coordinate: reference[count.coordinate] + change}
        return count.formula(moved, {count.coordinate: -change})

    return formula


def _hurdle_rule(of_coin: Rule, rest: Rule, power: float) -> Rule:
    """`D_coin + p^power p_0^(1 - power) D_rest`."""

    def at_coin(coordinates: Coordinates) -> Coordinates:
        return {"logits": coordinates[_GATE]}

    def weights(reference, direction, log_size):
        start = reference[_GATE]
        odds = start + direction[_GATE] * capped_exp(jnp.asarray(log_size, start.dtype))
        return power * log_sigmoid(odds) + (1.0 - power) * log_sigmoid(start), odds

    def value(reference, direction, log_size):
        weight, _ = weights(reference, direction, log_size)
        within = [(w + weight, c) for w, c in rest.value(reference, direction, log_size)]
        return [*of_coin.value(at_coin(reference), at_coin(direction), log_size), *within]

    def slope(reference, direction, log_size, velocity):
        weight, odds = weights(reference, direction, log_size)
        coin, coin_direction = at_coin(reference), at_coin(direction)
        found = of_coin.slope(coin, coin_direction, log_size, at_coin(velocity))
        found += [(w + weight, c) for w, c in rest.slope(reference, direction, log_size, velocity)]
        if power:
            opening = weight + log_size - softplus(odds)
            for w, c in rest.value(reference, direction, log_size):
                found.append((w + opening, c * power * velocity[_GATE]))
        return found

    bounded = of_coin.bounded and rest.bounded
    along = (_GATE,) if of_coin.bounded else ()
    return Rule(value, slope, bounded, rest.fixed, rest.nodes, along)


def _inflated_rules(family: type, count: _Count) -> tuple[Rule, Rule]:
    """Reverse KL and Hellinger distance of zero-inflated counts."""
    distance, backwards = _count_distance(family, count), _backwards(count)

    def both(reference: Coordinates, displacement: Coordinates):
        moving = (_OPEN, count.coordinate)
        moved = reference | {name: reference[name] + displacement[name] for name in moving}
        before, after = (both_ones(at[_OPEN], count.log_odds(at)) for at in (reference, moved))
        return coin(before, after - before)

    def reverse_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
        found = both(reference, displacement)
        zero = jnp.zeros_like(found.log_p)
        return [
            (zero, coins.reversed_kl_part(found.log_p, found.log_p0, found.t_1)),
            (zero, coins.reversed_kl_part(found.log_q, found.log_q0, found.t_0)),
            *((w + found.log_p0, c) for w, c in backwards(reference, displacement)),
        ]

    def hellinger_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
        found = both(reference, displacement)
        zero = jnp.zeros_like(found.log_p)
        ((_, apart),) = distance(reference, displacement)
        return [
            (zero, coins.hellinger_part(found.log_p, found.log_p0, found.t_1)),
            (zero, coins.hellinger_part(found.log_q, found.log_q0, found.t_0)),
            (0.5 * (found.log_p + found.log_p0), -jnp.expm1(-apart)),
        ]

    def length(reference: Coordinates, direction: Coordinates) -> Array:
        """Of a standard deviation of the count as of a fifth."""
        start, move = reference[count.coordinate], jnp.abs(direction[count.coordinate])
        log_total = count.log_unit(reference) + start + count.log_ratio(start)
        spread = jnp.maximum(1.0, 0.2 * capped_exp(0.5 * log_total))
        return jnp.maximum(jnp.abs(direction[_OPEN]), spread * move)

    rule = partial(closed_form, moving=(_OPEN, count.coordinate), fixed=count.fixed)
    return (
        rule(reverse_formula, bounded=False),
        rule(hellinger_formula, bounded=True, length=length),
    )


for _family, _count in _COUNTS.items():
    _moving = (_count.coordinate,)
    _reverse, _apart = (
        closed_form(formula, _moving, bounded=False, fixed=_count.fixed)
        for formula in (_backwards(_count), _count_distance(_family, _count))
    )
    reverse_kl.add(hurdle(_family), _hurdle_rule(coins.REVERSE, _reverse, 0.0))
    squared_hellinger.add(
        hurdle(_family), _hurdle_rule(coins.HELLINGER, hellinger_from(_apart), 0.5)
    )
    _reverse, _hellinger = _inflated_rules(_family, _count)
    reverse_kl.add(zero_inflated(_family), _reverse)
    squared_hellinger.add(zero_inflated(_family), _hellinger)
for _family in (dist.Gamma, dist.Normal):
    reverse_kl.add(hurdle(_family), _hurdle_rule(coins.REVERSE, reverse_kl.rule(_family), 0.0))
    squared_hellinger.add(
        hurdle(_family), _hurdle_rule(coins.HELLINGER, squared_hellinger.rule(_family), 0.5)
    )
