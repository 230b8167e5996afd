"""Normal observations: coordinates are the location and the log scale."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from predcp._divergences._divergence import (
    Coordinates,
    Rule,
    differentiated,
    jensen_shannon,
    kl,
    register_family,
    reverse_kl,
    squared_hellinger,
)
from predcp._numerics.special import (
    Terms,
    capped_exp,
    exponential_excess,
    exponential_excess_slope,
    fair_coin_divergence,
    log_cosh,
)


@register_family(dist.Normal, dist.Normal)
def _coordinates(normal: dist.Normal) -> Coordinates:
    loc, log_scale = jnp.broadcast_arrays(
        jnp.asarray(normal.loc), jnp.log(jnp.asarray(normal.scale))
    )
    return {"loc": loc, "log_scale": log_scale}


def _half(terms: list[Terms]) -> list[Terms]:
    return [(weight, 0.5 * coefficient) for weight, coefficient in terms]


# KL = (d / sigma_0)^2 / 2 + (e^(2 r) - 1 - 2 r) / 2, with d the shift and r the log-scale change.
def _kl_value(reference, direction, log_size):
    shift = direction["loc"] * jnp.exp(-reference["log_scale"])
    return [
        (2.0 * log_size, 0.5 * shift**2),
        *_half(exponential_excess(2.0 * direction["log_scale"], log_size)),
    ]


def _kl_slope(reference, direction, log_size, velocity):
    precision = jnp.exp(-2.0 * reference["log_scale"])
    widening, speed = 2.0 * direction["log_scale"], 2.0 * velocity["log_scale"]
    return [
        (2.0 * log_size, direction["loc"] * velocity["loc"] * precision),
        *_half(exponential_excess_slope(widening, log_size, speed)),
    ]


# The other way round: e^(-2 r) (d / sigma_0)^2 / 2 + (e^(-2 r) - 1 + 2 r) / 2.
def _reverse_value(reference, direction, log_size):
    shift = direction["loc"] * jnp.exp(-reference["log_scale"])
    narrowing = -2.0 * direction["log_scale"]
    return [
        (2.0 * log_size + narrowing * capped_exp(log_size), 0.5 * shift**2),
        *_half(exponential_excess(narrowing, log_size)),
    ]


def _reverse_slope(reference, direction, log_size, velocity):
    scale = jnp.exp(-reference["log_scale"])
    shift, shift_velocity = direction["loc"] * scale, velocity["loc"] * scale
    narrowing, speed = -2.0 * direction["log_scale"], -2.0 * velocity["log_scale"]
    size = capped_exp(log_size)
    return [
        (
            2.0 * log_size + narrowing * size,
            shift * shift_velocity + 0.5 * shift**2 * speed * size,
        ),
        *_half(exponential_excess_slope(narrowing, log_size, speed)),
    ]


# Bhattacharyya distance: (d / sigma_0)^2 / (4 (1 + e^(2 r))) + log cosh(r) / 2.
def _distance_terms(reference, direction, log_size):
    shift = direction["loc"] * jnp.exp(-reference["log_scale"])
    change = direction["log_scale"] * capped_exp(log_size)
    spread = 1.0 + jnp.exp(2.0 * change)
    return shift, change, spread


def _hellinger_value(reference, direction, log_size):
    shift, change, spread = _distance_terms(reference, direction, log_size)
    size = capped_exp(log_size)
    distance = 0.25 * (shift * size) ** 2 / spread + 0.5 * log_cosh(change)
    tiny = distance < jnp.finfo(distance.dtype).eps
    near = 0.25 * shift**2 / spread + 0.25 * direction["log_scale"] ** 2
    return [
        (
            jnp.where(tiny, 2.0 * log_size, 0.0),
            jnp.where(tiny, near, -jnp.expm1(-jnp.where(tiny, 1.0, distance))),
        )
    ]


def _hellinger_slope(reference, direction, log_size, velocity):
    shift, change, spread = _distance_terms(reference, direction, log_size)
    size = capped_exp(log_size)
    distance = 0.25 * (shift * size) ** 2 / spread + 0.5 * log_cosh(change)
    shift_velocity = velocity["loc"] * jnp.exp(-reference["log_scale"])
    widening = jnp.exp(2.0 * change) / spread**2
    return [
        (2.0 * log_size - distance, 0.5 * shift * shift_velocity / spread),
        (
            log_size - distance,
            (0.5 * jnp.tanh(change) - 0.5 * (shift * size) ** 2 * widening) * velocity["log_scale"],
        ),
    ]


# The trapezoid rule beats Gauss-Hermite here: g has poles at +-i pi, close to the axis in z.
_NODES = np.linspace(-9.0, 9.0, 145)
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.sum(np.exp(-0.5 * _NODES**2))


def _log_ratio_at(node, side, shift, change):
    """`log q - log p` at a standard node of p (side 0) or of q (side 1), in units of sigma_0."""
    # p = N(shift, e^change), q = N(0, 1), both in units of the reference.
    y = jnp.where(side == 0, shift + jnp.exp(change) * node, node)
    return change + 0.5 * ((y - shift) * jnp.exp(-change)) ** 2 - 0.5 * y**2


# JS = (E_p g(t) + E_q g(t)) / 2 with t = log q / p and g the divergence of a coin from a fair one:
# there is no closed form, so both expectations are sums over 145 nodes.
def _jensen_shannon_of(reference, displacement):
    shift = displacement["loc"] * jnp.exp(-reference["log_scale"])
    change = displacement["log_scale"]
    nodes = jnp.asarray(_NODES, shift.dtype)
    weights = jnp.asarray(_WEIGHTS, shift.dtype)

    def side_mean(side):
        t = jax.vmap(lambda node: _log_ratio_at(node, side, shift, change))(nodes)
        return jnp.tensordot(weights, fair_coin_divergence(t), axes=1)

    return 0.5 * (side_mean(0) + side_mean(1))


def _jensen_shannon_slope(reference, direction, log_size, velocity):
    size = capped_exp(log_size)
    shift = direction["loc"] * jnp.exp(-reference["log_scale"]) * size
    shift_velocity = velocity["loc"] * jnp.exp(-reference["log_scale"]) * size
    change, change_velocity = direction["log_scale"] * size, velocity["log_scale"] * size
    nodes = jnp.asarray(_NODES, shift.dtype)
    weights = jnp.asarray(_WEIGHTS, shift.dtype)
    terms = []
    for side in (0, 1):

        def ratio_and_speed(node, side=side):
            return jax.jvp(
                lambda s, c: _log_ratio_at(node, side, s, c),
                (shift, change),
                (shift_velocity, change_velocity),
            )

        t, t_velocity = jax.vmap(ratio_and_speed, out_axes=-1)(nodes)
        # g'(t) = t sech^2(t / 2) / 4, and sech^2(t / 2) = 4 e^-|t| / (1 + e^-|t|)^2.
        log_weight = -jnp.abs(t) - 2.0 * jnp.log1p(jnp.exp(-jnp.abs(t)))
        terms.append((log_weight, 0.5 * weights * t * t_velocity))
    return terms


kl.add(dist.Normal, Rule(_kl_value, _kl_slope, bounded=False))
reverse_kl.add(dist.Normal, Rule(_reverse_value, _reverse_slope, bounded=False))
squared_hellinger.add(dist.Normal, Rule(_hellinger_value, _hellinger_slope, bounded=True))
jensen_shannon.add(
    dist.Normal,
    Rule(differentiated(_jensen_shannon_of, True).value, _jensen_shannon_slope, bounded=True),
)
