"""Weibull observations: coordinates are the log scale and the log concentration.

With the model's concentration k and the reference's k_0, `c = k_0 / k`, and d the change of the log scale,

    KL = -log c - k_0 d - (1 - c) gamma + e^(k_0 d) Gamma(1 + c) - 1,

with Euler's constant gamma. For a shared concentration the observation is a power of an exponential one,
whose Hellinger distance is known.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array

from predcp._divergences._closed_form import closed_form, hellinger_from
from predcp._divergences._divergence import Coordinates, alike, register_family, register_rules
from predcp._numerics.special import Terms, capped_exp, log_cosh, log_gamma_1p


@register_family(dist.Weibull, dist.Weibull)
def _coordinates(weibull: dist.Weibull) -> Coordinates:
    scale, concentration = alike(weibull.scale, weibull.concentration)
    return {"log_scale": jnp.log(scale), "log_concentration": jnp.log(concentration)}


def _kl_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    ratio = capped_exp(-displacement["log_concentration"])
    stretch = jnp.exp(reference["log_concentration"]) * displacement["log_scale"]
    rest = displacement["log_concentration"] - stretch - np.euler_gamma * (1.0 - ratio) - 1.0
    return [
        (jnp.zeros_like(rest), rest),
        (stretch + log_gamma_1p(-displacement["log_concentration"]), jnp.ones_like(rest)),
    ]


# Reversed: k, -d and 1 / c take the place of k_0, d and c.
def _reverse_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    change = displacement["log_concentration"]
    ratio = capped_exp(change)
    stretch = jnp.exp(reference["log_concentration"]) * ratio * displacement["log_scale"]
    rest = stretch - change - np.euler_gamma * (1.0 - ratio) - 1.0
    return [
        (jnp.zeros_like(rest), rest),
        (log_gamma_1p(change) - stretch, jnp.ones_like(rest)),
    ]


# Equal concentrations: B = log cosh(k d / 2).
def _distance_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    stretch = jnp.exp(reference["log_concentration"]) * displacement["log_scale"]
    return [(jnp.zeros_like(stretch), log_cosh(0.5 * stretch))]


def _length(reference: Coordinates, direction: Coordinates) -> Array:
    stretch = jnp.abs(jnp.exp(reference["log_concentration"]) * direction["log_scale"])
    return jnp.maximum(stretch, jnp.abs(direction.get("log_concentration", 0.0)))


_MOVING = ("log_scale", "log_concentration")
_RULE = partial(closed_form, bounded=False, length=_length)
_DISTANCE = _RULE(_distance_formula, _MOVING[:1], fixed=_MOVING[1:])
register_rules(
    dist.Weibull,
    kl=_RULE(_kl_formula, _MOVING),
    reverse_kl=_RULE(_reverse_formula, _MOVING),
    squared_hellinger=hellinger_from(_DISTANCE),
)
