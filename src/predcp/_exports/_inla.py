"""A prior as a table for R-INLA and PyINLA."""

from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicSpline

from predcp._maps import Unit

Parameter = Literal["log precision", "log standard deviation", "log variance"]
# d log(standard deviation) / d parameter.
_SLOPES = {"log precision": -0.5, "log standard deviation": 1.0, "log variance": 0.5}
_FIRST, _MOST = 129, 8193
# exp(theta) beyond these means nothing to INLA.
_FARTHEST = 100.0
_HALVES = 8


def inla_table(prior: Any, unit: Unit | None, parameter: str, tail: float, error: float) -> str:
    """The text `table: x_1 ... x_n y_1 ... y_n` of a log density.

    **Arguments**
    - `prior`: a distribution of `log tau`, with `icdf` and `log_prob`.
    - `unit`: of tau.
    - `parameter`: what INLA calls theta.
    - `tail`: probability left out at each end; it may be more, because theta stays within 100 of 0.
    - `error`: largest error of INLA's spline through the table, in the log density.
    """
    if parameter not in _SLOPES:
        raise ValueError(f"parameter must be one of {', '.join(_SLOPES)}, got {parameter!r}")
    if unit is None:
        raise ValueError(
            "INLA needs the unit of tau, and this map has none; make it with "
            "unit='variance' or unit='standard deviation'"
        )
    if prior.batch_shape or prior.event_shape:
        raise ValueError(
            f"an INLA table is of one scale, got a prior of shape {prior.shape()}; "
            "write one table for each entry"
        )
    if not 0.0 < tail < 0.5:
        raise ValueError(f"tail must be a probability below 0.5, got {tail}")
    # log tau = factor * theta.
    factor = _SLOPES[parameter] * (2.0 if unit == "variance" else 1.0)
    # Probabilities next to 1 are 1 in single precision.
    tail = max(tail, 8.0 * float(jnp.finfo(jnp.result_type(float)).eps))
    levels = jnp.asarray([tail, 0.25, 0.5, 0.75, 1.0 - tail])
    quantiles = np.sort(np.asarray(prior.icdf(levels), float) / factor)
    low, first, centre, third, high = np.clip(quantiles, -_FARTHEST, _FARTHEST)
    width = max(0.5 * (third - first), 1e-3)
    # Dense in the middle of the prior, sparse in the tails.
    begin, end = np.arcsinh((low - centre) / width), np.arcsinh((high - centre) / width)
    if not begin < end:
        raise ValueError(f"the prior has no mass where {parameter} is within {_FARTHEST:g} of 0")

    def log_density(theta: np.ndarray) -> np.ndarray:
        found = prior.log_prob(jnp.asarray(factor * theta))
        return np.asarray(found, float) + np.log(abs(factor))

    count = _FIRST
    while True:
        theta = centre + width * np.sinh(_places(begin, end, count))
        middle = 0.5 * (theta[1:] + theta[:-1])
        values = log_density(theta)
        missed = np.max(np.abs(inla_spline(theta, values)(middle) - log_density(middle)))
        if missed <= error:
            break
        count = 2 * count - 1
        if count > _MOST:
            raise ValueError(
                f"with {_MOST} points the table still misses the log density by {missed:.2g}; "
                f"leave more out with a larger tail (now {tail:g}) or allow a larger error"
            )
    numbers = " ".join(f"{number:.10g}" for number in (*theta, *values))
    return f"table: {numbers}"


def inla_spline(theta: np.ndarray, log_density: np.ndarray) -> CubicSpline:
    """The spline that INLA draws through a table: without curvature at both ends (GSL's `cspline`)."""
    return CubicSpline(theta, log_density, bc_type="natural")


def _places(begin: float, end: float, count: int) -> np.ndarray:
    """Evenly spaced places, halved towards each end, where the spline lacks the density's curvature."""
    even = np.linspace(begin, end, count)
    halves = (even[1] - begin) * 0.5 ** np.arange(_HALVES, 0, -1)
    return np.concatenate([even[:1], begin + halves, even[1:-1], end - halves[::-1], even[-1:]])
