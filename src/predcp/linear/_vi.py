"""Mean-field normal variational inference in unconstrained coordinates, with two ways to stop.

`rule="advi"` follows Stan's ADVI (Kucukelbir et al., 2017) step by step, its stopping rule
included, to compare with the paper, whose figures depend on where that rule stops.
`rule="converged"` goes on until the objective no longer rises.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from predcp.linear._draws import Draws
from predcp.linear._layout import Progress
from predcp.linear._target import Target

# Stan's: candidates for the step size, steps to try each, and how often the ELBO is looked at.
_ETAS = (100.0, 10.0, 1.0, 0.1, 0.01)
_TRIAL_STEPS = 50
_EVALUATE_EVERY = 100
_ELBO_DRAWS = 100
_HISTORY = 0.1


class _Normal(NamedTuple):
    """`q(theta) = N(mean, exp(log_sd)^2)`, one coordinate independent of the other."""

    mean: Float[Array, " dim"]
    log_sd: Float[Array, " dim"]


class _Objective(NamedTuple):
    log_joint: Callable[[Array], Array]
    dimension: int

    def elbo(self, q: _Normal, key: Array, draws: int) -> Array:
        def one(key: Array) -> Array:
            noise = jax.random.normal(key, (self.dimension,), q.mean.dtype)
            return self.log_joint(q.mean + jnp.exp(q.log_sd) * noise)

        values = jax.lax.map(one, jax.random.split(key, draws))
        entropy = jnp.sum(q.log_sd) + 0.5 * self.dimension * (1.0 + math.log(2.0 * math.pi))
        # Stan drops draws without a density, as long as some are left.
        finite = jnp.isfinite(values)
        mean = jnp.sum(jnp.where(finite, values, 0.0)) / jnp.sum(finite)
        return mean + entropy

    def gradient(self, q: _Normal, noise: Array) -> _Normal:
        """Of the ELBO, by one draw with the given noise."""
        sd = jnp.exp(q.log_sd)
        slope = jax.grad(self.log_joint)(q.mean + sd * noise)
        # A draw without a gradient is dropped, and its step with it.
        usable = jnp.all(jnp.isfinite(slope))
        by_log_sd = slope * noise * sd + 1.0
        return _Normal(jnp.where(usable, slope, 0.0), jnp.where(usable, by_log_sd, 0.0))


@dataclass(frozen=True)
class MeanField:
    """A normal with a diagonal covariance, fitted by stochastic gradients of the ELBO.

    **Arguments**
    - `draws`: from the fitted normal.
    - `rule`: `advi`, Stan's step sizes and stopping rule; or `converged`.
    - `max_steps`: at most so many gradients; None for 10,000 (`advi`) and 40,000 (`converged`).
    - `tolerance`: of `advi`, on the relative change of the ELBO.
    - `gradient_draws`: of `converged`, noise vectors a step.
    """

    draws: int = 1000
    rule: Literal["advi", "converged"] = "converged"
    max_steps: int | None = None
    tolerance: float = 0.01
    gradient_draws: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rule not in ("advi", "converged"):
            raise ValueError(f"rule must be 'advi' or 'converged', got {self.rule!r}")
        for name in ("draws", "gradient_draws"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def sample(self, target: Target, progress: Progress | None = None) -> list[Draws]:
        """Draws of the fitted normal of every problem of the target, as one chain."""
        problems = target.problems or 1
        data = target.data
        if target.problems is None:
            data = jax.tree.map(lambda array: jnp.asarray(array)[None], data)
        keys = jax.random.split(jax.random.key(self.seed), problems)
        fit = jax.jit(jax.vmap(lambda key, *data: self._fit(target, key, *data)))
        program = fit.lower(keys, *data).compile()
        if progress is not None:
            progress(0, 1)
        began = time.perf_counter()
        kept, statistics, steps, elbo = jax.tree.map(np.asarray, program(keys, *data))
        seconds = (time.perf_counter() - began) / problems
        if progress is not None:
            progress(1, 1)
        return [
            Draws(
                jax.tree.map(lambda leaf, i=i: leaf[i][None], kept),
                {name: values[i][None] for name, values in statistics.items()},
                None,
                seconds,
                int(steps[i]),
                {"elbo": float(elbo[i]), "steps": float(steps[i])},
            )
            for i in range(problems)
        ]

    def _fit(self, target: Target, key: Array, *data: Any):
        key_start, key_fit, key_draw = jax.random.split(key, 3)
        start, unravel = ravel_pytree(target.start(key_start, 2.0 if self.rule == "advi" else 1.0))
        potential = target.potential(*data)
        objective = _Objective(lambda theta: -potential(unravel(theta)), start.size)
        q = _Normal(start, jnp.zeros_like(start))
        if self.rule == "advi":
            q, steps = self._advi(objective, q, key_fit)
        else:
            # Narrow at first: a wide start lets heavy tails throw the first steps far away.
            q, steps = self._converged(objective, q._replace(log_sd=q.log_sd - 2.0), key_fit)

        def one(key: Array):
            # Noise is made where it is used: all of it at once would be gigabytes.
            noise = jax.random.normal(key, start.shape, start.dtype)
            theta = q.mean + jnp.exp(q.log_sd) * noise
            log_q = jnp.sum(-0.5 * noise**2 - q.log_sd - 0.5 * math.log(2.0 * math.pi))
            return target.kept(unravel(theta), *data), objective.log_joint(theta), log_q

        kept, lp, log_q = jax.lax.map(one, jax.random.split(key_draw, self.draws))
        # The same draws in both: at an exact fit the difference does not vary at all.
        return kept, {"lp": lp, "log_q": log_q}, steps, jnp.mean(lp - log_q)

    def _advi(self, objective: _Objective, start: _Normal, key: Array) -> tuple[_Normal, Array]:
        key_initial, key_eta, key_ascent = jax.random.split(key, 3)
        initial = objective.elbo(start, key_initial, _ELBO_DRAWS)
        eta = self._choose_eta(objective, start, initial, key_eta)
        max_steps = self.max_steps or 10_000
        blocks = max(1, max_steps // _EVALUATE_EVERY)
        window = max(2, int(0.1 * max_steps / _EVALUATE_EVERY))
        state = (
            start,
            _Normal(*(jnp.zeros_like(part) for part in start)),
            0,
            -jnp.finfo(start.mean.dtype).max,
            jnp.full((window,), jnp.nan, start.mean.dtype),
            jnp.asarray(False),
        )

        def going(state):
            return (state[2] < blocks) & ~state[5]

        def block(state):
            q, history, number, elbo_before, changes, _ = state
            key_steps, key_elbo = jax.random.split(jax.random.fold_in(key_ascent, number))
            first = number * _EVALUATE_EVERY
            q, history = _ascend(objective, q, history, eta, first, _EVALUATE_EVERY, key_steps)
            elbo = objective.elbo(q, key_elbo, _ELBO_DRAWS)
            change = jnp.abs((elbo - elbo_before) / elbo_before)
            changes = jnp.roll(changes, -1).at[-1].set(change)
            settled = (jnp.nanmean(changes) < self.tolerance) | (
                jnp.nanmedian(changes) < self.tolerance
            )
            return q, history, number + 1, elbo, changes, settled

        q, _, number, *_ = jax.lax.while_loop(going, block, state)
        return q, jnp.asarray(number * _EVALUATE_EVERY)

    def _choose_eta(
        self, objective: _Objective, start: _Normal, initial: Array, key: Array
    ) -> Array:
        """Stan's search: smaller step sizes while they help, then the best one before the drop."""

        def trial(eta: float, key: Array) -> Array:
            key_steps, key_elbo = jax.random.split(key)
            history = _Normal(*(jnp.zeros_like(part) for part in start))
            q, _ = _ascend(objective, start, history, eta, 0, _TRIAL_STEPS, key_steps)
            elbo = objective.elbo(q, key_elbo, _ELBO_DRAWS)
            return jnp.where(jnp.isfinite(elbo), elbo, -jnp.inf)

        best_elbo, best, stopped = -jnp.inf, jnp.asarray(_ETAS[0]), jnp.asarray(False)
        for eta, key_eta in zip(_ETAS, jax.random.split(key, len(_ETAS))):
            elbo = trial(eta, key_eta)
            stopped = stopped | ((elbo < best_elbo) & (best_elbo > initial))
            best = jnp.where(stopped, best, eta)
            best_elbo = jnp.where(stopped, best_elbo, elbo)
        return best

    def _converged(self, objective: _Objective, q: _Normal, key: Array) -> tuple[_Normal, Array]:
        """Adam with a falling step size on the path derivative, which vanishes at the optimum."""
        import optax

        steps = self.max_steps or 40_000
        rate = optax.cosine_decay_schedule(0.02, steps, alpha=1e-3)
        adam = optax.adam(rate, b1=0.9, b2=0.99)

        def negative_elbo(q: _Normal, noise: Array) -> Array:
            def one(e: Array) -> Array:
                theta = q.mean + jnp.exp(q.log_sd) * e
                frozen = jax.lax.stop_gradient(q)
                z = (theta - frozen.mean) * jnp.exp(-frozen.log_sd)
                return jnp.sum(-0.5 * z**2 - frozen.log_sd) - objective.log_joint(theta)

            return jnp.mean(jax.vmap(one)(noise))

        def step(carry, number):
            q, state = carry
            shape = (self.gradient_draws, objective.dimension)
            noise = jax.random.normal(jax.random.fold_in(key, number), shape, q.mean.dtype)
            slope = jax.grad(negative_elbo)(q, noise)
            # A draw in a tail without a gradient must not end the fit.
            slope = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0.0), slope)
            updates, state = adam.update(slope, state, q)
            q = jax.tree.map(lambda value, update: value + update, q, updates)
            return (q, state), None

        (q, _), _ = jax.lax.scan(step, (q, adam.init(q)), jnp.arange(steps))
        return q, jnp.asarray(steps)


def _ascend(
    objective: _Objective,
    q: _Normal,
    history: _Normal,
    eta: Any,
    first: Any,
    steps: int,
    key: Array,
) -> tuple[_Normal, _Normal]:
    """Stan's stochastic gradient ascent from step `first`, with its running squared gradients."""

    def one(offset, carry):
        q, history = carry
        number = first + offset
        noise = jax.random.normal(jax.random.fold_in(key, offset), q.mean.shape, q.mean.dtype)
        slope = objective.gradient(q, noise)
        history = jax.tree.map(
            lambda h, g: jnp.where(number == 0, g * g, (1.0 - _HISTORY) * h + _HISTORY * g * g),
            history,
            slope,
        )
        rate = eta / jnp.sqrt(number + 1.0)
        q = jax.tree.map(lambda v, g, h: v + rate * g / (1.0 + jnp.sqrt(h)), q, slope, history)
        return q, history

    return jax.lax.fori_loop(0, steps, one, (q, history))
