"""What a prior on a variance means: for a coefficient, for shrinkage, in the tail, for data."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float, PyTree

from predcp._prior import ComplexityPrior, LogScalePrior
from predcp._support.arrays import as_float
from predcp._support.check import require_finite
from predcp._support.compiled import compiled

_NODES = 8192
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def _log_density_of_log(prior: dist.Distribution) -> Callable[[Array], Array]:
    """The density of `log tau`, for one of our priors or any distribution of a variance."""
    if isinstance(prior, ComplexityPrior):
        prior = prior.log_scale()
    if isinstance(prior, LogScalePrior):
        return lambda log_tau: jnp.asarray(prior.log_prob(log_tau))
    return lambda log_tau: jnp.asarray(prior.log_prob(jnp.exp(log_tau))) + log_tau


def _require_scalar(prior: Any) -> dist.Distribution:
    if not isinstance(prior, dist.Distribution):
        raise ValueError(f"prior must be a distribution of a variance, got {type(prior).__name__}")
    if prior.batch_shape or prior.event_shape:
        raise ValueError(
            f"prior must be of one variance, got batch shape {prior.batch_shape} and "
            f"event shape {prior.event_shape}"
        )
    if isinstance(prior, ComplexityPrior) and prior.complexity.signed:
        raise ValueError("prior is on a coefficient, not on a variance: it is its own marginal")
    return prior


def marginal(prior: dist.Distribution, beta: Any) -> Float[Array, "..."]:
    """Density of a coefficient `beta ~ N(0, tau)`, `tau ~ prior`, by quadrature in log tau.

    **Arguments**
    - `prior`: of a variance; one of ours or any positive NumPyro distribution.
    - `beta`: where, any shape; at 0 the answer is very large where the density has a pole.
    """
    points = require_finite("beta", beta)
    centre = jnp.log(jnp.asarray(_require_scalar(prior).icdf(jnp.asarray(0.5, points.dtype))))
    return _marginal(prior, points, centre)


# By the prior's own leaves: another prior of the same kind is not compiled again.
@compiled()
def _marginal(prior: dist.Distribution, points: Array, centre: Array) -> Array:
    density = _log_density_of_log(prior)

    def one(value):
        least = jnp.sqrt(jnp.finfo(points.dtype).tiny)
        log_square = 2.0 * jnp.log(jnp.maximum(jnp.abs(value), least))
        # Below beta^2 / 3000 the normal has no mass; above, exp(-45) of it is left.
        low, high = log_square - 8.0, jnp.maximum(log_square, centre) + 90.0
        width = (high - low) / (_NODES - 1)
        log_tau = low + width * jnp.arange(_NODES, dtype=points.dtype)
        normal = -0.5 * jnp.exp(log_square - log_tau) - 0.5 * log_tau - _LOG_ROOT_TWO_PI
        return jax.scipy.special.logsumexp(density(log_tau) + normal) + jnp.log(width)

    return jnp.exp(jax.lax.map(one, points.reshape(-1))).reshape(points.shape)


def shrinkage_profile(prior: dist.Distribution, shrinkage: Any) -> Float[Array, "..."]:
    """Density of `1 / (1 + tau)`: 1 is "all shrunk to the reference", 0 "left to the data".

    **Arguments**: a prior of a variance; values in (0, 1), any shape. The horseshoe's is Beta(1/2, 1/2).
    """
    _require_scalar(prior)
    values = require_finite("shrinkage", shrinkage)
    if not bool(jnp.all((values > 0.0) & (values < 1.0))):
        raise ValueError("shrinkage must lie strictly between 0 and 1")
    tau = (1.0 - values) / values
    return jnp.exp(jnp.asarray(prior.log_prob(tau))) / values**2


def tail_probability(prior: dist.Distribution, threshold: Any) -> Float[Array, "..."]:
    """P(tau > threshold), accurate however small, for a prior of ours; any other has its cdf."""
    values = as_float(threshold)
    if isinstance(prior, ComplexityPrior):
        return prior.survival(values)
    return 1.0 - jnp.asarray(prior.cdf(values))


def prior_predictive(
    prior: ComplexityPrior,
    key: Array,
    count: int,
    simulate: Callable[[Array, Array], PyTree] | None = None,
) -> PyTree[Array]:
    """Draws of scales from the prior and of observations from the model at those scales.

    **Arguments**
    - `prior`: a complexity prior.
    - `key`, `count`: random key and number of draws.
    - `simulate`: `simulate(tau, key)` returns observations; left out, the model inside a
        predictive map is used with fresh noise (evidence maps have no model to draw from).
    """
    if not isinstance(prior, ComplexityPrior):
        raise ValueError(f"prior must be a ComplexityPrior, got {type(prior).__name__}")
    own = getattr(prior.complexity, "simulate", None)
    if simulate is None and own is None:
        raise ValueError(
            f"{type(prior.complexity).__name__} holds no model of the data: pass "
            "simulate(tau, key), which returns observations"
        )
    key_scale, key_data = jax.random.split(key)
    tau = prior.sample(key_scale, (count,))
    chosen = simulate if simulate is not None else own
    assert chosen is not None
    return jax.jit(jax.vmap(chosen))(tau, jax.random.split(key_data, count))
