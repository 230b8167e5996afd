"""Maps of the scale of one rectified layer, exact over its weights: fast forms of `DepthComplexity`.

The first two moments of the contribution of a layer with random weights are known
(`branch_moments`), so with normal observations no noise is needed.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp._maps import ScalarComplexity
from predcp._numerics.inverse import Evaluate
from predcp._numerics.special import log_minus_log1p
from predcp.resnet._branch import BranchMoments


class ReluLayerComplexity(ScalarComplexity):
    """`kappa = tau (precision / 2) mean_n E |relu(h_n W) W_out|^2`: the PredCP's divergence.

    It is the limit of `predcp.DepthComplexity` with one layer as the number of noise draws grows,
    averaged over the output weights as well. `tau` is the **variance** of the layer's weights.

    **Arguments**: `moments` of the layer's contribution at tau = 1; `precision` of the observations.
    """

    unit = "variance"
    log_rate: Float[Array, ""]

    def __init__(self, moments: BranchMoments, precision: Float[Array, ""]):
        rate = 0.5 * precision * moments.second()
        # If every unit is off the layer changes nothing: a tiny kappa keeps D increasing.
        self.log_rate = jnp.log(jnp.maximum(rate, jnp.finfo(rate.dtype).tiny))

    def bind(self) -> Evaluate:
        return lambda log_tau: (log_tau + self.log_rate, jnp.zeros_like(log_tau))

    def guess(self, log_kappa: Any) -> Array:
        return log_kappa - self.log_rate


class ReluLayerEvidence(ScalarComplexity):
    """Divergence after averaging over the layer's weights: `KL[N(f + m, s^2 + v) || N(f, s^2)]`.

    m and v are the exact mean and variance of the layer's contribution, which is taken as normal:
    like an ECP, it averages first. `tau` is the **variance** of the layer's weights.

    **Arguments**: `moments` of the layer's contribution at tau = 1; `precision`, `1 / s^2`.
    """

    unit = "variance"
    log_power: Float[Array, " points"]
    log_shift: Float[Array, " outputs"]
    log_spread: Float[Array, " outputs"]

    def __init__(self, moments: BranchMoments, precision: Float[Array, ""]):
        least = jnp.finfo(moments.power.dtype).tiny
        log_power, self.log_shift, self.log_spread = (
            jnp.log(jnp.maximum(part, least)) for part in moments
        )
        self.log_power = jnp.log(precision) + log_power

    def bind(self) -> Evaluate:
        def evaluate(log_tau):
            log_unit = (log_tau + self.log_power)[:, None]
            shift, spread = log_unit + self.log_shift, log_unit + self.log_spread
            value = jnp.logaddexp(shift, log_minus_log1p(spread))
            slope = jnp.logaddexp(shift, 2.0 * spread - jax.nn.softplus(spread))
            total = jax.nn.logsumexp(value)
            log_kappa = total - math.log(2.0 * self.log_power.shape[0])
            return log_kappa, jax.nn.logsumexp(slope) - total

        return evaluate
