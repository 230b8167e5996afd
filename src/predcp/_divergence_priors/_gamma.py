"""The gamma prior on a divergence."""

from typing import Any, Self

import jax.numpy as jnp
from jax.scipy.special import gammainc, gammaincc, gammaln
from jaxtyping import Array
from numpyro.distributions import constraints

from predcp._divergence_priors._base import (
    DivergencePrior,
    quantile_log,
    require_tail,
    upper_quantile_log,
    with_implicit_derivative,
)
from predcp._numerics.gamma_draws import log_gamma_draws
from predcp._support.check import require_positive


def _log_gamma_cdf(shape: Array, y: Array) -> Array:
    """Log of the regularised lower incomplete gamma function at `exp(y)`."""
    far = y < -30.0
    near = jnp.log(gammainc(shape, jnp.exp(jnp.where(far, 0.0, y))))
    # Far in the lower tail only the first term of the series is left: x^k / Gamma(k + 1).
    return jnp.where(far, shape * y - gammaln(shape + 1.0), near)


class Gamma(DivergencePrior):
    """`kappa ~ Gamma(shape, scale)`: it prefers the reference when the shape is small.

    The paper prints the normaliser with `scale` where `scale ** shape` belongs.

    **Arguments**: `shape` and `scale` (the paper's lambda_1, lambda_2); the mean is their product.
    """

    arg_constraints = {"concentration": constraints.positive, "scale": constraints.positive}
    concentration: Array
    scale: Array

    def __init__(self, *, shape: Any, scale: Any):
        super().__init__(
            concentration=require_positive("shape", shape), scale=require_positive("scale", scale)
        )

    @classmethod
    def from_tail(cls, upper: Any, probability: Any, shape: Any = 0.2) -> Self:
        """P(kappa > upper) = probability, by the scale, for the given shape."""
        upper, probability = require_tail(upper, probability)
        unit = cls(shape=shape, scale=1.0)
        return cls(shape=shape, scale=upper * jnp.exp(-upper_quantile_log(unit, probability)))

    def stretched(self, log_factor: Any) -> Self:
        scale = self.scale * jnp.exp(log_factor)
        return self.with_parameters({"concentration": self.concentration, "scale": scale})

    def log_prob_log(self, log_kappa: Any) -> Array:
        y = log_kappa - jnp.log(self.scale)
        return self.concentration * y - jnp.exp(y) - gammaln(self.concentration)

    def log_cdf_log(self, log_kappa: Any) -> Array:
        shape, y = jnp.broadcast_arrays(self.concentration, log_kappa - jnp.log(self.scale))
        return _log_gamma_cdf(shape, y)

    def log_survival_log(self, log_kappa: Any) -> Array:
        shape, y = jnp.broadcast_arrays(self.concentration, log_kappa - jnp.log(self.scale))
        return jnp.log(gammaincc(shape, jnp.exp(y)))

    def icdf_log(self, q: Any) -> Array:
        # Below: x^k / Gamma(k + 1) = q.
        start = (jnp.log(q) + gammaln(self.concentration + 1.0)) / self.concentration
        return quantile_log(self, q, jnp.minimum(start, 0.0) + jnp.log(self.scale))

    def sample_log(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        dtype = jnp.result_type(float, self.concentration, self.scale)
        concentration = jnp.asarray(self.concentration, dtype)
        drawn = log_gamma_draws(key, concentration, self.shape(sample_shape))
        unit = Gamma(shape=concentration, scale=jnp.ones((), dtype))
        return with_implicit_derivative(unit, drawn) + jnp.log(self.scale)
