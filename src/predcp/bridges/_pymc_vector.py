"""A prior without a table as the functions of a PyMC distribution: JAX inside the PyTensor graph.

For scales that depend on those before them, and for any pi.
Objects, not lambdas: PyMC pickles models that it samples in processes.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytensor.tensor as pt  # pyright: ignore[reportMissingImports]
from pytensor.gradient import DisconnectedType  # pyright: ignore[reportMissingImports]
from pytensor.link.jax.ops import JAXOp  # pyright: ignore[reportMissingImports]

from predcp._prior import ComplexityPrior
from predcp.bridges._pymc_process import require_no_fork


class DensityAndSlope(JAXOp):
    """Log densities and their slopes, in one call of JAX; refused in a forked process, where JAX hangs."""

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """Compute both, or say how to sample."""
        require_no_fork("the density of this prior, which has no table,")
        super().perform(node, inputs, outputs)

    def pullback(self, inputs: Any, outputs: Any, output_gradients: Any) -> Any:
        """The slopes, times the gradients of the densities."""
        gradient, of_slope = output_gradients
        if not isinstance(of_slope.type, DisconnectedType):
            raise NotImplementedError("a prior without a table has no second derivatives in PyMC")
        slope = outputs[1]
        return [pt.shape_padright(gradient, slope.type.ndim - gradient.type.ndim) * slope]

    # What PyMC 5 calls it.
    L_op = pullback


class VectorLogDensity:
    """Log density of `log tau`, or of tau, through JAX."""

    def __init__(self, prior: ComplexityPrior, of_scale: bool):
        self.prior, self.of_scale = prior, of_scale

    def __call__(self, value: Any, *_: Any) -> Any:
        # `pytensor.wrap_jax` wants shapes that are known, which those of `dims` are not.
        outer = value.type.shape[: value.type.ndim - len(self.prior.event_shape)]
        found = pt.TensorType(value.type.dtype, shape=outer)
        made: Any = DensityAndSlope([value.type], [found, value.type], self._both)(value)
        return made[0]

    def _both(self, value: Any) -> tuple[Any, Any]:
        prior = self.prior if self.of_scale else self.prior.log_scale()

        def total(value: Any) -> tuple[Any, Any]:
            each = prior.log_prob(value)
            return jnp.sum(each), each

        (_, each), slope = jax.value_and_grad(total, has_aux=True)(value)
        return each, slope


class VectorDraws:
    """Draws of `log tau`, or of tau, by JAX from keys that NumPy's generators make."""

    def __init__(self, prior: ComplexityPrior, of_scale: bool):
        self.prior, self.of_scale = prior, of_scale

    def __call__(self, *_: Any, rng: np.random.Generator, size: Any = None) -> np.ndarray:
        require_no_fork("a draw of this prior")
        shape = () if size is None else tuple(np.atleast_1d(size))
        key = jax.random.key(rng.integers(2**63))
        # The size of several independent scales has their number in it.
        outer = shape[: len(shape) - len(self.prior.batch_shape)]
        drawn = np.asarray(self.prior.log_scale().sample(key, outer))
        return np.exp(drawn) if self.of_scale else drawn

    def numpyro_prior(self, *_: Any) -> Any:
        """The distribution that is drawn from: what `with_complexity` puts in the place of a prior."""
        return self.prior if self.of_scale else self.prior.log_scale()


class Start:
    """Where samplers start: the parameter, which is the median."""

    def __call__(self, rv: Any, size: Any, start: Any) -> Any:
        return pt.broadcast_to(start, rv.shape)


def median(prior: ComplexityPrior, of_scale: bool) -> np.ndarray:
    """The median of each scale, given the medians of those before it."""
    log_prior = prior.log_scale()
    log_tau = np.asarray(log_prior.icdf(jnp.full(log_prior.shape(), 0.5)))
    return np.exp(log_tau) if of_scale else log_tau
