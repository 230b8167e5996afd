"""The PredCP's divergence for a linear predictor, in closed form with analytic derivatives.

Two maps of the protocol of `predcp.ScalarComplexity`, used through `ComplexityPrior`.
`predcp.PredictiveComplexity` gives the same numbers for any model; these are fast enough to be
evaluated a million times by a sampler.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from predcp._maps import ScalarComplexity, require_moving
from predcp._numerics.power_law import extrapolated, floating_range
from predcp._support.arrays import as_float
from predcp._support.check import require_design, require_positive

_LOG_TWO = math.log(2.0)
# Products of rows and noise vectors that are held at once.
_MOST_HELD = 2**22


def _divergence_series(terms: int) -> list[float]:
    """Coefficients of `(h tanh h - log cosh h) / h^2` in powers of h^2, from those of tanh."""
    tanh: list[Fraction] = [Fraction(1)]
    for k in range(1, terms):
        # tanh' = 1 - tanh^2, power by power.
        square = sum((tanh[i] * tanh[k - 1 - i] for i in range(k)), Fraction(0))
        tanh.append(-square / (2 * k + 1))
    return [float(Fraction(2 * k + 1, 2 * k + 2) * c) for k, c in enumerate(tanh)]


_SERIES = _divergence_series(14)
# Largest h for the series, whose terms decrease as (h / (pi / 2))^2k.
_SMALL = 0.8


def _log_divergence(log_a: Array) -> tuple[Array, Array, Array]:
    """`log` of KL and of its slope in log a, of a coin with logit a from a fair one; and a."""
    a = jnp.exp(log_a)
    decay = jnp.exp(-a)
    log_slope = 2.0 * log_a - a - 2.0 * jnp.log1p(decay)
    small = a < _SMALL
    squared = jnp.where(small, 0.25 * a * a, 0.0)
    series = jnp.full_like(a, _SERIES[-1])
    for coefficient in _SERIES[-2::-1]:
        series = series * squared + coefficient
    far = _LOG_TWO - jnp.log1p(decay) - a * decay / (1.0 + decay)
    # One logarithm for both. For small a, a^2 / 4 is factored out, so that it may underflow.
    log_kl = jnp.log(jnp.where(small, series, far)) + jnp.where(
        small, 2.0 * (log_a - _LOG_TWO), 0.0
    )
    return log_kl, log_slope, a


@jax.custom_jvp
def _coin_means(log_a: Float[Array, "..."], present: Array) -> tuple[Array, Array]:
    """`log` of the sums of KL and of its slope over all coins; coins not `present` stay fair."""
    log_kl, log_slope, _ = _log_divergence(log_a)
    return (
        logsumexp(jnp.where(present, log_kl, -jnp.inf)),
        logsumexp(jnp.where(present, log_slope, -jnp.inf)),
    )


@_coin_means.defjvp
def _coin_means_jvp(primals, tangents):
    (log_a, present), (log_a_dot, _) = primals, tangents
    log_kl, log_slope, a = _log_divergence(log_a)
    log_slope = jnp.where(present, log_slope, -jnp.inf)
    value = logsumexp(jnp.where(present, log_kl, -jnp.inf))
    slope = logsumexp(log_slope)
    value_dot = jnp.sum(jnp.exp(log_slope - value) * log_a_dot)
    share = jnp.exp(log_slope - slope)
    slope_dot = jnp.sum(share * (2.0 - a * jnp.tanh(0.5 * a)) * log_a_dot)
    return (value, slope), (value_dot, slope_dot)


class LogisticPredictive(ScalarComplexity):
    """The PredCP's divergence of a logistic regression from a fair coin.

    `D(tau) = mean_s mean_n KL[Bernoulli(logistic(tau x_n . (lambda xi_s))) || Bernoulli(1/2)]`,
    tau a **standard deviation**. At most log 2.

    **Arguments**
    - `x`: design, shape (N, D).
    - `local_scales`: lambda, shape (D,) or a number.
    - `noise`: xi, shape (S, D).
    """

    unit = "standard deviation"
    bounded = True

    def __init__(self, x: Any, local_scales: Any, noise: Any):
        self.products = _Products.of(x, local_scales, noise)

    @property
    def cost(self) -> int:  # type: ignore[override]
        return 4 * self.products.number

    def bind(self) -> Any:
        log_count = math.log(self.products.number)

        def value_and_elasticity(log_tau):
            def means(products):
                log_product, present = _logs(products)
                return _coin_means(log_product + log_tau, present)

            value, slope = self.products.log_sums(means)
            return value - log_count, slope - value

        return extrapolated(value_and_elasticity, floating_range(self.products.dtype))

    def guess(self, log_kappa: Any) -> Array:
        # KL is below a^2 / 8, so the root is above the parabola's.
        log_square = self.products.log_sums(_log_square) - math.log(self.products.number)
        return 0.5 * (log_kappa + 3.0 * _LOG_TWO - log_square)

    def _single_log_supremum(self):
        present = self.products.log_sums(lambda products: jnp.log(jnp.sum(products != 0.0)))
        return present.astype(self.products.dtype) + math.log(_LOG_TWO / self.products.number)


class GaussianPredictive(ScalarComplexity):
    """The PredCP's divergence of a linear regression from its intercept alone.

    `D(tau) = mean_s mean_n tau^2 (x_n . (lambda xi_s))^2 / (2 s^2)`, tau a **standard deviation**.

    **Arguments**: `x`, `local_scales`, `noise` as in `LogisticPredictive`; `noise_scale`, s.
    """

    unit = "standard deviation"

    def __init__(self, x: Any, local_scales: Any, noise: Any, noise_scale: Any = 1.0):
        products = _Products.of(x, local_scales, noise)
        noise_scale = require_positive("noise_scale", noise_scale).astype(products.dtype)
        mean_square = products.log_sums(_log_square) - math.log(products.number)
        self.log_curvature = mean_square - _LOG_TWO - 2.0 * jnp.log(noise_scale)

    def bind(self) -> Any:
        def evaluate(log_tau):
            log_kappa = 2.0 * log_tau + self.log_curvature
            return log_kappa, jnp.full_like(log_kappa, _LOG_TWO)

        return evaluate

    def guess(self, log_kappa: Any) -> Array:
        return 0.5 * (log_kappa - self.log_curvature)


class _Products(NamedTuple):
    """`x_n . (lambda xi_s)`: the change of each prediction per unit of the scale.

    **Arguments**
    - `held`: all of them, `(S, N)`; None where they are many, which are computed again when needed.
    - `design`, `(N, D)`, and `directions`, lambda xi, `(S, D)`.
    """

    held: Array | None
    design: Array
    directions: Array

    @classmethod
    def of(cls, x: Any, local_scales: Any, noise: Any) -> "_Products":
        """Check the arguments of the maps."""
        design = require_design("x", x)
        noise = as_float(noise)
        if design.ndim != 2:
            raise ValueError(f"x must have shape (N, D), got {design.shape}")
        if noise.ndim != 2 or noise.shape[1] != design.shape[1]:
            raise ValueError(
                f"noise must have shape (S, D) with the {design.shape[1]} columns of x, "
                f"got {noise.shape}"
            )
        scales = require_positive("local_scales", local_scales).astype(design.dtype)
        if scales.ndim > 1 or (scales.ndim == 1 and scales.shape[0] != design.shape[1]):
            raise ValueError(
                f"local_scales must be a number or have the {design.shape[1]} columns of x, "
                f"got {scales.shape}"
            )
        directions = noise.astype(design.dtype) * scales
        held = None
        if len(design) * len(directions) <= _MOST_HELD:
            # The design comes first: its transpose would be copied, in loops every time.
            held = (design @ directions.T).T
        moving = design if held is None else held
        require_moving("x", jnp.where(moving == 0.0, -jnp.inf, 0.0).reshape(-1))
        return cls(held, design, directions)

    @property
    def number(self) -> int:
        """Number of products."""
        return len(self.design) * len(self.directions)

    @property
    def dtype(self) -> Any:
        """Of the products."""
        return self.design.dtype

    def log_sums(self, log_sum: Callable[[Array], Any]) -> Any:
        """Logs of sums over all products, from a function that gives them for some of the products.

        The memory for many products does not depend on their number, in the derivatives neither.
        """
        if self.held is not None:
            return log_sum(self.held)

        @jax.checkpoint
        def of_one(direction: Array) -> Any:
            return log_sum(self.design @ direction)

        at_once = max(1, _MOST_HELD // len(self.design))
        parts = jax.lax.map(of_one, self.directions, batch_size=at_once)
        return jax.tree.map(logsumexp, parts)


def _logs(products: Array) -> tuple[Array, Array]:
    """Logs of absolute products, and which of them are not 0."""
    present = products != 0.0
    return jnp.log(jnp.abs(jnp.where(present, products, 1.0))), present


def _log_square(products: Array) -> Array:
    """The log of the sum of their squares, which may overflow themselves."""
    log_product, present = _logs(products)
    return logsumexp(jnp.where(present, 2.0 * log_product, -jnp.inf))
