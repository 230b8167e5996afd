"""Weibull observations: coordinates are the log scale and the log concentration.

With the model's concentration k and the reference's k_0, `c = k_0 / k`, and d the change of the log scale,

    KL = -log c - k_0 d - (1 - c) gamma + e^(k_0 d) Gamma(1 + c) - 1,

gamma Euler's constant. Where the concentration is shared the observation is a power of an exponential one,
which has a Hellinger distance.
"""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from predcp._divergences._closed_form import closed_form, hellinger_from
from predcp._divergences._divergence import (
    Coordinates,
    alike,
    kl,
    register_family,
    reverse_kl,
    squared_hellinger,
)
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


# The other way round: k for k_0, -d for d and 1 / c for c.
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


_MOVING = ("log_scale", "log_concentration")
kl.add(dist.Weibull, closed_form(_kl_formula, _MOVING, bounded=False))
reverse_kl.add(dist.Weibull, closed_form(_reverse_formula, _MOVING, bounded=False))
_DISTANCE = closed_form(_distance_formula, _MOVING[:1], bounded=False, fixed=_MOVING[1:])
squared_hellinger.add(dist.Weibull, hellinger_from(_DISTANCE))
