"""Maps of flexibility: the reference is the limit of the family as one parameter goes to 0."""

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import softplus
from jaxtyping import Array, Float

from predcp._maps._complexity import ScalarComplexity, Unit
from predcp._numerics.gaussian import gaussian_divergence
from predcp._numerics.power_law import extrapolated, floating_range
from predcp._numerics.special import digamma_1p, log_cosh, log_digamma_excess, stirling_gap
from predcp._support.check import (
    require_finite,
    require_positive,
    require_probability,
    require_whole,
)


class _Limit(ScalarComplexity):
    """A map given by its log divergence; the elasticity is its derivative."""

    unit: Unit | None = None  # tau is no scale of an effect

    def _log_divergence(self, log_tau: Array) -> Array:
        raise NotImplementedError

    # Maps that grow as the log of tau are no power law beyond floating point: they are asked there.
    logarithmic = False

    def bind(self) -> Any:
        reach = floating_range(jnp.result_type(float))

        def evaluate(log_tau):
            value, slope = jax.jvp(self._log_divergence, (log_tau,), (jnp.ones_like(log_tau),))
            return value, jnp.log(slope)

        def from_below(log_tau):
            inside = jnp.maximum(log_tau, -reach)
            value, log_elasticity = evaluate(inside)
            return value + jnp.exp(log_elasticity) * (log_tau - inside), log_elasticity

        return from_below if self.logarithmic else extrapolated(evaluate, reach)

    def _growth(self) -> Any:
        """D over log tau far from the reference, of a map that grows as the log."""
        return 0.5

    def guess(self, log_kappa: Any) -> Array:
        start = jnp.zeros_like(log_kappa)
        if not self.logarithmic:
            return start
        most = 2.0 * floating_range(log_kappa.dtype)
        far = jnp.exp(jnp.clip(log_kappa, 0.0, most)) / self._growth()
        return jnp.where(log_kappa > 0.0, far, start)


class NegativeBinomialLimit(_Limit):
    """Negative binomial counts with overdispersion tau, against Poisson counts.

    The rate is `mean * g` with `g ~ Gamma(1/tau, 1/tau)`, so `tau = 1 / concentration`. With a mean the
    divergence is that of the predictions given g, `D(tau) = E KL[Poisson(mean g) || Poisson(mean)]`, equal
    to `mean (digamma(1 + 1/tau) + log tau)`. Without one it is that of the distribution of g from its limit
    at 1, `log(1/tau) - digamma(1/tau)`: the PC prior `pc.mgamma`.

    **Arguments**: `mean`, the mean count, a number; None for the PC prior.
    """

    def __init__(self, mean: Any = None):
        self.log_mean = None if mean is None else jnp.log(require_positive("mean", mean))
        self.logarithmic = mean is not None

    def _growth(self):
        return jnp.exp(jnp.asarray(self.log_mean))

    def _log_divergence(self, log_tau):
        excess = log_digamma_excess(-log_tau)
        if self.log_mean is not None:
            return self.log_mean + excess
        # log z - digamma(z) = 1/z - (digamma(1 + z) - log z)
        return log_tau + jnp.log1p(-jnp.exp(excess - log_tau))


class BetaBinomialLimit(_Limit):
    """Beta-binomial counts with overdispersion tau, against binomial counts.

    Probabilities are `p ~ Beta(m / tau, (1 - m) / tau)` with mean m.
    `D(tau) = E KL[Bernoulli(p) || Bernoulli(m)]`, in nats per trial, at most the entropy of the latter.

    **Arguments**: `probability`, m, a number.
    """

    bounded = True

    def __init__(self, probability: Any):
        self.probability = require_probability("probability", probability)

    def _parts(self) -> Array:
        return jnp.stack([self.probability, 1.0 - self.probability])

    def _log_divergence(self, log_tau):
        parts, below = self._parts(), log_tau < 0.0
        # Not minimum and maximum: where both arguments are equal their slope is one half.
        near, far = jnp.where(below, log_tau, 0.0), jnp.where(below, 0.0, log_tau)
        shares = parts * jnp.exp(log_digamma_excess(jnp.log(parts) - near))
        close = shares.sum() - jnp.exp(log_digamma_excess(-near))
        # Without log tau, which cancels: D comes to its bound as 1 / tau.
        shares = parts * (digamma_1p(jnp.log(parts) - far) - jnp.log(parts))
        return jnp.log(jnp.where(below, close, shares.sum() - digamma_1p(-far)))

    def _single_log_supremum(self) -> Float[Array, ""]:
        parts = self._parts()
        return jnp.log(-jnp.sum(parts * jnp.log(parts)))


def _student_t_series(terms: int) -> np.ndarray:
    """Coefficients of `(2 / dof)^n`, n = 2, 3, ..., in the divergence of `StudentTLimit`."""
    from scipy.special import bernoulli

    n = np.arange(1, terms + 1)
    # log Gamma(x + 1/2) - log Gamma(x) = log(x) / 2 + sum_n c_n x^-n
    c = (-1.0) ** (n + 1) * (0.5**n - 2.0) * bernoulli(terms + 1)[2:] / (n * (n + 1))
    before = np.concatenate([[0.0], c[:-1]])
    return ((n + 1) * c + 0.5 * (n - 1) * before + 0.5 / n)[1:]


class StudentTLimit(_Limit):
    """Student-t noise of unit variance, against normal noise: the PC prior `pc.dof`.

    `tau = 1 / (dof - 2)`, so that every tau > 0 has a variance. `D(tau) = KL[t(dof) || N(0, 1)]`, the t
    scaled to variance 1; near the reference it is `3 / (4 dof^2)`.
    """

    logarithmic = True

    def _log_divergence(self, log_tau):
        # With x = dof / 2 = 1 + 1 / (2 tau).
        near = log_tau < math.log(1.0 / 10.0)
        log_small = jnp.where(near, log_tau, math.log(1.0 / 10.0))
        small = jnp.exp(log_small)
        inverse = 2.0 * small / (1.0 + 2.0 * small)
        coefficients = jnp.asarray(_student_t_series(30)[::-1], inverse.dtype)
        log_inverse = log_small + math.log(2.0) - jnp.log1p(2.0 * small)
        series = 2.0 * log_inverse + jnp.log(jnp.polyval(coefficients, inverse))
        log_twice = jnp.where(near, 0.0, log_tau) + math.log(2.0)
        # log Gamma(a + 1) = a digamma(a + 1) - a - stirling_gap(a), at a = x - 1 and at x - 1/2.
        log_a, log_b = -log_twice, softplus(math.log(2.0) - log_twice) - math.log(2.0)
        entropy = digamma_1p(log_b) - 1.5 * digamma_1p(log_a) + 0.5
        entropy += stirling_gap(log_b) - stirling_gap(log_a)
        entropy += 0.5 * (math.log(2.0 * math.pi) + softplus(-log_twice) - softplus(log_twice))
        return jnp.where(near, series, jnp.log(0.5 * math.log(2.0 * math.pi) + 0.5 - entropy))


def _trigamma(a: Float[Array, "..."]) -> Float[Array, "..."]:
    """Trigamma for a > 0, by its asymptotic series ten steps up; cheap to differentiate."""
    inverse = 1.0 / (a + 10.0)
    terms = jnp.asarray([5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6], a.dtype)
    series = jnp.polyval(terms, inverse**2)
    steps = jnp.sum((a[..., None] + jnp.arange(10.0, dtype=a.dtype)) ** -2, axis=-1)
    return steps + inverse + 0.5 * inverse**2 + inverse**3 * series


class GammaLimit(_Limit):
    """Gamma waiting times with the same mean, against exponential ones.

    `D = log a + (a - 1) digamma(a) - log Gamma(a) - a + 1` at shape a: `a = 1 + tau` is more regular than
    the exponential, `a = 1 / (1 + tau)` comes in bursts.

    **Arguments**: `direction`, "regular" or "bursts".
    """

    def __init__(self, direction: Literal["regular", "bursts"] = "regular"):
        if direction not in ("regular", "bursts"):
            raise ValueError(f'direction must be "regular" or "bursts", got {direction!r}')
        self.direction = direction
        self.logarithmic = direction == "regular"

    def _log_divergence(self, log_tau):
        near = log_tau < math.log(0.5)
        log_move = jnp.where(near, log_tau, math.log(0.5))
        small = jnp.exp(log_move)
        if self.direction == "bursts":
            small, log_move = -small / (1.0 + small), log_move - jnp.log1p(small)
        # d D / d a = (a - 1) (trigamma(a) - 1 / a), integrated along a straight line from 1.
        nodes, weights = np.polynomial.legendre.leggauss(24)
        t = jnp.asarray(0.5 + 0.5 * nodes, small.dtype)
        a = 1.0 + small * t
        integral = jnp.sum(0.5 * weights * t * (_trigamma(a) - 1.0 / a))
        series = 2.0 * log_move + jnp.log(integral)
        far = jnp.where(near, 0.0, log_tau)
        if self.direction == "regular":
            whole = stirling_gap(far) + softplus(far)
        else:
            log_a = -softplus(far)
            # Gamma(a) = Gamma(1 + a) / a, and digamma(a) = digamma(1 + a) - 1 / a.
            whole = stirling_gap(log_a) - digamma_1p(log_a) + jnp.exp(-log_a) + 2.0 * log_a
        return jnp.where(near, series, jnp.log(whole))


class CorrelationLimit(_Limit):
    """A correlation, against independence: `tau = atanh(rho)`, on the whole line.

    `D = (points - 1) log cosh(tau) = -(points - 1) / 2 log(1 - rho^2)`. Two points are a pair with
    correlation rho (the PC prior `pc.cor0`); N points an AR(1) process of N steps against white noise (also
    `pc.ar`).

    **Arguments**: `points`, how many there are, at least 2.
    """

    unit: Unit | None = "coefficient"
    signed = True

    def __init__(self, points: int = 2):
        self.points = require_whole("points", points, 2)

    def _log_divergence(self, log_tau):
        return jnp.log(log_cosh(jnp.exp(log_tau))) + math.log(self.points - 1.0)


class LengthscaleLimit(_Limit):
    """A Gaussian process with lengthscale `1 / tau`, against a constant.

    `D(tau) = KL[N(0, A) || N(0, B)]` of all observations, `B = s^2 I + amplitude^2` and
    `A = s^2 I + amplitude^2 exp(-tau^2 |x_i - x_j|^2 / 2)`: at tau = 0 the process is one constant.

    **Arguments**
    - `x`: points, shape (N, D) or (N,), N >= 2, not all equal.
    - `amplitude`: standard deviation of the process.
    - `noise_scale`: s, standard deviation of the observations.
    """

    bounded = True

    def __init__(self, x: Any, amplitude: Any = 1.0, noise_scale: Any = 1.0):
        points = require_finite("x", x)
        points = points[:, None] if points.ndim == 1 else points
        if points.ndim != 2 or points.shape[0] < 2:
            raise ValueError(f"x must have shape (N, D) or (N,) with N >= 2, got {jnp.shape(x)}")
        self.squares = jnp.sum((points[:, None] - points[None]) ** 2, axis=-1)
        if not np.any(np.asarray(self.squares) > 0.0):
            raise ValueError(
                "x has equal points only, so that no prediction depends on the lengthscale"
            )
        amplitude = require_positive("amplitude", amplitude).astype(points.dtype)
        noise = require_positive("noise_scale", noise_scale).astype(points.dtype)
        self.ratio = (amplitude / noise) ** 2
        self.cost = self.squares.size * points.shape[0]

    def _log_divergence(self, log_tau):
        distance = jnp.where(self.squares > 0.0, self.squares, 1.0)
        power = jnp.where(self.squares > 0.0, 2.0 * log_tau + jnp.log(0.5 * distance), -jnp.inf)
        # In units of the largest change of the kernel: long lengthscales keep their digits.
        top = jax.lax.stop_gradient(jnp.minimum(jnp.max(power), 0.0))
        change = jnp.expm1(-jnp.exp(power)) * jnp.exp(-top)
        return 2.0 * top + jnp.log(gaussian_divergence(self._whitened(change), jnp.exp(top)))

    def _whitened(self, change: Array) -> Array:
        """`B^(-1/2) change B^(-1/2)` times amplitude^2, in units of the noise."""
        count = self.squares.shape[0]
        shrink = (1.0 / jnp.sqrt(1.0 + count * self.ratio) - 1.0) / count
        half = change + shrink * change.sum(0, keepdims=True)
        return self.ratio * (half + shrink * half.sum(1, keepdims=True))

    def _single_log_supremum(self) -> Float[Array, ""]:
        apart = jnp.where(self.squares > 0.0, -1.0, 0.0)
        return jnp.log(gaussian_divergence(self._whitened(apart), jnp.ones_like(self.ratio)))
