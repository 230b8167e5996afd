"""Poisson observations: the coordinate is the log rate."""

import jax.numpy as jnp
import numpyro.distributions as dist

from predcp._divergences._divergence import Coordinates, Rule, kl, register_family, reverse_kl
from predcp._special import expm1_minus, expm1_minus_scaled


@register_family(dist.Poisson, dist.Poisson)
def _coordinates(poisson: dist.Poisson) -> Coordinates:
    return {"log_rate": jnp.log(jnp.asarray(poisson.rate))}


# KL = r_0 (1 - e^d + d e^d), reverse KL = r_0 (e^d - 1 - d), with d the change of the log rate.
def _terms(log_rate, direction, log_size, forward: bool):
    change = direction * jnp.exp(log_size)
    tiny = jnp.abs(change) < jnp.finfo(change.dtype).eps
    # exp(d) leaves floating point long before d does: keep it in the weight when it grows.
    grows = change > 0.0
    up, down = jnp.where(grows, change, 0.0), jnp.where(grows, 0.0, change)
    if forward:
        far = jnp.where(grows, expm1_minus(-up), expm1_minus_scaled(-down))
    else:
        far = jnp.where(grows, expm1_minus_scaled(up), expm1_minus(down))
    return [
        (
            log_rate + jnp.where(tiny, 2.0 * log_size, up),
            jnp.where(tiny, 0.5 * direction**2, far),
        )
    ]


def _value(reference, direction, log_size):
    return _terms(reference["log_rate"], direction["log_rate"], log_size, forward=True)


def _slope(reference, direction, log_size, velocity):
    change = direction["log_rate"] * jnp.exp(log_size)
    log_weight = reference["log_rate"] + change + 2.0 * log_size
    return [(log_weight, direction["log_rate"] * velocity["log_rate"])]


def _reverse_value(reference, direction, log_size):
    return _terms(reference["log_rate"], direction["log_rate"], log_size, forward=False)


def _reverse_slope(reference, direction, log_size, velocity):
    change = direction["log_rate"] * jnp.exp(log_size)
    up = jnp.maximum(change, 0.0)
    step = -jnp.expm1(-jnp.abs(change)) * jnp.sign(change)
    return [(reference["log_rate"] + up + log_size, step * velocity["log_rate"])]


kl.add(dist.Poisson, Rule(_value, _slope, bounded=False))
reverse_kl.add(dist.Poisson, Rule(_reverse_value, _reverse_slope, bounded=False))
