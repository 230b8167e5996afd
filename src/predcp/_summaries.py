"""What a prior on a scale implies: for a coefficient, for shrinkage, for the tail, for data."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float, PyTree

from predcp._maps import Unit, require_unit
from predcp._prior import ComplexityPrior, LogScalePrior
from predcp._support.arrays import as_float
from predcp._support.check import known, require_finite
from predcp._support.compiled import compiled

# Nodes per unit of the log variance: a prior through a map is smooth there, any other may have corners.
_SMOOTH, _OTHER = 8, 64
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def unit_of(prior: dist.Distribution, unit: Unit | None) -> Unit:
    """The unit of a prior's scale, from its map or from the caller.

    **Arguments**: the prior; `unit`, None to take it from the map.
    """
    stated = prior.complexity.unit if isinstance(prior, ComplexityPrior | LogScalePrior) else None
    if unit is None and stated is None:
        raise ValueError(
            f"unit must be given for {_named(prior)}, which does not say what its scale is: "
            'unit="variance" or unit="standard deviation"'
        )
    if unit is not None and stated is not None and require_unit(unit) != stated:
        raise ValueError(f"unit is {unit!r}, but the scale of {_named(prior)} is a {stated}")
    return stated if unit is None else require_unit(unit)  # type: ignore[return-value]


def _named(prior: dist.Distribution) -> str:
    if isinstance(prior, ComplexityPrior | LogScalePrior):
        return f"a prior through {type(prior.complexity).__name__}"
    return type(prior).__name__


def _log_density_of_log_variance(prior: dist.Distribution, unit: Unit) -> Callable[[Array], Array]:
    """Log density of the log variance, for any prior on a scale."""
    if isinstance(prior, ComplexityPrior):
        prior = prior.log_scale()
    power = 0.5 if unit == "standard deviation" else 1.0

    def density(log_variance: Array) -> Array:
        log_tau = power * log_variance
        if isinstance(prior, LogScalePrior):
            return jnp.asarray(prior.log_prob(log_tau)) + math.log(power)
        return jnp.asarray(prior.log_prob(jnp.exp(log_tau))) + log_tau + math.log(power)

    return density


def _require_scalar(prior: Any) -> dist.Distribution:
    if not isinstance(prior, dist.Distribution):
        raise ValueError(f"prior must be a distribution of a scale, got {type(prior).__name__}")
    if prior.batch_shape or prior.event_shape:
        raise ValueError(
            f"prior must be of one scale, got batch shape {prior.batch_shape} and "
            f"event shape {prior.event_shape}"
        )
    if isinstance(prior, ComplexityPrior) and prior.complexity.signed:
        raise ValueError("prior is on a coefficient, not on a scale: it is its own marginal")
    return prior


def marginal(prior: dist.Distribution, beta: Any, unit: Unit | None = None) -> Float[Array, "..."]:
    """Density of a coefficient that is normal given its scale, by quadrature in the log scale.

    `beta ~ N(0, tau)` where tau is a variance, `beta ~ N(0, tau^2)` where it is a standard deviation.

    **Arguments**
    - `prior`: of a scale; one of ours, its `log_scale()`, or any positive NumPyro distribution.
    - `beta`: where to evaluate, any shape; at a pole (beta = 0) the result is very large.
    - `unit`: "variance" or "standard deviation"; None to take it from the map. The
        horseshoe is `marginal(dist.HalfCauchy(1.0), beta, unit="standard deviation")`.
    """
    points = require_finite("beta", beta)
    unit = unit_of(_require_scalar(prior), unit)
    middle = jnp.asarray(prior.icdf(jnp.asarray(0.5, points.dtype)))
    middle = middle if isinstance(prior, LogScalePrior) else jnp.log(middle)
    centre = 2.0 * middle if unit == "standard deviation" else middle
    least = jnp.sqrt(jnp.finfo(points.dtype).tiny)
    log_squares = 2.0 * jnp.log(jnp.maximum(jnp.abs(points), least))
    # Variances below beta^2 / 3000 contribute nothing; exp(-45) of the mass is left above the grid.
    low = jnp.min(log_squares, initial=centre) - 8.0
    high = jnp.max(log_squares, initial=centre) + 90.0
    span = known(high - low)
    per_unit = _SMOOTH if isinstance(prior, ComplexityPrior | LogScalePrior) else _OTHER
    # Powers of two: similar calls share one program.
    nodes = 2 ** math.ceil(math.log2(8192 if span is None else per_unit * float(span)))
    return _marginal(prior, log_squares, low, high, unit, nodes)


# The prior is an argument: another prior of the same kind is not compiled again.
@compiled(4, 5)
def _marginal(
    prior: dist.Distribution, log_squares: Array, low: Array, high: Array, unit: Unit, nodes: int
) -> Array:
    """One grid of the log variance for all points: only the normal density is theirs."""
    width = (high - low) / (nodes - 1)
    log_variance = low + width * jnp.arange(nodes, dtype=log_squares.dtype)
    weighed = _log_density_of_log_variance(prior, unit)(log_variance) - 0.5 * log_variance

    def one(log_square):
        ratio = jnp.exp(jnp.minimum(log_square - log_variance, 8.0))
        return jax.scipy.special.logsumexp(weighed - 0.5 * ratio)

    total = jax.lax.map(one, log_squares.reshape(-1), batch_size=16)
    return jnp.exp(total + jnp.log(width) - _LOG_ROOT_TWO_PI).reshape(log_squares.shape)


def shrinkage_profile(
    prior: dist.Distribution, shrinkage: Any, unit: Unit | None = None
) -> Float[Array, "..."]:
    """Density of `1 / (1 + variance)`: 1 means all shrunk to the reference, 0 left to the data.

    **Arguments**: `prior` and `unit` as in `marginal`; `shrinkage`, values in (0, 1), any shape.
    The horseshoe's is Beta(1/2, 1/2).
    """
    unit = unit_of(_require_scalar(prior), unit)
    values = require_finite("shrinkage", shrinkage)
    if not bool(jnp.all((values > 0.0) & (values < 1.0))):
        raise ValueError("shrinkage must lie strictly between 0 and 1")
    log_variance = jnp.log1p(-values) - jnp.log(values)
    density = _log_density_of_log_variance(prior, unit)(log_variance)
    # d log variance = d shrinkage / (shrinkage (1 - shrinkage)).
    return jnp.exp(density) / (values * (1.0 - values))


def tail_probability(prior: dist.Distribution, threshold: Any) -> Float[Array, "..."]:
    """P(tau > threshold): accurate however small for a predcp prior, `1 - cdf` for any other."""
    values = as_float(threshold)
    if isinstance(prior, ComplexityPrior | LogScalePrior):
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
    - `simulate`: `simulate(tau, key)` returns observations. None uses the model inside a predictive
        map, with fresh noise (evidence maps have no model to draw from).
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
