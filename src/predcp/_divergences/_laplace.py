"""Laplace observations: coordinates are the location and the log scale.

With the shift `d` in units of the reference's scale and the log ratio `r` of the scales,
`KL = e^(r - |d| e^-r) + |d| - r - 1`.
"""

import jax.numpy as jnp
import numpyro.distributions as dist

from predcp._divergences._closed_form import closed_form
from predcp._divergences._divergence import Coordinates, alike, kl, register_family, reverse_kl
from predcp._numerics.special import Terms, capped_exp


@register_family(dist.Laplace, dist.Laplace)
def _coordinates(laplace: dist.Laplace) -> Coordinates:
    loc, scale = alike(laplace.loc, laplace.scale)
    return {"loc": loc, "log_scale": jnp.log(scale)}


def _kl_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    change = displacement["log_scale"]
    shift = jnp.abs(displacement["loc"]) * jnp.exp(-reference["log_scale"])
    distance = shift * capped_exp(-change)
    rest = shift - change - 1.0
    return [(jnp.zeros_like(rest), rest), (change - distance, jnp.ones_like(rest))]


# The other way round: d e^-r and -r for d and r.
def _reverse_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    change = displacement["log_scale"]
    shift = jnp.abs(displacement["loc"]) * jnp.exp(-reference["log_scale"])
    rest = change - 1.0
    return [
        (jnp.zeros_like(rest), rest),
        (-change, shift + jnp.exp(-shift)),
    ]


for _divergence, _formula in ((kl, _kl_formula), (reverse_kl, _reverse_formula)):
    _divergence.add(dist.Laplace, closed_form(_formula, ("loc", "log_scale"), bounded=False))
