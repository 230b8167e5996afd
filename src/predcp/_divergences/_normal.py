"""Normal observations: coordinates are the location and the log scale."""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.nn import softplus
from jaxtyping import Array

from predcp._divergences._closed_form import closed_form, hellinger_from
from predcp._divergences._divergence import (
    Coordinates,
    Rule,
    alike,
    register_family,
    register_rules,
)
from predcp._numerics.panels import largest_change, nodes
from predcp._numerics.special import (
    capped_exp,
    exponential_excess,
    exponential_excess_slope,
    fair_coin_divergence,
    half,
    log_cosh,
    log_fermi,
    log_mean_exp_zero,
    log_softplus,
)


# The log of a log-normal observation is normal, and divergences are invariant under transformations.
@register_family(dist.Normal, dist.Normal, dist.LogNormal)
def _coordinates(normal: dist.Normal | dist.LogNormal) -> Coordinates:
    loc, scale = alike(normal.loc, normal.scale)
    return {"loc": loc, "log_scale": jnp.log(scale)}


@register_family(dist.Normal, dist.HalfNormal)
def _half_normal_coordinates(half: dist.HalfNormal) -> Coordinates:
    """As a normal: the lost sign carries no information about the scale."""
    loc, scale = alike(0.0, half.scale)
    return {"loc": loc, "log_scale": jnp.log(scale)}


# KL = (d / sigma_0)^2 / 2 + (e^(2 r) - 1 - 2 r) / 2, with d the shift and r the log-scale change.
def _kl_value(reference, direction, log_size):
    shift = direction["loc"] * jnp.exp(-reference["log_scale"])
    return [
        (2.0 * log_size, 0.5 * shift**2),
        *half(exponential_excess(2.0 * direction["log_scale"], log_size)),
    ]


def _kl_slope(reference, direction, log_size, velocity):
    precision = jnp.exp(-2.0 * reference["log_scale"])
    widening, speed = 2.0 * direction["log_scale"], 2.0 * velocity["log_scale"]
    return [
        (2.0 * log_size, direction["loc"] * velocity["loc"] * precision),
        *half(exponential_excess_slope(widening, log_size, speed)),
    ]


# Reversed: e^(-2 r) (d / sigma_0)^2 / 2 + (e^(-2 r) - 1 + 2 r) / 2.
def _reverse_value(reference, direction, log_size):
    shift = direction["loc"] * jnp.exp(-reference["log_scale"])
    narrowing = -2.0 * direction["log_scale"]
    return [
        (2.0 * log_size + narrowing * capped_exp(log_size), 0.5 * shift**2),
        *half(exponential_excess(narrowing, log_size)),
    ]


def _reverse_slope(reference, direction, log_size, velocity):
    scale = jnp.exp(-reference["log_scale"])
    shift, shift_velocity = direction["loc"] * scale, velocity["loc"] * scale
    narrowing, speed = -2.0 * direction["log_scale"], -2.0 * velocity["log_scale"]
    size = capped_exp(log_size)
    return [
        (2.0 * log_size + narrowing * size, shift * shift_velocity + 0.5 * shift**2 * speed * size),
        *half(exponential_excess_slope(narrowing, log_size, speed)),
    ]


# Bhattacharyya distance: (d / sigma_0)^2 / (4 (1 + e^(2 r))) + log cosh(r) / 2.
def _distance_formula(reference, displacement):
    change = displacement["log_scale"]
    weight = -softplus(2.0 * change) - 2.0 * reference["log_scale"]
    return [
        (weight, 0.25 * displacement["loc"] ** 2),
        (jnp.zeros_like(change), 0.5 * log_cosh(change)),
    ]


# Edges of the panels of a standard normal density, which is below 1e-40 beyond the last.
# They are dense where densities of very different scales cross.
_EDGES = -np.array([13.5, 11.5, 10.2, 9.2, 8.4, 7.6, 6.8, 6.0, 5.2, 4.2, 3.1, 2.1, 1.0, 0.0])
_EDGES = np.concatenate([_EDGES, -_EDGES[-2::-1]])


class _Pair(NamedTuple):
    """The two log densities at nodes that resolve both, and how they differ there."""

    log_p: Array
    log_q: Array
    t: Array  # log q / p
    z: Array
    y: Array
    change: Array
    log_tail: Array  # log decrease of the overlap beyond what the nodes resolve


def _pair(reference, direction, log_size) -> _Pair:
    size = capped_exp(log_size)
    shift, change = jnp.broadcast_arrays(
        direction["loc"] * jnp.exp(-reference["log_scale"]) * size, direction["log_scale"] * size
    )
    most = largest_change(shift.dtype)
    held = jnp.clip(change, -most, most)
    grid = nodes(shift, held, _EDGES)
    shift, held = shift[..., None], held[..., None]
    constant = grid.log_weight - 0.5 * math.log(2.0 * math.pi)
    log_q = constant - 0.5 * grid.y**2
    log_p = constant - 0.5 * grid.z**2 - held
    # z - y without cancellation near equality.
    gap = grid.y * jnp.expm1(-held) - shift * jnp.exp(-held)
    near = (jnp.abs(shift) < 1.0) & (jnp.abs(held) < 1.0)
    t = held + 0.5 * jnp.where(near, gap, grid.z - grid.y) * (grid.z + grid.y)
    beyond = jnp.abs(change)[..., None] - jnp.abs(held)
    # For a narrow model only the reference's density at its centre matters.
    ratio = jnp.abs(held) + jnp.where(held < 0.0, 0.5 * jnp.minimum(jnp.abs(shift), 1e6) ** 2, 0.0)
    log_tail = log_fermi(ratio + beyond) - log_fermi(ratio) - beyond
    return _Pair(log_p, log_q, t, grid.z, grid.y, held, log_tail)


def _last_axis(array):
    return jnp.asarray(array)[..., None]


# JS = (E_p g(t) + E_q g(t)) / 2 with t = log q / p and g the divergence of a coin from a fair one:
# there is no closed form.
def _jensen_shannon_value(reference, direction, log_size):
    pair = _pair(reference, direction, log_size)
    shift = _last_axis(direction["loc"] * jnp.exp(-reference["log_scale"]))
    widening = _last_axis(direction["log_scale"])
    tiny = jnp.maximum(jnp.abs(shift), jnp.abs(widening)) * capped_exp(_last_axis(log_size))
    tiny = tiny < jnp.finfo(pair.t.dtype).eps
    # There t is (1 - y^2) r - y d to first order, and g(t) is t^2 / 8.
    first = (1.0 - pair.y**2) * widening - pair.y * shift
    rest = jnp.where(tiny, 0.0, 0.5 * fair_coin_divergence(pair.t))
    return [
        (2.0 * _last_axis(log_size) + pair.log_q, jnp.where(tiny, 0.125 * first**2, 0.0)),
        (pair.log_p, rest),
        (pair.log_q, rest),
    ]


# dJS = -E_p[s L(t)] / 2 with the score s of the model and L(t) = log((1 + e^t) / 2). As E_p s = 0,
# log(1 + e^t) serves as well, and keeps its digits when the two hardly overlap.
def _jensen_shannon_slope(reference, direction, log_size, velocity):
    pair = _pair(reference, direction, log_size)
    shift_velocity = _last_axis(velocity["loc"] * jnp.exp(-reference["log_scale"]))
    speed = _last_axis(velocity["log_scale"])
    score = pair.z * jnp.exp(-pair.change) * shift_velocity + (pair.z**2 - 1.0) * speed
    shift = _last_axis(direction["loc"] * jnp.exp(-reference["log_scale"]))
    size = capped_exp(_last_axis(log_size))
    largest = jnp.maximum(jnp.abs(shift), jnp.abs(_last_axis(direction["log_scale"]))) * size
    apart = largest > 2.0
    t = jnp.where(apart, 0.0, pair.t)
    far = pair.log_p + log_softplus(jnp.where(apart, pair.t, 0.0)) + pair.log_tail
    log_size = _last_axis(log_size)
    slow = largest < jnp.finfo(score.dtype).eps
    first = (1.0 - pair.y**2) * _last_axis(direction["log_scale"]) - pair.y * shift
    return [
        (log_size + far, jnp.where(apart, -0.5 * score, 0.0)),
        (log_size + pair.log_p, jnp.where(apart | slow, 0.0, -0.5 * score * log_mean_exp_zero(t))),
        (2.0 * log_size + pair.log_q, jnp.where(slow, -0.25 * score * first, 0.0)),
    ]


_DISTANCE = closed_form(_distance_formula, ("loc", "log_scale"), bounded=False)
register_rules(
    dist.Normal,
    kl=Rule(_kl_value, _kl_slope, bounded=False),
    reverse_kl=Rule(_reverse_value, _reverse_slope, bounded=False),
    squared_hellinger=hellinger_from(_DISTANCE),
    jensen_shannon=Rule(_jensen_shannon_value, _jensen_shannon_slope, bounded=True, nodes=430),
)
