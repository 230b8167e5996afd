"""Evidence complexity (the ECP's divergence) in closed form: linear, logistic, a coefficient."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import softplus
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from predcp._maps._complexity import ScalarComplexity
from predcp._numerics.power_law import extrapolated, floating_range
from predcp._numerics.special import log_minus_log1p
from predcp._support.arrays import concrete
from predcp._support.check import require_design, require_finite, require_positive

_LOG_TWO = math.log(2.0)
# logistic(a) is close to Phi(a sqrt(pi / 8)): a latent normal utility of this scale.
_PROBIT_SCALE = math.sqrt(8.0 / math.pi)


class _GaussianEvidence(ScalarComplexity):
    """`kappa = weight * sum_i (v_i - log(1 + v_i)) / 2` with `v_i = ratio_i tau^power`.

    The divergence of N(0, 1 + v) from N(0, 1), summed over independent directions.
    """

    log_ratio: Float[Array, "*batch rank"]  # -inf marks a direction that never moves
    log_weight: float
    power: float

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.log_ratio.shape[:-1]

    @property
    def cost(self) -> int:  # type: ignore[override]
        return self.log_ratio.shape[-1]

    def _present(self) -> tuple[Array, Array]:
        present = jnp.isfinite(self.log_ratio)
        return present, jnp.where(present, self.log_ratio, 0.0)

    def bind(self) -> Any:
        present, log_ratio = self._present()
        # Beyond this every direction follows its power law to all digits.
        half_width = floating_range(log_ratio.dtype) + jnp.max(jnp.abs(log_ratio)) / self.power

        def value_and_elasticity(log_tau):
            log_v = self.power * log_tau + log_ratio
            value = jnp.where(present, log_minus_log1p(log_v), -jnp.inf)
            slope = jnp.where(present, 2.0 * log_v - softplus(log_v), -jnp.inf)
            total = logsumexp(value)
            return (
                total + self.log_weight - _LOG_TWO,
                logsumexp(slope) - total + math.log(self.power),
            )

        return extrapolated(value_and_elasticity, jax.lax.stop_gradient(half_width))

    def guess(self, log_kappa: Any) -> Array:
        # v - log(1 + v) is below both v^2 / 2 and v, so the root is above both of theirs.
        shifted = log_kappa + _LOG_TWO - self.log_weight
        from_small = (shifted + _LOG_TWO - logsumexp(2.0 * self.log_ratio)) / (2.0 * self.power)
        from_large = (shifted - logsumexp(self.log_ratio)) / self.power
        return jnp.maximum(from_small, from_large)


class LinearEvidence(_GaussianEvidence):
    """Joint evidence of a linear regression, `D(tau) = KL[N(0, s^2 I + tau X X^T) || N(0, s^2 I)]`.

    Section 3.1 (one row) and appendix A.3 of the paper (any design):
    `D(tau) = 1/2 sum_i (v_i - log(1 + v_i))` with `v_i = tau s_i^2 / s^2` and `s_i` the
    singular values of X. `tau` is the **variance** of the coefficients.

    **Arguments**
    - `x`: design, shape (..., N, D); a vector is one feature (N x 1), a number is 1 x 1.
    - `noise_scale`: standard deviation of the response, broadcast over the batch.
    """

    unit = "variance"
    log_weight = 0.0
    power = 1.0

    def __init__(self, x: Any, noise_scale: Any = 1.0):
        design = require_design("x", x, scalar=True)
        scale = require_positive("noise_scale", noise_scale).astype(design.dtype)
        log_ratio = _linear_log_ratio(design, scale)
        require_moving("x", log_ratio)
        if concrete(log_ratio) and log_ratio.ndim == 1:
            log_ratio = log_ratio[np.isfinite(np.asarray(log_ratio))]
        self.log_ratio = log_ratio


@jax.jit
def _linear_log_ratio(design: Array, scale: Array) -> Array:
    singular = jnp.linalg.svd(design, compute_uv=False)
    # Directions below rounding of the largest one are zero in exact arithmetic.
    cut = max(design.shape[-2:]) * jnp.finfo(design.dtype).eps
    kept = singular > cut * jnp.max(singular, axis=-1, keepdims=True)
    log_singular = jnp.log(jnp.where(kept, singular, 1.0))
    return jnp.where(kept, 2.0 * log_singular, -jnp.inf) - 2.0 * jnp.log(scale)[..., None]


class RowEvidence(_GaussianEvidence):
    """Evidence of a linear regression one row at a time, averaged over the rows.

    `D(tau) = mean_n KL[N(0, s^2 + tau^2 sum_d lambda_d^2 x_nd^2) || N(0, s^2)]`, which stays
    cheap with local scales: no singular values, linear in the entries of x. `tau` is a
    **standard deviation** here, `beta_d ~ N(0, lambda_d^2 tau^2)`.

    **Arguments**
    - `x`: design, shape (N, D).
    - `local_scales`: `lambda`, shape (..., D) or a number; 1 when there are none.
    - `noise_scale`: standard deviation of the response, a number.
    """

    unit = "standard deviation"
    power = 2.0

    def __init__(self, x: Any, local_scales: Any = 1.0, noise_scale: Any = 1.0):
        design = require_design("x", x)
        if design.ndim != 2:
            raise ValueError(f"x must have shape (N, D), got {design.shape}")
        scales = require_positive("local_scales", local_scales).astype(design.dtype)
        if scales.ndim and scales.shape[-1] not in (1, design.shape[1]):
            raise ValueError(
                f"local_scales must end in the {design.shape[1]} columns of x, got {scales.shape}"
            )
        noise = require_positive("noise_scale", noise_scale).astype(design.dtype)
        scales = jnp.broadcast_to(scales, (*scales.shape[:-1], design.shape[1]))
        self.log_ratio = _row_log_ratio(design, scales, noise)
        require_moving("x", self.log_ratio)

    @property
    def log_weight(self) -> float:  # type: ignore[override]
        return -math.log(self.log_ratio.shape[-1])


class LogisticEvidence(RowEvidence):
    """Evidence of logistic regression through its probit utility, averaged over the rows.

    `D(tau) = mean_n KL[N(0, 8/pi + tau^2 sum_d lambda_d^2 x_nd^2) || N(0, 8/pi)]`. The evidence of
    the outcomes is 1/2 for every tau, so the latent utility is used instead. `tau` is a
    **standard deviation** here, `beta_d ~ N(0, lambda_d^2 tau^2)` as in Section 6 of the paper.

    **Arguments**
    - `x`: design, shape (N, D).
    - `local_scales`: `lambda`, shape (..., D) or a number; 1 when there are none.
    """

    def __init__(self, x: Any, local_scales: Any = 1.0):
        super().__init__(x, local_scales, _PROBIT_SCALE)


@jax.jit
def _row_log_ratio(design: Array, scales: Array, noise: Array) -> Array:
    variance = jnp.einsum("nd,...d->...n", design**2, scales**2)
    present = variance > 0.0
    log_variance = jnp.log(jnp.where(present, variance, 1.0)) - 2.0 * jnp.log(noise)
    return jnp.where(present, log_variance, -jnp.inf)


class CoefficientEvidence(ScalarComplexity):
    """Evidence of the slope itself, `beta -> sign(beta) beta^2 c / 2` (appendix A.4).

    The model is `y = beta_0 + beta x`, `beta_0 ~ N(0, intercept_scale^2)`, the reference `beta = 0`;
    `c = x^T (s^2 I + intercept_scale^2 11^T)^-1 x`, which is `x^2 / (s^2 + intercept_scale^2)` for
    one row. The signed divergence is a bijection of the line; the prior puts half of pi on
    either side, the factor 1/2 of the paper.

    **Arguments**
    - `x`: the feature, a number or shape (..., N).
    - `noise_scale`, `intercept_scale`: standard deviations, broadcast over the batch.
    """

    unit = "coefficient"
    signed = True

    def __init__(self, x: Any, noise_scale: Any = 1.0, intercept_scale: Any = 0.0):
        rows = jnp.atleast_1d(require_finite("x", x))
        noise = require_positive("noise_scale", noise_scale).astype(rows.dtype)
        intercept = require_positive("intercept_scale", intercept_scale, zero=True)
        count, mean = rows.shape[-1], rows.mean(-1)
        spread = jnp.sum((rows - mean[..., None]) ** 2, -1)
        information = spread / noise**2 + count * mean**2 / (
            noise**2 + count * intercept.astype(rows.dtype) ** 2
        )
        log_information = jnp.log(information)
        require_moving("x", log_information[..., None])
        self.log_information = log_information

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.log_information.shape

    def bind(self) -> Any:
        def evaluate(log_beta):
            log_kappa = 2.0 * log_beta + self.log_information - _LOG_TWO
            return log_kappa, jnp.full_like(log_kappa, _LOG_TWO)

        return evaluate

    def guess(self, log_kappa: Any) -> Array:
        return 0.5 * (log_kappa + _LOG_TWO - self.log_information)


def require_moving(name: str, log_ratio: Array) -> None:
    """Refuse a design with which predictions do not depend on the scale."""
    if concrete(log_ratio) and not np.all(np.any(np.isfinite(np.asarray(log_ratio)), axis=-1)):
        raise ValueError(
            f"{name} is all zero, so the predictions do not depend on the scale and the "
            "complexity is constant; give a design with at least one non-zero entry"
        )
