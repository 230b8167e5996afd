"""Poisson observations: the coordinate is the log rate."""

import jax.numpy as jnp
import numpyro.distributions as dist

from predcp._divergences._closed_form import closed_form, hellinger_from
from predcp._divergences._divergence import Coordinates, Rule, register_family, register_rules
from predcp._numerics.special import (
    Terms,
    capped_exp,
    expm1_minus,
    exponential_excess,
    exponential_excess_slope,
    scaled_from,
)


@register_family(dist.Poisson, dist.Poisson)
def _coordinates(poisson: dist.Poisson) -> Coordinates:
    return {"log_rate": jnp.log(jnp.asarray(poisson.rate))}


def _weighted(reference: Coordinates, terms: list[Terms]) -> list[Terms]:
    return [(reference["log_rate"] + weight, coefficient) for weight, coefficient in terms]


# KL = r_0 (1 - e^d + d e^d) with d the change of the log rate.
def _value(reference, direction, log_size):
    change = direction["log_rate"] * capped_exp(log_size)
    tiny = jnp.abs(change) < jnp.finfo(change.dtype).eps
    # exp(d) overflows long before d does: keep it in the log weight when it grows.
    gap = jnp.abs(change)
    other = expm1_minus(-gap)
    far = jnp.where(change > 0.0, other, scaled_from(gap, other))
    weight = jnp.where(tiny, 2.0 * log_size, jnp.maximum(change, 0.0))
    return _weighted(reference, [(weight, jnp.where(tiny, 0.5 * direction["log_rate"] ** 2, far))])


def _slope(reference, direction, log_size, velocity):
    size = capped_exp(log_size)
    change = direction["log_rate"] * size
    tiny = jnp.abs(change) < jnp.finfo(change.dtype).eps
    # The same weights as the value, so that the ratio of the two keeps its digits.
    up = jnp.maximum(change, 0.0)
    far = jnp.where(change > 0.0, 1.0, jnp.exp(-jnp.abs(change))) * change * size
    coefficient = velocity["log_rate"] * jnp.where(tiny, direction["log_rate"], far)
    return _weighted(reference, [(jnp.where(tiny, 2.0 * log_size, up), coefficient)])


# Reversed: r_0 (e^d - 1 - d).
def _reverse_value(reference, direction, log_size):
    return _weighted(reference, exponential_excess(direction["log_rate"], log_size))


def _reverse_slope(reference, direction, log_size, velocity):
    terms = exponential_excess_slope(direction["log_rate"], log_size, velocity["log_rate"])
    return _weighted(reference, terms)


# Bhattacharyya distance: r_0 (e^(d/2) - 1)^2 / 2, whose powers are apart where derivatives are taken at 0.
def _near_distance(reference, displacement):
    change = displacement["log_rate"]
    half = jnp.full_like(change, 0.5)
    return _weighted(reference, [(change, half), (0.5 * change, -2.0 * half), (0.0 * change, half)])


def _distance(reference, displacement):
    change = displacement["log_rate"]
    step = jnp.expm1(-0.5 * jnp.abs(change))
    return _weighted(reference, [(jnp.maximum(change, 0.0), 0.5 * step**2)])


_DISTANCE = closed_form(_distance, ("log_rate",), bounded=False, near_formula=_near_distance)
register_rules(
    dist.Poisson,
    kl=Rule(_value, _slope, bounded=False),
    reverse_kl=Rule(_reverse_value, _reverse_slope, bounded=False),
    squared_hellinger=hellinger_from(_DISTANCE),
)
