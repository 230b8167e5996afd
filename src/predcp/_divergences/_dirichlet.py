"""Dirichlet and beta observations: the coordinates are the log concentrations.

With concentrations alpha_k of sum A for the model and alpha_0k, A_0 for the reference,

    KL = log B(alpha_0) - log B(alpha) + sum_k (alpha_k - alpha_0k) (psi(alpha_k) - psi(A)),

where B is the multivariate beta function and psi the digamma function.
"""

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.nn import logsumexp
from jaxtyping import Array

from predcp._divergences._closed_form import closed_form, hellinger_from
from predcp._divergences._divergence import Coordinates, alike, register_family, register_rules
from predcp._numerics.special import (
    Terms,
    digamma_1p,
    exponential_excess,
    log_mean_exp_zero,
    stirling_gap,
    stirling_rest_gap,
)


@register_family(dist.Dirichlet, dist.Dirichlet, class_axes=1)
def _coordinates(dirichlet: dist.Dirichlet) -> Coordinates:
    return {"log_concentration": jnp.log(jnp.asarray(dirichlet.concentration))}


@register_family(dist.Dirichlet, dist.Beta, class_axes=1)
def _beta_coordinates(beta: dist.Beta) -> Coordinates:
    pair = alike(beta.concentration1, beta.concentration0)
    return {"log_concentration": jnp.stack([jnp.log(one) for one in pair], axis=-1)}


def _entropy_part(log_a: Array) -> Array:
    """`a psi(a) - log Gamma(a) - a`"""
    return stirling_gap(log_a) - 1.0 + log_a


def _log_beta_part(log_a: Array) -> Array:
    """`log Gamma(a) - a (psi(a + 1) - 1)`"""
    return -log_a - stirling_gap(log_a)


def _kl_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    log_a0 = reference["log_concentration"]
    log_a = log_a0 + displacement["log_concentration"]
    log_sum, log_sum0 = logsumexp(log_a, axis=-1), logsumexp(log_a0, axis=-1)
    lift = digamma_1p(log_sum)[..., None] - digamma_1p(log_a)
    # log B(alpha_0) and its parts are those of the model at the reference.
    rest = (
        jnp.sum(_entropy_part(log_a), -1) - _entropy_part(log_sum)
        + jnp.sum(jnp.exp(log_a0) * (lift - digamma_1p(log_sum0)[..., None] + digamma_1p(log_a0)), -1)
        + jnp.sum(_log_beta_part(log_a0), -1) - _log_beta_part(log_sum0)
    )  # fmt: skip
    ones = jnp.ones_like(rest)
    return [
        (jnp.zeros_like(rest), rest),
        *((log_a0[..., k] - log_a[..., k], ones) for k in range(log_a.shape[-1])),
        (log_sum0 - log_sum, -ones),
    ]


def _reverse_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    log_a0 = reference["log_concentration"]
    log_a = log_a0 + displacement["log_concentration"]
    log_sum, log_sum0 = logsumexp(log_a, axis=-1), logsumexp(log_a0, axis=-1)
    mean = digamma_1p(log_a0) - jnp.exp(-log_a0)
    mean = mean - (digamma_1p(log_sum0) - jnp.exp(-log_sum0))[..., None]
    rest = (
        jnp.sum(_entropy_part(log_a0), -1) - _entropy_part(log_sum0)
        + jnp.sum(_log_beta_part(log_a), -1) - _log_beta_part(log_sum)
    )  # fmt: skip
    lift = digamma_1p(log_a) - digamma_1p(log_sum)[..., None] - mean
    return [
        (jnp.zeros_like(rest), rest),
        *((log_a[..., k], lift[..., k]) for k in range(log_a.shape[-1])),
    ]


# Bhattacharyya distance: the mean KL of both means from the mean of the concentrations, and what Stirling's
# formula leaves.
def _distance_formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    log_a0, change = reference["log_concentration"], displacement["log_concentration"]
    log_sum0 = logsumexp(log_a0, axis=-1)
    grown = logsumexp(log_a0 + change, axis=-1) - log_sum0
    rest = stirling_rest_gap(log_a0, change).sum(-1) - stirling_rest_gap(log_sum0, grown)
    terms = [(jnp.zeros_like(rest), rest)]
    for log_a, sign in ((log_a0 + change, -1.0), (log_a0, 1.0)):
        move = log_mean_exp_zero(sign * change) - log_mean_exp_zero(sign * grown)[..., None]
        for weight, excess in exponential_excess(move, jnp.zeros((), move.dtype)):
            terms += [
                (log_a[..., k] + weight[..., k], 0.5 * excess[..., k])
                for k in range(move.shape[-1])
            ]
    return terms


_KL, _REVERSE, _DISTANCE = (
    closed_form(formula, ("log_concentration",), bounded=False, event_axes=1)
    for formula in (_kl_formula, _reverse_formula, _distance_formula)
)
register_rules(
    dist.Dirichlet, kl=_KL, reverse_kl=_REVERSE, squared_hellinger=hellinger_from(_DISTANCE)
)
