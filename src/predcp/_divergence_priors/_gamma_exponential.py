"""A mixture of a gamma and an exponential prior on a divergence."""

from typing import Any, Self

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array
from numpyro.distributions import constraints

from predcp._divergence_priors._base import (
    DivergencePrior,
    quantile_log,
    require_tail,
    upper_quantile_log,
    with_implicit_derivative,
)
from predcp._divergence_priors._exponential import Exponential
from predcp._divergence_priors._gamma import Gamma
from predcp._support.check import require_positive, require_probability


class GammaExponential(DivergencePrior):
    """`weight Gamma(shape, scale) + (1 - weight) Exp(mean)`: mass at the reference and at richer models.

    **Arguments**: `weight` of the gamma in (0, 1), its `shape` and `scale`, the exponential's `mean`.
    """

    arg_constraints = {
        "weight": constraints.unit_interval,
        "concentration": constraints.positive,
        "scale": constraints.positive,
        "exponential_mean": constraints.positive,
    }
    weight: Array
    concentration: Array
    scale: Array
    exponential_mean: Array

    def __init__(self, *, weight: Any = 0.5, shape: Any = 0.2, scale: Any = 2.0, mean: Any = 0.5):
        super().__init__(
            weight=require_probability("weight", weight),
            concentration=require_positive("shape", shape),
            scale=require_positive("scale", scale),
            exponential_mean=require_positive("mean", mean),
        )

    @classmethod
    def from_tail(
        cls,
        upper: Any,
        probability: Any,
        weight: Any = 0.5,
        shape: Any = 0.2,
        scale: Any = 2.0,
        mean: Any = 0.5,
    ) -> Self:
        """P(kappa > upper) = probability, by stretching `scale` and `mean` together."""
        upper, probability = require_tail(upper, probability)
        given = cls(weight=weight, shape=shape, scale=scale, mean=mean)
        stretch = upper * jnp.exp(-upper_quantile_log(given, probability))
        return cls(weight=weight, shape=shape, scale=scale * stretch, mean=mean * stretch)

    def stretched(self, log_factor: Any) -> Self:
        factor = jnp.exp(log_factor)
        moved = {
            "scale": self.scale * factor,
            "exponential_mean": self.exponential_mean * factor,
        }
        return self.with_parameters({**self.get_args(), **moved})

    def _mixed(self, of_gamma: Array, of_exponential: Array) -> Array:
        return jnp.logaddexp(
            jnp.log(self.weight) + of_gamma, jnp.log1p(-self.weight) + of_exponential
        )

    @property
    def _parts(self) -> tuple[Gamma, Exponential]:
        return Gamma(shape=self.concentration, scale=self.scale), Exponential(
            mean=self.exponential_mean
        )

    def log_prob_log(self, log_kappa: Any) -> Array:
        gamma, exponential = self._parts
        return self._mixed(gamma.log_prob_log(log_kappa), exponential.log_prob_log(log_kappa))

    def log_cdf_log(self, log_kappa: Any) -> Array:
        gamma, exponential = self._parts
        return self._mixed(gamma.log_cdf_log(log_kappa), exponential.log_cdf_log(log_kappa))

    def log_survival_log(self, log_kappa: Any) -> Array:
        gamma, exponential = self._parts
        return self._mixed(
            gamma.log_survival_log(log_kappa), exponential.log_survival_log(log_kappa)
        )

    def icdf_log(self, q: Any) -> Array:
        # Below its weight the gamma's tail is the whole mixture's.
        start = jnp.log(q / self.weight) + gammaln(self.concentration + 1.0)
        start = jnp.minimum(start / self.concentration + jnp.log(self.scale), 0.0)
        return quantile_log(self, q, start)

    def sample_log(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        # Choosing a part is far faster than inverting the cdf; derivatives stay implicit.
        key_part, key_gamma, key_exponential = jax.random.split(key, 3)
        gamma, exponential = self.expand_parts()
        of_gamma = gamma.sample_log(key_gamma, sample_shape)
        of_exponential = exponential.sample_log(key_exponential, sample_shape)
        chosen = jax.random.uniform(key_part, of_gamma.shape, of_gamma.dtype) < self.weight
        drawn = jnp.where(chosen, of_gamma, of_exponential)
        return with_implicit_derivative(self, jax.lax.stop_gradient(drawn))

    def expand_parts(self) -> tuple[Gamma, Exponential]:
        """The two parts, each with the batch shape of the mixture."""
        values = jnp.broadcast_arrays(
            self.concentration, self.scale, self.exponential_mean, self.weight
        )
        return Gamma(shape=values[0], scale=values[1]), Exponential(mean=values[2])
