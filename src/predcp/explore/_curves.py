"""Every curve of the charts and every number of the summary, from pi and a table, in one program."""

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Float

import predcp
from predcp.explore._table import Table, TableComplexity, inverse, value_and_elasticity

POINTS = 240
_HALF = 120
_QUADRATURE = 1536
_LINES = 40
LEVELS = (0.05, 0.5, 0.8, 0.95)


class Curves(NamedTuple):
    """The curves of one scale.

    Densities on logarithmic axes are those of the logarithm, so that areas are probabilities.

    **Arguments**
    - `kappa`, `pi`: of the divergence, with pi truncated at the supremum.
    - `tau`, `density`, `horseshoe`: of the scale, a variance.
    - `divergence`: D at `tau`.
    - `beta`, `marginal`, `marginal_horseshoe`: of a coefficient, beta > 0.
    - `shrinkage`, `profile`, `profile_horseshoe`: of `1 / (1 + tau)`.
    - `kappa_levels`, `tau_levels`: quantiles at `LEVELS`.
    - `lines_tau`: scales of the functions shown, at fixed quantiles.
    - `supremum`: of D; `dropped`: the mass of pi above it.
    - `small`: P(tau < 1), which is 1/2 under the horseshoe.
    """

    kappa: Float[Array, " points"]
    pi: Float[Array, " points"]
    tau: Float[Array, " points"]
    density: Float[Array, " points"]
    horseshoe: Float[Array, " points"]
    divergence: Float[Array, " points"]
    beta: Float[Array, " half"]
    marginal: Float[Array, " half"]
    marginal_horseshoe: Float[Array, " half"]
    shrinkage: Float[Array, " points"]
    profile: Float[Array, " points"]
    profile_horseshoe: Float[Array, " points"]
    kappa_levels: Float[Array, " levels"]
    tau_levels: Float[Array, " levels"]
    lines_tau: Float[Array, " lines"]
    supremum: Float[Array, ""]
    dropped: Float[Array, ""]
    small: Float[Array, ""]


def line_quantiles() -> Float[Array, " lines"]:
    """The quantiles of the scales of the functions: evenly spaced, so that a few lines show the prior."""
    return (jnp.arange(_LINES) + 0.5) / _LINES


@lru_cache(maxsize=1)
def line_slopes() -> Float[np.ndarray, " lines"]:
    """Standard normal slopes for those scales, in random order."""
    quantiles = (np.arange(_LINES) + 0.5) / _LINES
    return np.random.default_rng(3).permutation(np.asarray(ndtri(quantiles)))


@partial(jax.jit, static_argnums=(2, 3))
def curves(pi: predcp.DivergencePrior, table: Table, bounded: bool, log_axes: bool) -> Curves:
    """All curves.

    **Arguments**: `pi`; `table` of D; `bounded`, whether to truncate pi at the supremum; `log_axes`.
    """
    prior = predcp.ComplexityPrior(pi, TableComplexity(table, bounded)).log_scale()
    log_mass = jnp.asarray(prior.log_mass(jnp.zeros(())))
    mass = jnp.exp(log_mass)

    def density_of_log(log_tau: Array) -> Array:
        return jnp.exp(prior.log_prob(log_tau))

    levels = jnp.asarray(LEVELS)
    log_kappas = pi.icdf_log(jnp.concatenate([levels, line_quantiles()]) * mass)
    log_taus = inverse(table, log_kappas)
    kappa_levels, tau_levels = log_kappas[: len(LEVELS)], log_taus[: len(LEVELS)]

    log_kappa = _grid(kappa_levels, log_axes, table.log_supremum if bounded else None)
    log_tau = _grid(tau_levels, log_axes, None)
    per_kappa = jnp.exp(pi.log_prob_log(log_kappa) - log_mass)
    if bounded:
        per_kappa = jnp.where(log_kappa <= table.log_supremum, per_kappa, 0.0)
    per_tau, horseshoe = density_of_log(log_tau), _horseshoe_of_log(log_tau)
    if not log_axes:
        per_kappa = per_kappa * jnp.exp(-log_kappa)
        per_tau, horseshoe = per_tau * jnp.exp(-log_tau), horseshoe * jnp.exp(-log_tau)

    reach = _round_up(3.0 * jnp.exp(0.5 * jnp.clip(tau_levels[1], -9.0, 7.0)))
    beta = reach * (jnp.arange(_HALF) + 0.5) / _HALF
    middle = jnp.maximum(tau_levels[1], 0.0)
    shrinkage = (jnp.arange(POINTS) + 0.5) / POINTS
    log_odds = jnp.log1p(-shrinkage) - jnp.log(shrinkage)
    # d shrinkage = shrinkage (1 - shrinkage) d log tau.
    jacobian = 1.0 / (shrinkage * (1.0 - shrinkage))
    return Curves(
        kappa=jnp.exp(log_kappa),
        pi=per_kappa,
        tau=jnp.exp(log_tau),
        density=per_tau,
        horseshoe=horseshoe,
        divergence=jnp.exp(value_and_elasticity(table, log_tau)[0]),
        beta=beta,
        marginal=_marginal(density_of_log, beta, middle),
        marginal_horseshoe=_marginal(_horseshoe_of_log, beta, middle),
        shrinkage=shrinkage,
        profile=density_of_log(log_odds) * jacobian,
        profile_horseshoe=_horseshoe_of_log(log_odds) * jacobian,
        kappa_levels=jnp.exp(kappa_levels),
        tau_levels=jnp.exp(tau_levels),
        lines_tau=jnp.exp(log_taus[len(LEVELS) :]),
        supremum=jnp.exp(table.log_supremum),
        dropped=1.0 - mass,
        small=prior.cdf(jnp.zeros(())),
    )


def _horseshoe_of_log(log_tau: Array) -> Array:
    # The root of tau is half-Cauchy: p(log tau) = sqrt(tau) / (pi (1 + tau)).
    return 1.0 / (2.0 * jnp.pi * jnp.cosh(0.5 * log_tau))


def _grid(levels: Array, log_axes: bool, log_supremum: Array | None) -> Array:
    """Points of `log kappa` or `log tau`: whole decades, or from 0 to the 80% quantile."""
    if not log_axes:
        upper = levels[2] if log_supremum is None else jnp.minimum(levels[3], log_supremum)
        # Cubes put many points near a pole at 0.
        return upper + 3.0 * jnp.log((jnp.arange(POINTS) + 1.0) / POINTS)
    ten = jnp.log(10.0)
    # Quantiles of a log-Cauchy may be forty decades apart: show the middle ones.
    low = ten * jnp.floor(jnp.maximum(levels[0], levels[1] - 7.0 * ten) / ten)
    high = ten * jnp.ceil(jnp.minimum(levels[3], levels[1] + 7.0 * ten) / ten)
    if log_supremum is not None:
        high = jnp.minimum(high, log_supremum)
    return jnp.linspace(low, high, POINTS)


def _round_up(value: Array) -> Array:
    """The next of 1, 2, 5, 10, ..., so that an axis does not change with every step of a slider."""
    unit = 10.0 ** jnp.floor(jnp.log10(value))
    steps = unit * jnp.asarray([1.0, 2.0, 5.0, 10.0])
    return jnp.min(jnp.where(steps >= value, steps, jnp.inf))


def _marginal(density_of_log, beta: Array, middle: Array) -> Array:
    """`p(beta)`, `beta ~ N(0, tau)`, by the trapezoid rule in `log tau`, as `predcp.marginal`."""
    log_square = 2.0 * jnp.log(beta)
    # Below beta^2 / 3000 the normal has no mass; above, exp(-20) of it is left.
    low = log_square[0] - 8.0
    high = jnp.maximum(log_square[-1], middle) + 40.0
    log_tau = jnp.linspace(low, high, _QUADRATURE)
    width = (high - low) / (_QUADRATURE - 1)
    weight = density_of_log(log_tau) * width * jnp.exp(-0.5 * log_tau) / jnp.sqrt(2.0 * jnp.pi)
    return jnp.exp(-0.5 * jnp.exp(log_square[:, None] - log_tau)) @ weight
