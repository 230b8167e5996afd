"""Predictions that move together: the divergence of the joint predictive distribution of all points."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from predcp._maps._complexity import Unit
from predcp._maps._predictive import PredictiveComplexity
from predcp._numerics.displacement import displacement, parameter_step
from predcp._numerics.gaussian import gaussian_divergence, scaled_minus_log1p
from predcp._numerics.homogeneity import power_of
from predcp._numerics.inverse import Evaluate
from predcp._numerics.moments import moments_of, require_moments
from predcp._numerics.power_law import extrapolated, floating_range
from predcp._numerics.special import log_minus_log1p
from predcp._numerics.standard_normal import may_be_standard_normal
from predcp._support.arrays import concrete

# Largest number of parameters of a linear model that is integrated exactly.
_MOST_DIRECTIONS = 512


class JointComplexity(PredictiveComplexity):
    """Divergence between the joint predictive distributions of all points, theta integrated out.

    `D(tau) = KL[N(m, L + F F^T) || N(m_0, L_0)]`: the Gaussian with the mean and covariance of all
    observations at tau, against that of the reference. F are the centred means of the draws, L the variance
    of the observations averaged over them. Low rank: `O(N S^2)` for N observations and S draws.

    `PredictiveComplexity` averages the divergence of one point given theta. N times that exceeds the joint
    divergence by the mutual information of theta and the data. D is in nats for all observations.

    A model whose means are linear in standard normal noise, with variances that do not move, is integrated
    exactly: a linear regression gives `LinearEvidence`. Otherwise the Gaussian is matched to the draws, as
    for noise whose means, variances or correlations are not standard normal beyond their sampling error.
    Use antithetic noise: a sample mean that is not 0 moves m. Masked observations are left out. A family
    with bounded divergence (`Bernoulli`) gets a D that is not bounded; `diagnose` says so.

    **Arguments**
    - `likelihood`, `parameters`, `x`, `noise`, `unit`: as in `PredictiveComplexity`. The observations need
        a mean and a variance and must be independent given theta.
    - `reference`: theta_0, a pytree of the structure of theta.
    """

    log_value_by_draw = None  # type: ignore[assignment]
    bounded = False

    def __init__(
        self,
        likelihood: Callable[[PyTree, Any], Any],
        parameters: Callable[[Array, PyTree], PyTree],
        reference: PyTree,
        x: Any,
        noise: PyTree,
        unit: Unit | None = None,
    ):
        if callable(reference):
            raise ValueError("reference must be parameters, the same for all draws; got a function")
        super().__init__(likelihood, parameters, reference, x, noise, unit=unit)
        self.family_is_bounded, self.bounded = self.bounded, False
        require_moments(self.likelihood(self.reference, self.x))
        start = self._moments(self.reference)
        self.linear = self._is_linear()
        if self.linear:
            flat, restore = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], self.noise))
            self.noise = jax.vmap(restore)(jnp.eye(flat.size, dtype=flat.dtype))
        self.power = self._find_moment_power()
        self.cost = self._count * (start["mean"].size + self._count)
        self.highest = jnp.asarray(floating_range(self._dtype), self._dtype)
        if self.power is None:
            self.highest = self._find_highest()

    def _moments(self, theta: PyTree) -> dict[str, Array]:
        """Means and variances of all observations, as vectors."""
        return moments_of(self.likelihood(theta, self.x))

    def _at_one(self, xi: PyTree) -> dict[str, Array]:
        """How far one draw moves the moments at tau = 1."""
        moved = self._moments(self.parameters(jnp.ones((), self._dtype), xi))
        return jax.tree.map(lambda here, start: here - start, moved, self._moments(self.reference))

    def _is_linear(self) -> bool:
        """Whether means are linear in noise that is standard normal, and variances do not move."""
        flat, restore = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], self.noise))
        seen = all(map(concrete, jax.tree.leaves((self.noise, self.x))))
        if flat.size > _MOST_DIRECTIONS or not seen:
            return False
        given = np.asarray(jax.vmap(lambda each: ravel_pytree(each)[0])(self.noise), float)
        draws = np.random.default_rng(0).normal(size=(2, flat.size))
        points = jnp.asarray(np.stack([*draws, draws.sum(0), -draws[0]]), flat.dtype)
        moved = jax.vmap(lambda each: self._at_one(restore(each)))(points)
        mean, size = moved["mean"], jnp.max(jnp.abs(moved["mean"]))
        gap = jnp.maximum(jnp.abs(mean[0] + mean[1] - mean[2]), jnp.abs(mean[0] + mean[3]))
        allowed = 1e3 * jnp.finfo(flat.dtype).eps * size
        linear = bool(jnp.all(gap <= allowed) & jnp.all(moved["variance"] == 0.0))
        return linear and may_be_standard_normal(given)

    def _find_moment_power(self):
        """The power of tau that the means move as, while the variances stay."""
        one = jax.tree.map(lambda leaf: leaf[0], self.noise)
        found = power_of(
            lambda tau, xi: self._moments(self.parameters(tau, xi)), jnp.ones((), self._dtype), one
        )
        moved = jax.vmap(self._at_one)(self.noise)["variance"]
        return found if concrete(moved) and not np.any(np.asarray(moved)) else None

    def _find_highest(self) -> Array:
        """The largest log scale before rates leave floating point or variances all their digits."""
        if not all(map(concrete, jax.tree.leaves((self.noise, self.x, self.reference)))):
            return self.highest
        low, high = -float(self.highest), float(self.highest)
        start = self._moments(self.reference)
        evaluate = self._bind_by_passes(start)

        @jax.jit
        @jax.vmap
        def kept(log_tau):
            value, log_elasticity = evaluate(log_tau)
            moments = lambda xi: self._moments(self.parameters(jnp.exp(log_tau), xi))  # noqa: E731
            left = jax.vmap(moments)(self.noise)["variance"].mean(0) / start["variance"]
            # Below, rounding shows; derivatives square what is above.
            least, most = 0.5 * jnp.log(jnp.finfo(self._dtype).eps), floating_range(self._dtype)
            enough = jnp.all((jnp.log(left) > least) & (jnp.log(left) < most))
            return jnp.isfinite(value) & (log_elasticity < jnp.inf) & enough

        for _ in range(3):
            grid = np.linspace(low, high, 33)
            sound = np.asarray(kept(jnp.asarray(grid, self._dtype)))
            last = 32 if sound.all() else max(int(np.argmin(sound)) - 1, 0)
            low, high = grid[last], grid[min(last + 1, 32)]
        return jnp.asarray(low, self._dtype)

    def _factor(self, means: Float[Array, "draws points"]) -> tuple[Array, Array]:
        """Mean displacement, and F with a row per draw (or per direction of a linear model)."""
        if self.linear:
            return jnp.zeros_like(means[0]), means
        centre = means.mean(0)
        return centre, (means - centre) / math.sqrt(means.shape[0])

    def bind(self, keep: int = 0) -> Evaluate:
        start = self._moments(self.reference)
        half_width = floating_range(self._dtype)
        if self.power is None:
            inner = extrapolated(self._bind_by_passes(start), half_width)

            def below(log_tau):
                # Rates that leave floating point, or variances that vanish: by the power law there.
                inside = jnp.minimum(log_tau, self.highest)
                log_kappa, log_elasticity = inner(inside)
                return log_kappa + jnp.exp(log_elasticity) * (log_tau - inside), log_elasticity

            return below
        power = float(self.power[0])

        def unit(xi: PyTree) -> Array:
            zero = jnp.zeros((), self._dtype)
            path = lambda u: self._moments(self.parameters(jnp.exp(u), xi))["mean"]  # noqa: E731
            return jax.jvp(path, (zero,), (jnp.ones_like(zero),))[1] / power

        centre, factor = self._factor(jax.vmap(unit)(self.noise))
        gram = (factor / start["variance"]) @ factor.T
        values = jnp.linalg.eigvalsh(gram)
        present = values > gram.shape[0] * jnp.finfo(gram.dtype).eps * values[-1]
        log_values = jnp.log(jnp.where(present, values, 1.0))
        shift = jnp.sum(centre**2 / start["variance"])

        def evaluate(log_tau):
            def value(u):
                log_v = 2.0 * power * u + log_values
                # In units of the shift's power law, so that nothing under- or overflows.
                moved = jnp.where(present, jnp.exp(log_minus_log1p(log_v) - 2.0 * power * u), 0.0)
                return jnp.log(0.5 * (moved.sum() + shift)) + 2.0 * power * u

            log_kappa, rate = jax.jvp(value, (log_tau,), (jnp.ones_like(log_tau),))
            return log_kappa, jnp.log(rate)

        return extrapolated(evaluate, half_width / max(1.0, 2.0 * power))

    def _bind_by_passes(self, start: dict[str, Array]) -> Evaluate:
        """Forward passes at every scale."""

        def displaced(log_tau: Array, xi: PyTree) -> tuple[PyTree, PyTree]:
            theta, velocity, step = parameter_step(
                lambda u: self.parameters(jnp.exp(u), xi), log_tau, self.reference
            )
            return displacement(self._moments, theta, velocity, step, self.reference, start)

        def evaluate(log_tau):
            shift, speed = jax.vmap(displaced, (None, 0))(log_tau, self.noise)
            largest = jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(shift)]).max()
            size = jax.lax.stop_gradient(jnp.where(largest > 0.0, largest, 1.0))
            shift, speed = jax.tree.map(lambda leaf: leaf / size, (shift, speed))
            value, rate = jax.jvp(lambda moved: self._value(moved, size, start), (shift,), (speed,))
            # -inf where D stays or falls, which its values tell; NaN only where numbers are lost.
            log_rate = jnp.log(jnp.maximum(rate, 0.0))
            return jnp.log(value) + 2.0 * jnp.log(size), log_rate - jnp.log(value)

        return evaluate

    def _value(self, shift: dict[str, Array], size: Array, start: dict[str, Array]) -> Array:
        """The divergence over `size^2`, from displacements in units of `size`."""
        centre, factor = self._factor(shift["mean"])
        spread = shift["variance"].mean(0) / start["variance"]
        relative = 1.0 + size * spread
        gram = (factor / (start["variance"] * relative)) @ factor.T
        # tr F^T (1 / L_0 - 1 / L) F, which belongs to the change of the variances.
        cross = jnp.sum(factor**2 / start["variance"] * (size * spread / relative))
        parts = jnp.sum(scaled_minus_log1p(spread, size) + centre**2 / start["variance"]) + cross
        return 0.5 * parts + size**2 * gaussian_divergence(gram, size**2)

    def caution(self) -> str | None:
        """What `diagnose` should say although D increases."""
        if not self.family_is_bounded:
            return None
        return (
            "D grows without bound although the divergence of these observations is bounded: the Gaussian "
            "match has no variance left where predictions saturate; keep pi below, or use "
            "PredictiveComplexity"
        )
