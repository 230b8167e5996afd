"""The functions that define a complexity prior as a distribution of PyMC.

Objects, not lambdas: PyMC pickles models that it samples in processes.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytensor.tensor as pt  # pyright: ignore[reportMissingImports]
from pytensor.graph.basic import Apply  # pyright: ignore[reportMissingImports]
from pytensor.graph.op import Op  # pyright: ignore[reportMissingImports]

from predcp._divergence_priors import (
    DivergencePrior,
    Exponential,
    Gamma,
    GammaExponential,
    HalfCauchy,
    LogCauchy,
)
from predcp._prior import ComplexityPrior
from predcp.bridges._pymc_process import require_no_fork

# Beyond this exponent the log density of a tail cannot tell scales apart.
_FARTHEST = 150.0


class LogDensity:
    """Log density of `log tau`, or of tau, as a PyTensor graph; of each entry of a batch."""

    def __init__(self, prior: ComplexityPrior, of_scale: bool = False):
        table: Any = prior.complexity
        coefficients = np.asarray(table.coefficients, float)
        *batch, self.pieces, _, terms = coefficients.shape
        # The tables of a batch follow one another.
        self.coefficients = coefficients.reshape(-1, 2, terms)
        self.first = self.pieces * np.arange(np.prod(batch, dtype=int)).reshape(batch)
        self.low, self.width = np.asarray(table.low, float), np.asarray(table.width, float)
        self.bounded = table.bounded
        self.outer = np.moveaxis(np.asarray(table.outer_elasticity, float), -1, 0)
        self.slope = np.asarray(table.outer_slope, float)
        given = {name: np.asarray(value, float) for name, value in prior.pi.get_args().items()}
        self.pi = type(prior.pi).__name__, given
        self.log_mass = np.asarray(prior.log_scale().log_mass(jnp.zeros(prior.batch_shape)), float)
        self.of_scale = of_scale

    def __call__(self, value: Any, *_: Any) -> Any:
        if not self.of_scale:
            return self._of_log(value)
        inside = pt.gt(value, 0.0)
        log_tau = pt.log(pt.switch(inside, value, 1.0))
        return pt.switch(inside, self._of_log(log_tau) - log_tau, -np.inf)

    def _of_log(self, log_tau: Any) -> Any:
        position = (log_tau - self.low) / self.width
        inside = pt.clip(position, 0.0, self.pieces)
        index = pt.minimum(pt.floor(inside), self.pieces - 1).astype("int64")
        x = 2.0 * (inside - index) - 1.0
        rows = pt.as_tensor(self.coefficients)[index + self.first if self.first.size > 1 else index]
        # Horner's scheme would read each coefficient by an operation of its own, and PyMC 5 takes a
        # quarter of a microsecond for each operation.
        powers = x[..., None] ** np.arange(1.0, self.coefficients.shape[2])
        log_kappa, log_elasticity = (
            rows[..., of, 0] + pt.sum(rows[..., of, 1:] * powers, axis=-1) for of in (0, 1)
        )
        below = self.width * pt.minimum(position, 0.0)
        above = self.width * pt.maximum(position - self.pieces, 0.0)
        grown, risen = self._tail(above)
        log_kappa = log_kappa + self.outer[0] * below + self.outer[1] * grown
        return _log_pi(self.pi, log_kappa) + log_elasticity + risen - self.log_mass

    def _tail(self, above: Any) -> tuple[Any, Any]:
        """What the elasticity of 1 at the upper end adds to log kappa, and its logarithm."""
        if not np.any(self.slope):
            return above, 0.0
        if self.bounded:
            return 0.0, self.slope * above
        slope = np.maximum(self.slope, 1e-30)
        exponent = pt.minimum(slope * above, _FARTHEST)
        return pt.expm1(exponent) / slope, exponent


@jax.jit
def _quantiles(log_scale: Any, q: Any) -> Any:
    return log_scale.icdf(q)


class Draws:
    """Draws of `log tau`, or of tau, from NumPy's generators: quantiles of uniform numbers."""

    def __init__(self, prior: ComplexityPrior, of_scale: bool = False):
        self.prior, self.of_scale = prior, of_scale

    def __call__(self, rng: np.random.Generator, size: Any = None) -> np.ndarray:
        require_no_fork("a draw of this prior")
        shape = () if size is None else tuple(np.atleast_1d(size))
        # Neither end is drawn, because quantiles of heavy tails are infinite there.
        q = np.clip(rng.random(shape), 2.0**-54, 1.0 - 2.0**-53)
        drawn = np.asarray(_quantiles(self.prior.log_scale(), q))
        return np.exp(drawn) if self.of_scale else drawn

    def numpyro_prior(self) -> Any:
        """The distribution that is drawn from: what `with_complexity` puts in the place of a prior."""
        return self.prior if self.of_scale else self.prior.log_scale()


class Median:
    """The median, where samplers start."""

    def __init__(self, prior: ComplexityPrior, of_scale: bool = False):
        median = float(prior.log_scale().icdf(jnp.asarray(0.5)))
        self.value = float(np.exp(median)) if of_scale else median

    def __call__(self, rv: Any, size: Any, *_: Any) -> Any:
        return pt.full(rv.shape, self.value)


class Quantile(Op):
    """Quantiles of `log tau`, or of tau, as an operation of PyTensor without a gradient."""

    def __init__(self, prior: ComplexityPrior, of_scale: bool = False):
        self.prior, self.of_scale = prior, of_scale

    def make_node(self, value: Any) -> Any:
        """The node of the graph that computes quantiles of these probabilities."""
        return Apply(self, [value], [value.type()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        """Compute them."""
        require_no_fork("a quantile of this prior")
        log_tau = np.asarray(self.prior.log_scale().icdf(jnp.asarray(inputs[0])))
        found = np.exp(log_tau) if self.of_scale else log_tau
        output_storage[0][0] = np.asarray(found, node.outputs[0].dtype)


_FAMILIES = (LogCauchy, HalfCauchy, Exponential, Gamma, GammaExponential)


def has_graph(pi: DivergencePrior) -> bool:
    """Whether the density of pi is written in PyTensor here."""
    return isinstance(pi, _FAMILIES)


def _log_pi(pi: tuple[str, dict[str, np.ndarray]], y: Any) -> Any:
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


def _log_exponential(y: Any, mean: np.ndarray) -> Any:
    z = y - np.log(mean)
    return z - pt.exp(z)


def _log_gamma(y: Any, shape: np.ndarray, scale: np.ndarray) -> Any:
    z = y - np.log(scale)
    return shape * z - pt.exp(z) - np.asarray(jax.scipy.special.gammaln(shape), float)
