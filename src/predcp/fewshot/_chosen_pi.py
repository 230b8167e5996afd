"""One of several priors on a divergence, chosen by data, so that runs of one program may differ in it."""

from collections.abc import Sequence

import jax
import numpyro.distributions as dist
from jaxtyping import Array, Int

from predcp._divergence_priors import DivergencePrior


class ChosenPrior(DivergencePrior):
    """The prior at one place of a sequence.

    **Arguments**: `options`, priors without a batch; `place`, which one, known when the program runs.
    """

    arg_constraints = {}
    pytree_data_fields = ("options", "place")

    def __init__(self, options: Sequence[DivergencePrior], place: Int[Array, ""]):
        self.options, self.place = tuple(options), place
        dist.Distribution.__init__(self, (), ())

    def _chosen(self, method: str, value: Array) -> Array:
        branches = [getattr(option, method) for option in self.options]
        if len(branches) == 1:
            return branches[0](value)
        return jax.lax.switch(self.place, branches, value)

    def log_prob_log(self, log_kappa):
        return self._chosen("log_prob_log", log_kappa)

    def log_cdf_log(self, log_kappa):
        return self._chosen("log_cdf_log", log_kappa)

    def log_survival_log(self, log_kappa):
        return self._chosen("log_survival_log", log_kappa)

    def icdf_log(self, q):
        return self._chosen("icdf_log", q)
