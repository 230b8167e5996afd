"""The log-Cauchy prior on a divergence."""

import math
from typing import Any, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array
from numpyro.distributions import constraints

from predcp._divergence_priors._base import (
    DivergencePrior,
    require_tail,
)
from predcp._support.check import require_finite, require_positive


class LogCauchy(DivergencePrior):
    """`log kappa ~ Cauchy(loc, scale)`: much mass near 0 and a very heavy tail.

    **Arguments**: `scale` (the paper's lambda) and `loc`, the log of the median.
    """

    arg_constraints = {"scale": constraints.positive, "loc": constraints.real}
    scale: Array
    loc: Array

    def __init__(self, *, scale: Any = 1.0, loc: Any = 0.0):
        super().__init__(scale=require_positive("scale", scale), loc=require_finite("loc", loc))

    @classmethod
    def from_tail(cls, upper: Any, probability: Any, scale: Any = 1.0) -> Self:
        """P(kappa > upper) = probability, by the location (no scale can do it when loc is 0)."""
        upper, probability = require_tail(upper, probability)
        scale = require_positive("scale", scale)
        # tan(pi (1/2 - p)), written so that small p keeps its digits.
        return cls(scale=scale, loc=jnp.log(upper) - scale / jnp.tan(math.pi * probability))

    def stretched(self, log_factor: Any) -> Self:
        return self.with_parameters({"scale": self.scale, "loc": self.loc + log_factor})

    def log_prob_log(self, log_kappa: Any) -> Array:
        z = (log_kappa - self.loc) / self.scale
        # log(1 + z^2) without squaring: z may be as large as floating point allows.
        return -2.0 * jnp.log(jnp.hypot(1.0, z)) - jnp.log(math.pi * self.scale)

    def log_cdf_log(self, log_kappa: Any) -> Array:
        z = (log_kappa - self.loc) / self.scale
        return jnp.log(jnp.arctan2(1.0, -z) / math.pi)

    def log_survival_log(self, log_kappa: Any) -> Array:
        z = (log_kappa - self.loc) / self.scale
        return jnp.log(jnp.arctan2(1.0, z) / math.pi)

    def icdf_log(self, q: Any) -> Array:
        lower = q < 0.5
        tail = jnp.where(lower, q, 1.0 - q)
        z = 1.0 / jnp.tan(math.pi * tail)
        return self.loc + self.scale * jnp.where(lower, -z, z)

    def sample_log(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        dtype = jnp.result_type(float, self.scale, self.loc)
        return self.loc + self.scale * jax.random.cauchy(key, self.shape(sample_shape), dtype)
