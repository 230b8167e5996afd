"""Gamma observations, and families that a fixed change of variables turns into gammas.

Coordinates are the log concentration and the log rate. With `a` the model's concentration, `a_0` the
reference's, `r` the change of the log rate and psi the digamma function,

    KL = a psi(a) - log Gamma(a) - a - a_0 psi(a) + log Gamma(a_0) + a_0 r + a e^-r.

Divergences are invariant under transformations of the observation, so exponential, Pareto,
Kumaraswamy, Gumbel, Levy, inverse gamma and chi-squared observations have the same rules.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array

from predcp._divergences._closed_form import closed_form, hellinger_from
from predcp._divergences._divergence import Coordinates, alike, register_family, register_rules
from predcp._numerics.special import Terms, digamma_1p, log_cosh, stirling_gap, stirling_rest_gap

Weigh = Callable[[Array, Array], Array]


@register_family(dist.Gamma, dist.Gamma, dist.InverseGamma)
def gamma_coordinates(gamma: Any) -> Coordinates:
    """Log concentration and log rate."""
    concentration, rate = alike(gamma.concentration, gamma.rate)
    return {"log_concentration": jnp.log(concentration), "log_rate": jnp.log(rate)}


def _exponential(log_rate: Array, **fixed: Array) -> Coordinates:
    return {"log_concentration": jnp.zeros_like(log_rate), "log_rate": log_rate, **fixed}


@register_family(dist.Gamma, dist.Exponential)
def _exponential_coordinates(exponential: dist.Exponential) -> Coordinates:
    return _exponential(jnp.log(*alike(exponential.rate)))


# The families below are gammas only for a fixed value of one parameter, which must not move.
@register_family(dist.Gumbel, dist.Gumbel)
def _gumbel_coordinates(gumbel: dist.Gumbel) -> Coordinates:
    loc, scale = alike(gumbel.loc, gumbel.scale)
    return _exponential(loc / scale, scale=scale)


@register_family(dist.Pareto, dist.Pareto)
def _pareto_coordinates(pareto: dist.Pareto) -> Coordinates:
    scale, alpha = alike(pareto.scale, pareto.alpha)
    return _exponential(jnp.log(alpha), scale=scale)


@register_family(dist.Pareto, dist.LowerTruncatedPowerLaw)
def _power_law_coordinates(law: dist.LowerTruncatedPowerLaw) -> Coordinates:
    power, low = alike(law.alpha, law.low)
    return _exponential(jnp.log(-1.0 - power), scale=low)


@register_family(dist.Kumaraswamy, dist.Kumaraswamy)
def _kumaraswamy_coordinates(made: dist.Kumaraswamy) -> Coordinates:
    inner, outer = alike(made.concentration1, made.concentration0)
    return _exponential(jnp.log(outer), concentration1=inner)


@register_family(dist.Levy, dist.Levy)
def _levy_coordinates(levy: dist.Levy) -> Coordinates:
    loc, scale, half = alike(levy.loc, levy.scale, 0.5)
    return {"log_concentration": jnp.log(half), "log_rate": jnp.log(scale), "loc": loc}


def kl_formula(
    reference: Coordinates, displacement: Coordinates, weigh: Weigh = jnp.add
) -> list[Terms]:
    """Terms of KL.

    **Arguments**: `weigh`, which combines the part of a log weight from the reference with the part
    that moves.
    """
    log_a0, log_ratio = reference["log_concentration"], displacement["log_concentration"]
    change = displacement["log_rate"]
    log_a, a_0 = log_a0 + log_ratio, jnp.exp(log_a0)
    # psi(a) = psi(a + 1) - 1 / a, and log Gamma(a) = log Gamma(a + 1) - log a
    rest = stirling_gap(log_a) - 1.0 + log_a - a_0 * digamma_1p(log_a) + gammaln(a_0) + a_0 * change
    zero = jnp.zeros_like(rest)
    return [
        (weigh(zero, zero), rest),
        (weigh(log_a0, log_ratio - change), jnp.ones_like(rest)),
        (weigh(zero, -log_ratio), jnp.ones_like(rest)),
    ]


def _reverse_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    log_a0, log_ratio = reference["log_concentration"], displacement["log_concentration"]
    change = displacement["log_rate"]
    log_a, psi = log_a0 + log_ratio, digamma_1p(log_a0) - jnp.exp(-log_a0)
    # log Gamma(a) = a (psi(a + 1) - 1) - log a - stirling_gap(a)
    rest = stirling_gap(log_a0) - 1.0 + log_a0 - log_a - stirling_gap(log_a)
    return [
        (jnp.zeros_like(rest), rest),
        (log_a, digamma_1p(log_a) - 1.0 - psi - change),
        (log_a0 + change, jnp.ones_like(rest)),
    ]


# Bhattacharyya distance: with m the mean of the concentrations, d the change of their log and F as there,
# m (log cosh(r / 2) - log cosh(d / 2) + tanh(d / 2) (d - r) / 2) + (F(a) + F(a_0)) / 2 - F(m).
def _distance_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    log_a0, grown = reference["log_concentration"], displacement["log_concentration"]
    change, bend = displacement["log_rate"], log_cosh(0.5 * grown)
    # The large parts of the three are |r| / 2, -|d| / 2 and sign(d) (d - r) / 2.
    sign, decay, other = jnp.sign(grown), jnp.exp(-jnp.abs(grown)), jnp.exp(-jnp.abs(change))
    within = 0.5 * (jnp.abs(change) - sign * change) + jnp.log1p(other) - jnp.log1p(decay)
    within = within - sign * (grown - change) * decay / (1.0 + decay)
    rest = stirling_rest_gap(log_a0, grown)
    return [(log_a0 + 0.5 * grown + bend, within), (jnp.zeros_like(rest), rest)]


MOVING = ("log_concentration", "log_rate")
_RULES = {
    "kl": closed_form(kl_formula, MOVING, bounded=False),
    "reverse_kl": closed_form(_reverse_formula, MOVING, bounded=False),
    "squared_hellinger": hellinger_from(closed_form(_distance_formula, MOVING, bounded=False)),
}
for _family, _fixed in (
    (dist.Gamma, ()),
    (dist.Gumbel, ("scale",)),
    (dist.Pareto, ("scale",)),
    (dist.Kumaraswamy, ("concentration1",)),
    (dist.Levy, ("loc",)),
):
    register_rules(_family, **{name: rule._replace(fixed=_fixed) for name, rule in _RULES.items()})
