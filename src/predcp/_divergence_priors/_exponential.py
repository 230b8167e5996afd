"""The exponential prior on a divergence."""

from typing import Any, Self

import jax.numpy as jnp
from jaxtyping import Array
from numpyro.distributions import constraints

from predcp._divergence_priors._base import DivergencePrior, require_tail
from predcp._support.check import require_positive


class Exponential(DivergencePrior):
    """`kappa ~ Exp` with the given mean (the paper's lambda): it prefers the richer model.

    **Arguments**: `mean`.
    """

    arg_constraints = {"scale": constraints.positive}
    scale: Array

    def __init__(self, *, mean: Any = 1.0):
        super().__init__(scale=require_positive("mean", mean))

    @property
    def mean(self) -> Array:
        return self.scale

    @classmethod
    def from_tail(cls, upper: Any, probability: Any) -> Self:
        """P(kappa > upper) = probability, by the mean."""
        upper, probability = require_tail(upper, probability)
        return cls(mean=-upper / jnp.log(probability))

    def stretched(self, log_factor: Any) -> Self:
        return self.with_parameters({"scale": self.scale * jnp.exp(log_factor)})

    def log_prob_log(self, log_kappa: Any) -> Array:
        y = log_kappa - jnp.log(self.scale)
        return y - jnp.exp(y)

    def log_cdf_log(self, log_kappa: Any) -> Array:
        y = log_kappa - jnp.log(self.scale)
        far = y < -40.0
        return jnp.where(far, y, jnp.log(-jnp.expm1(-jnp.exp(jnp.where(far, 0.0, y)))))

    def log_survival_log(self, log_kappa: Any) -> Array:
        return -jnp.exp(log_kappa - jnp.log(self.scale))

    def icdf_log(self, q: Any) -> Array:
        return jnp.log(self.scale) + jnp.log(-jnp.log1p(-q))
