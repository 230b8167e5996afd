"""Complexity priors in PyMC models.

The density is written in PyTensor from the table that `ComplexityPrior.tabulated` makes, so that
every sampler and backend of PyMC can use it, and no call leaves PyTensor.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from predcp._divergence_priors import (
    DivergencePrior,
    Exponential,
    Gamma,
    GammaExponential,
    HalfCauchy,
    LogCauchy,
)
from predcp._prior import ComplexityPrior
from predcp._support.extras import needs

with needs("pymc"):
    import pymc as pm  # pyright: ignore[reportMissingImports]
    import pytensor.tensor as pt  # pyright: ignore[reportMissingImports]
    from pymc.distributions.transforms import (  # pyright: ignore[reportMissingImports]
        log as log_transform,
    )


def scale(name: str, prior: ComplexityPrior, **options: Any) -> Any:
    """Add a scale with a complexity prior to the model: `tau = scale("tau", prior)`.

    The sampled variable is `log_NAME`, since heavy-tailed pi leave floating point on the scale
    itself; NAME is its exponential.

    **Arguments**
    - `name` of the scale.
    - `prior`: of one scale, with known arrays.
    - `options`: `dims` or `shape` for several scales with the same prior, independent of each
        other; anything else that `pymc.CustomDist` takes.

    **Returns** the scale.
    """
    log_tau = log_scale(f"log_{name}", prior, **options)
    return pm.Deterministic(name, pt.exp(log_tau), dims=options.get("dims"))


def log_scale(name: str, prior: ComplexityPrior, **options: Any) -> Any:
    """Add the logarithm of a scale to the model. **Arguments**: as `scale`."""
    quick = _table(prior)
    # Named, not a lambda: PyMC pickles models that it samples in processes.
    return pm.CustomDist(name, logp=_LogDensity(quick), random=_Draws(quick), **options)


def dist(prior: ComplexityPrior, **options: Any) -> Any:
    """The prior of the scale itself as an unnamed PyMC distribution, for `pm.draw` and the like.

    **Arguments**: as `scale`.
    """
    quick = _table(prior)
    return pm.CustomDist.dist(
        logp=_LogDensity(quick, of_scale=True), random=_Draws(quick, of_scale=True), **options
    )


def named_dist(name: str, prior: ComplexityPrior, **options: Any) -> Any:
    """Add the scale itself to the model, sampled through its logarithm by PyMC's own transform.

    For libraries that ask for one variable, such as Bambi. **Arguments**: as `scale`.
    """
    quick = _table(prior)
    return pm.CustomDist(
        name,
        logp=_LogDensity(quick, of_scale=True),
        random=_Draws(quick, of_scale=True),
        default_transform=log_transform,
        **options,
    )


def _table(prior: ComplexityPrior) -> ComplexityPrior:
    if not isinstance(prior, ComplexityPrior):
        raise ValueError(f"prior must be a ComplexityPrior, got {type(prior).__name__}")
    if prior.batch_shape or prior.event_shape or prior.complexity.signed:
        raise ValueError(
            f"prior must be of one positive scale, got shape {prior.shape()} of "
            f"{type(prior.complexity).__name__}; give dims or shape for scales that share a prior"
        )
    return prior.tabulated()


class _LogDensity:
    """Log density of `log tau`, or of tau, as a PyTensor graph."""

    def __init__(self, prior: ComplexityPrior, of_scale: bool = False):
        table: Any = prior.complexity
        self.coefficients = np.asarray(table.coefficients, float)
        self.low, self.width = float(table.low), float(table.width)
        self.bounded = table.bounded
        self.outer = np.asarray(table.outer_elasticity, float)
        self.slope = float(table.outer_slope)
        self.pi = _plain(prior.pi)
        self.log_mass = float(jnp.asarray(prior.log_scale().log_mass(jnp.zeros(()))))
        self.of_scale = of_scale

    def __call__(self, value: Any) -> Any:
        if not self.of_scale:
            return self._of_log(value)
        inside = pt.gt(value, 0.0)
        log_tau = pt.log(pt.switch(inside, value, 1.0))
        return pt.switch(inside, self._of_log(log_tau) - log_tau, -np.inf)

    def _of_log(self, log_tau: Any) -> Any:
        pieces = self.coefficients.shape[0]
        position = (log_tau - self.low) / self.width
        inside = pt.clip(position, 0.0, pieces)
        index = pt.minimum(pt.floor(inside), pieces - 1).astype("int64")
        x = 2.0 * (inside - index) - 1.0
        rows = pt.as_tensor(self.coefficients)[index]
        log_kappa, log_elasticity = rows[..., 0, -1], rows[..., 1, -1]
        for place in range(self.coefficients.shape[2] - 2, -1, -1):
            log_kappa = log_kappa * x + rows[..., 0, place]
            log_elasticity = log_elasticity * x + rows[..., 1, place]
        below = self.width * pt.minimum(position, 0.0)
        above = self.width * pt.maximum(position - pieces, 0.0)
        log_kappa = log_kappa + self.outer[0] * below
        if not self.bounded:
            log_kappa = log_kappa + self.outer[1] * above
        log_elasticity = log_elasticity + self.slope * above
        return _log_pi(self.pi, log_kappa) + log_elasticity - self.log_mass


class _Draws:
    """Draws of `log tau`, or of tau, from NumPy's generators."""

    def __init__(self, prior: ComplexityPrior, of_scale: bool = False):
        self.prior, self.of_scale = prior, of_scale

    def __call__(self, rng: np.random.Generator, size: Any = None) -> np.ndarray:
        key = jax.random.key(int(rng.integers(2**31)))
        shape = () if size is None else tuple(np.atleast_1d(size))
        drawn = np.asarray(self.prior.log_scale().sample(key, shape))
        return np.exp(drawn) if self.of_scale else drawn


def _plain(pi: DivergencePrior) -> tuple[str, dict[str, float]]:
    """The family of pi and its parameters."""
    families = (LogCauchy, HalfCauchy, Exponential, Gamma, GammaExponential)
    if not isinstance(pi, families):
        raise ValueError(
            f"pi must be {', '.join(family.__name__ for family in families)} to be used in PyMC, "
            f"got {type(pi).__name__}"
        )
    return type(pi).__name__, {name: float(value) for name, value in pi.get_args().items()}


def _log_pi(pi: tuple[str, dict[str, float]], y: Any) -> Any:
    """Log density of `y = log kappa`."""
    family, given = pi
    if family == "LogCauchy":
        z = (y - given["loc"]) / given["scale"]
        return -pt.log1p(z**2) - np.log(np.pi * given["scale"])
    if family == "HalfCauchy":
        z = y - np.log(given["scale"])
        return np.log(2.0 / np.pi) - pt.logaddexp(z, -z)
    if family == "Exponential":
        return _log_exponential(y, given["scale"])
    if family == "Gamma":
        return _log_gamma(y, given["concentration"], given["scale"])
    return pt.logaddexp(
        np.log(given["weight"]) + _log_gamma(y, given["concentration"], given["scale"]),
        np.log1p(-given["weight"]) + _log_exponential(y, given["exponential_mean"]),
    )


def _log_exponential(y: Any, mean: float) -> Any:
    z = y - np.log(mean)
    return z - pt.exp(z)


def _log_gamma(y: Any, shape: float, scale: float) -> Any:
    z = y - np.log(scale)
    return shape * z - pt.exp(z) - float(jax.scipy.special.gammaln(shape))
