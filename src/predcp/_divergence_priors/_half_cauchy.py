"""The half-Cauchy prior on a divergence."""

import math
from typing import Any, Self

import jax.numpy as jnp
from jaxtyping import Array
from numpyro.distributions import constraints

from predcp._divergence_priors._base import (
    DivergencePrior,
    require_tail,
)
from predcp._support.check import require_positive

_LOG_TWO_OVER_PI = math.log(2.0 / math.pi)


class HalfCauchy(DivergencePrior):
    """`kappa ~ C+(0, scale)`.

    **Arguments**: `scale`, the median.
    """

    arg_constraints = {"scale": constraints.positive}
    scale: Array

    def __init__(self, scale: Any = 1.0):
        super().__init__(scale=require_positive("scale", scale))

    @classmethod
    def from_tail(cls, upper: Any, probability: Any) -> Self:
        """P(kappa > upper) = probability, by the scale."""
        upper, probability = require_tail(upper, probability)
        return cls(upper * jnp.tan(0.5 * math.pi * probability))

    def stretched(self, log_factor: Any) -> Self:
        return self.with_parameters({"scale": self.scale * jnp.exp(log_factor)})

    def log_prob_log(self, log_kappa: Any) -> Array:
        y = log_kappa - jnp.log(self.scale)
        return _LOG_TWO_OVER_PI - jnp.abs(y) - jnp.log1p(jnp.exp(-2.0 * jnp.abs(y)))

    def log_cdf_log(self, log_kappa: Any) -> Array:
        return self._log_arctan(log_kappa - jnp.log(self.scale))

    def log_survival_log(self, log_kappa: Any) -> Array:
        return self._log_arctan(jnp.log(self.scale) - log_kappa)

    @staticmethod
    def _log_arctan(y):
        # Far in the lower tail arctan(e^y) = e^y to all digits, and e^y underflows.
        far = y < -30.0
        near = jnp.log(jnp.arctan(jnp.exp(jnp.where(far, 0.0, jnp.minimum(y, 700.0)))))
        return _LOG_TWO_OVER_PI + jnp.where(far, y, near)

    def icdf_log(self, q: Any) -> Array:
        lower = q < 0.5
        tail = jnp.where(lower, q, 1.0 - q)
        y = jnp.log(jnp.tan(0.5 * math.pi * tail))
        return jnp.log(self.scale) + jnp.where(lower, y, -y)
