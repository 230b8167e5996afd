"""Any positive NumPyro distribution as a prior on a divergence."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from predcp._divergence_priors._base import DivergencePrior
from predcp._support.check import known


class GivenPrior(DivergencePrior):
    """Any positive NumPyro distribution as a prior on a divergence."""

    arg_constraints = {}
    pytree_data_fields = ("given",)

    def __init__(self, given: dist.Distribution):
        if not isinstance(given, dist.Distribution):
            raise ValueError(f"pi must be a distribution, got {type(given).__name__}")
        if given.event_shape:
            raise ValueError(f"pi must be univariate, got event shape {given.event_shape}")
        lower = getattr(given.support, "lower_bound", None)
        # The value of a bound that is being traced is not known.
        numbers = None if lower is None else known(lower)
        if lower is None or (numbers is not None and not np.all(numbers >= 0.0)):
            raise ValueError(
                f"pi must be a distribution of positive numbers, got {type(given).__name__} "
                f"with support {given.support}"
            )
        self.given = given
        dist.Distribution.__init__(self, given.batch_shape, ())

    def spread(self, shape):
        leaves = jax.tree.leaves(self.given)
        if any(jnp.broadcast_shapes(jnp.shape(leaf), shape) != shape for leaf in leaves):
            raise ValueError(
                f"pi = {type(self.given).__name__} has parameters that do not broadcast to "
                f"{shape}: give one without batch axes, or one of predcp's priors on a divergence"
            )
        return {str(place): jnp.broadcast_to(leaf, shape) for place, leaf in enumerate(leaves)}

    def with_parameters(self, parameters):
        structure = jax.tree.structure(self.given)
        made = object.__new__(GivenPrior)
        made.given = jax.tree.unflatten(structure, list(parameters.values()))
        shape = jnp.broadcast_shapes(*(jnp.shape(value) for value in parameters.values()))
        dist.Distribution.__init__(made, shape, ())
        return made

    def _need(self, name: str) -> Any:
        if getattr(type(self.given), name) is getattr(dist.Distribution, name):
            raise ValueError(
                f"pi = {type(self.given).__name__} has no {name}, which truncating at the "
                "supremum of the complexity, cdf and quantiles need; use one of predcp's priors on a "
                "divergence, or ComplexityPrior(..., truncate=False) if only log_prob is needed"
            )
        return getattr(self.given, name)

    def log_prob_log(self, log_kappa):
        return jnp.asarray(self.given.log_prob(jnp.exp(log_kappa))) + log_kappa

    def log_cdf_log(self, log_kappa):
        return jnp.log(self._need("cdf")(jnp.exp(log_kappa)))

    def log_survival_log(self, log_kappa):
        return jnp.log1p(-self._need("cdf")(jnp.exp(log_kappa)))

    def icdf_log(self, q):
        return jnp.log(self._need("icdf")(q))

    def sample_log(self, key, sample_shape=()):
        return jnp.log(jnp.asarray(self.given.sample(key, sample_shape)))


def as_divergence_prior(pi: Any) -> DivergencePrior:
    """`pi` as a prior on a divergence; a positive NumPyro distribution is wrapped."""
    return pi if isinstance(pi, DivergencePrior) else GivenPrior(pi)
