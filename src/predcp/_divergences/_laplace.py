"""Laplace observations: coordinates are the location and the log scale.

With the shift `d` in units of the reference's scale and the log ratio `r` of the scales,
`KL = e^(r - |d| e^-r) + |d| - r - 1`. With l <= g half the shift in units of the larger and of the smaller
scale, the Bhattacharyya distance is

    B = l + |r| / 2 - log( (1 + e^(l - g)) / (1 + e^-|r|) + g (1 - e^(l - g)) / (g - l) ).
"""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array

from predcp._divergences._closed_form import closed_form, hellinger_from
from predcp._divergences._divergence import Coordinates, alike, register_family, register_rules
from predcp._numerics.special import Terms, capped_exp

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_NODES = 0.5 + 0.5 * _NODES


@register_family(dist.Laplace, dist.Laplace)
def _coordinates(laplace: dist.Laplace) -> Coordinates:
    loc, scale = alike(laplace.loc, laplace.scale)
    return {"loc": loc, "log_scale": jnp.log(scale)}


def _shift(reference: Coordinates, displacement: Coordinates) -> Array:
    return jnp.abs(displacement["loc"]) * jnp.exp(-reference["log_scale"])


def _kl_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    change, shift = displacement["log_scale"], _shift(reference, displacement)
    rest = shift - change - 1.0
    return [
        (jnp.zeros_like(rest), rest),
        (change - shift * capped_exp(-change), jnp.ones_like(rest)),
    ]


# Reversed: d e^-r and -r take the place of d and r.
def _reverse_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    change, shift = displacement["log_scale"], _shift(reference, displacement)
    rest = change - 1.0
    return [
        (jnp.zeros_like(rest), rest),
        (-change, shift + jnp.exp(-shift)),
    ]


def _mean_exp(x: Array) -> Array:
    """`(e^x - 1) / x` for x <= 0; near 0 the mean of e^(x u), u from 0 to 1: its derivatives are exact."""
    small = x > -1.0
    powers = jnp.exp(jnp.where(small, x, 0.0)[..., None] * jnp.asarray(_NODES, x.dtype))
    near = jnp.sum(0.5 * jnp.asarray(_WEIGHTS, x.dtype) * powers, -1)
    far = jnp.where(small, -1.0, x)
    return jnp.where(small, near, jnp.expm1(far) / far)


def _distance_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    change, shift = displacement["log_scale"], 0.5 * _shift(reference, displacement)
    ratio = jnp.abs(change)
    less = shift * jnp.exp(-jnp.maximum(change, 0.0))
    more = shift * capped_exp(-jnp.minimum(change, 0.0))
    overlap = (1.0 + jnp.exp(less - more)) / (1.0 + jnp.exp(-ratio)) + more * _mean_exp(less - more)
    distance = less + 0.5 * ratio - jnp.log(overlap)
    return [(jnp.zeros_like(distance), distance)]


def _length(reference: Coordinates, direction: Coordinates) -> Array:
    return jnp.maximum(_shift(reference, direction), jnp.abs(direction["log_scale"]))


_MOVING = ("loc", "log_scale")
_KL, _REVERSE, _DISTANCE = (
    closed_form(formula, _MOVING, bounded=False, length=_length)
    for formula in (_kl_formula, _reverse_formula, _distance_formula)
)
register_rules(
    dist.Laplace, kl=_KL, reverse_kl=_REVERSE, squared_hellinger=hellinger_from(_DISTANCE)
)
