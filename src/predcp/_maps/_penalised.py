"""The penalised complexity prior of Simpson et al. (2017), the well-known baseline."""

import math
from typing import Any

import jax.numpy as jnp

from predcp._maps._complexity import ScalarComplexity
from predcp._support.check import require_positive


class PenalisedComplexity(ScalarComplexity):
    """Root divergence between *priors*, not predictions: `kappa = sqrt(tau) / scale`.

    `sqrt(2 KL[N(0, tau) || N(0, tau_0)])` is proportional to `sqrt(tau)` as the base variance
    `tau_0` goes to 0 (Section 5 of the paper, "Penalized Complexity Prior"). With an
    exponential pi it is the PC prior: an exponential on the standard deviation. `tau` is a
    **variance**.

    **Arguments**: `scale`, the standard deviation at distance 1, broadcast over the batch.
    """

    unit = "variance"

    def __init__(self, scale: Any = 1.0):
        self.log_scale = jnp.log(require_positive("scale", scale))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.log_scale.shape

    def bind(self) -> Any:
        def evaluate(log_tau):
            log_kappa = 0.5 * log_tau - self.log_scale
            return log_kappa, jnp.full_like(log_kappa, -math.log(2.0))

        return evaluate

    def guess(self, log_kappa: Any) -> Any:
        return 2.0 * (log_kappa + self.log_scale)
