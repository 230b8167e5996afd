"""Mean-field normal variational inference in unconstrained coordinates, with two ways to stop.

`rule="advi"` follows Stan's ADVI (Kucukelbir et al., 2017) step by step, its stopping rule
included, to compare with the paper, whose figures depend on where that rule stops.
`rule="converged"` goes on until the objective no longer rises.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from predcp._support.background import done_by
from predcp._support.progress import Progress, as_report
from predcp.linear._draws import Draws
from predcp.linear._layout import NOT_COMPILED
from predcp.linear._target import Target

# As in Stan: candidates for the step size, steps to try each, steps between evaluations of the ELBO.
_ETAS = (100.0, 10.0, 1.0, 0.1, 0.01)
_TRIAL_STEPS = 50
_BLOCK = 100
# Seconds that a call of the program should take: progress is reported between calls.
_CALL_SECONDS = 0.5
_ELBO_DRAWS = 100
_HISTORY = 0.1
# Regressions with more rows are fitted by so many at a time.
_MANY_ROWS = 20_000
_BATCH_ROWS = 1024


class _Normal(NamedTuple):
    """`q(theta) = N(mean, exp(log_sd)^2)` with independent coordinates."""

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
        # Like Stan, drop draws without a density as long as some are left.
        finite = jnp.isfinite(values)
        mean = jnp.sum(jnp.where(finite, values, 0.0)) / jnp.sum(finite)
        return mean + entropy

    def gradient(self, q: _Normal, noise: Array) -> _Normal:
        """Gradient of the ELBO, estimated from one draw with the given noise."""
        sd = jnp.exp(q.log_sd)
        slope = jax.grad(self.log_joint)(q.mean + sd * noise)
        # A draw without a gradient is dropped, and so is its step.
        usable = jnp.all(jnp.isfinite(slope))
        by_log_sd = slope * noise * sd + 1.0
        return _Normal(jnp.where(usable, slope, 0.0), jnp.where(usable, by_log_sd, 0.0))


@dataclass(frozen=True)
class MeanField:
    """A normal with a diagonal covariance, fitted by stochastic gradients of the ELBO.

    **Arguments**
    - `draws`: from the fitted normal.
    - `rule`: `advi`, Stan's step sizes and stopping rule; or `converged`.
    - `max_steps`: largest number of gradients; None for 10,000 (`advi`) and 40,000 (`converged`).
    - `tolerance`: of `advi`, on the relative change of the ELBO.
    - `gradient_draws`: of `converged`, noise vectors a step.
    - `batch_rows`: of `converged`, rows that each step looks at, in the likelihood and in a prior's
        divergence, which is a mean over rows; None for 1024 of a regression with more than
        20,000 rows and for all of any other.
    - `max_seconds`: time limit in seconds, compilation included, None for no limit; the fit then ends
        where it is. A TimeoutError says that nothing was fitted.
    """

    draws: int = 1000
    rule: Literal["advi", "converged"] = "converged"
    max_steps: int | None = None
    tolerance: float = 0.01
    gradient_draws: int = 4
    batch_rows: int | None = None
    max_seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rule not in ("advi", "converged"):
            raise ValueError(f"rule must be 'advi' or 'converged', got {self.rule!r}")
        for name in ("draws", "gradient_draws"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.batch_rows is not None and self.batch_rows < 2:
            raise ValueError(f"batch_rows must be at least 2 or None, got {self.batch_rows}")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ValueError(f"max_seconds must be positive or None, got {self.max_seconds}")

    def sample(self, target: Target, progress: Progress | None = None) -> list[Draws]:
        """Draws of the fitted normal of every problem of the target, as one chain."""
        report = as_report(progress)
        deadline = time.monotonic() + (math.inf if self.max_seconds is None else self.max_seconds)
        problems = target.problems or 1
        data = target.data
        if target.problems is None:
            data = jax.tree.map(lambda array: jnp.asarray(array)[None], data)
        keys = jax.random.split(jax.random.key(self.seed), problems)
        blocks = self._blocks
        report(0, blocks, "compiling")
        each = (0,) * len(data)
        start = jax.jit(jax.vmap(lambda key, *data: self._start(target, key, *data)))
        state = jax.eval_shape(start, keys, *data)
        advance = jax.vmap(partial(self._advance, target), (0, None, 0, *each))
        draw = jax.vmap(partial(self._draw, target))
        lowered = (
            start.lower(keys, *data),
            jax.jit(advance).lower(state, np.int32(1), keys, *data),
            jax.jit(draw).lower(state, keys, *data),
        )
        start, advance, draw = done_by(
            lambda: [program.compile() for program in lowered], deadline, NOT_COMPILED
        )
        began = time.perf_counter()
        state = start(keys, *data)
        done, length = 0, 1
        while done < blocks and not np.all(state.settled):
            if done and time.monotonic() >= deadline:
                break
            called, count = time.perf_counter(), min(length, blocks - done)
            done += count
            state = jax.block_until_ready(advance(state, np.int32(done), keys, *data))
            report(done, blocks, "fitting")
            spent = time.perf_counter() - called
            length = int(min(max(count * _CALL_SECONDS / max(spent, 1e-6), 1), 4 * count))
        kept, statistics, elbo = jax.tree.map(np.asarray, draw(state, keys, *data))
        seconds = (time.perf_counter() - began) / problems
        report(blocks, blocks, "fitting")
        steps = np.asarray(state.blocks) * _BLOCK
        if self.rule == "converged":
            steps = np.minimum(steps, self._steps)
        return [
            Draws(
                jax.tree.map(lambda leaf, i=i: leaf[i][None], kept),
                {name: values[i][None] for name, values in statistics.items()},
                None,
                seconds,
                int(steps[i]),
                {"elbo": float(elbo[i]), "steps": float(steps[i])},
                missing=0 if state.settled[i] else (blocks - done) * _BLOCK,
            )
            for i in range(problems)
        ]

    @property
    def _steps(self) -> int:
        return self.max_steps or (10_000 if self.rule == "advi" else 40_000)

    @property
    def _blocks(self) -> int:
        # Stan's ADVI runs whole blocks only.
        return max(1, self._steps // _BLOCK) if self.rule == "advi" else -(-self._steps // _BLOCK)

    def _posed(self, target: Target, key: Array, *data: Any) -> "_Problem":
        """The objective of one problem, its start and its keys."""
        key_start, key_fit, key_draw = jax.random.split(key, 3)
        start, unravel = ravel_pytree(target.start(key_start, 2.0 if self.rule == "advi" else 1.0))
        objective = _objective(target, unravel, start.size, data)
        return _Problem(objective, unravel, start, key_fit, key_draw)

    def _rows_a_step(self, target: Target, rows: int) -> int | None:
        """Number of rows that a step uses, None for all."""
        prior = target.options.get("prior")
        if target.family is None or not getattr(prior, "averages_rows", False):
            if self.batch_rows is not None:
                raise ValueError(
                    "batch_rows needs a linear or logistic regression of two classes and a prior "
                    "that is a mean over rows, as 'predcp', 'ecp', 'half-cauchy' and 'ridge' are; "
                    "use batch_rows=None"
                )
            return None
        batch = self.batch_rows
        if batch is None and rows > _MANY_ROWS:
            batch = _BATCH_ROWS
        return None if self.rule == "advi" or batch is None or batch >= rows else batch

    def _batch(self, target: Target, key: Array, data: tuple[Any, ...]) -> tuple[Any, ...]:
        """Random rows, weighted to represent all; the data themselves if all rows are used."""
        count = len(data[0])
        batch = self._rows_a_step(target, count)
        if batch is None:
            return data
        rows = jax.random.randint(key, (batch,), 0, count)
        x, y, *weights = (array[rows] for array in data)
        each = weights[0] if weights else jnp.ones((batch,), x.dtype)
        return x, y, each * (count / batch)

    def _start(self, target: Target, key: Array, *data: Any) -> "_State":
        problem = self._posed(target, key, *data)
        start, kind = problem.start, problem.start.dtype
        q = _Normal(start, jnp.zeros_like(start))
        if self.rule == "advi":
            key_initial, key_eta, _ = jax.random.split(problem.key_fit, 3)
            initial = problem.objective.elbo(q, key_initial, _ELBO_DRAWS)
            eta = self._choose_eta(problem.objective, q, initial, key_eta)
            memory: Any = _Normal(*(jnp.zeros_like(part) for part in q)), eta
        else:
            # Start narrow: from a wide start, heavy tails make the first steps too long.
            q = q._replace(log_sd=q.log_sd - 2.0)
            memory = self._adam().init(q)
        window = max(2, int(0.1 * self._steps / _BLOCK))
        return _State(
            q,
            memory,
            jnp.zeros((), jnp.int32),
            jnp.asarray(-jnp.finfo(kind).max, kind),
            jnp.full((window,), jnp.nan, kind),
            jnp.asarray(False),
        )

    def _advance(
        self, target: Target, state: "_State", until: Array, key: Array, *data: Any
    ) -> "_State":
        """State after `until` blocks of steps in total, or fewer if it has converged."""
        problem = self._posed(target, key, *data)

        def objective(key: Array) -> _Objective:
            batch = self._batch(target, key, data)
            return _objective(target, problem.unravel, problem.start.size, batch)

        def going(state: _State) -> Array:
            return (state.blocks < until) & ~state.settled

        def onward(state: _State) -> _State:
            if self.rule == "advi":
                return self._advi_block(problem.objective, problem.key_fit, state)
            return self._adam_block(objective, problem.key_fit, state)

        return jax.lax.while_loop(going, onward, state)

    def _draw(self, target: Target, state: "_State", key: Array, *data: Any):
        problem, q = self._posed(target, key, *data), state.q

        def one(key: Array):
            # Make noise where it is used: all at once it would take gigabytes.
            noise = jax.random.normal(key, q.mean.shape, q.mean.dtype)
            theta = q.mean + jnp.exp(q.log_sd) * noise
            log_q = jnp.sum(-0.5 * noise**2 - q.log_sd - 0.5 * math.log(2.0 * math.pi))
            # For a long table every draw uses its own rows.
            batch = self._batch(target, jax.random.fold_in(key, 1), data)
            objective = _objective(target, problem.unravel, problem.start.size, batch)
            kept = target.kept(problem.unravel(theta), *batch)
            return kept, objective.log_joint(theta), log_q

        kept, lp, log_q = jax.lax.map(one, jax.random.split(problem.key_draw, self.draws))
        # Use the same draws in both: at an exact fit the difference is constant.
        return kept, {"lp": lp, "log_q": log_q}, jnp.mean(lp - log_q)

    def _advi_block(self, objective: "_Objective", key: Array, state: "_State") -> "_State":
        _, _, key_ascent = jax.random.split(key, 3)
        (history, eta), number = state.memory, state.blocks
        key_steps, key_elbo = jax.random.split(jax.random.fold_in(key_ascent, number))
        q, history = _ascend(objective, state.q, history, eta, number * _BLOCK, _BLOCK, key_steps)
        elbo = objective.elbo(q, key_elbo, _ELBO_DRAWS)
        change = jnp.abs((elbo - state.elbo) / state.elbo)
        changes = jnp.roll(state.changes, -1).at[-1].set(change)
        settled = (jnp.nanmean(changes) < self.tolerance) | (
            jnp.nanmedian(changes) < self.tolerance
        )
        return _State(q, (history, eta), number + 1, elbo, changes, settled)

    def _choose_eta(
        self, objective: "_Objective", start: "_Normal", initial: Array, key: Array
    ) -> Array:
        """Stan's search: smaller step sizes while they help, then the best one before the drop."""

        def trial(carry: Any, candidate: tuple[Array, Array]) -> tuple[Any, None]:
            best_elbo, best, stopped = carry
            eta, key = candidate
            key_steps, key_elbo = jax.random.split(key)
            history = _Normal(*(jnp.zeros_like(part) for part in start))
            q, _ = _ascend(objective, start, history, eta, 0, _TRIAL_STEPS, key_steps)
            elbo = objective.elbo(q, key_elbo, _ELBO_DRAWS)
            elbo = jnp.where(jnp.isfinite(elbo), elbo, -jnp.inf)
            stopped = stopped | ((elbo < best_elbo) & (best_elbo > initial))
            best = jnp.where(stopped, best, eta)
            return (jnp.where(stopped, best_elbo, elbo), best, stopped), None

        etas = jnp.asarray(_ETAS, start.mean.dtype)
        begin = jnp.full_like(etas[0], -jnp.inf), etas[0], jnp.asarray(False)
        candidates = etas, jax.random.split(key, len(_ETAS))
        (_, best, _), _ = jax.lax.scan(trial, begin, candidates)
        return best

    def _adam(self) -> Any:
        import optax

        rate = optax.cosine_decay_schedule(0.02, self._steps, alpha=1e-3)
        return optax.adam(rate, b1=0.9, b2=0.99)

    def _adam_block(
        self, objective_of: Callable[[Array], "_Objective"], key: Array, state: "_State"
    ) -> "_State":
        """Adam with a falling step size on the path derivative, which vanishes at the optimum.

        **Arguments**: `objective_of`, from the key of a step to its objective.
        """
        adam = self._adam()

        def negative_elbo(q: _Normal, noise: Array, objective: _Objective) -> Array:
            def one(e: Array) -> Array:
                theta = q.mean + jnp.exp(q.log_sd) * e
                frozen = jax.lax.stop_gradient(q)
                z = (theta - frozen.mean) * jnp.exp(-frozen.log_sd)
                return jnp.sum(-0.5 * z**2 - frozen.log_sd) - objective.log_joint(theta)

            return jnp.mean(jax.vmap(one)(noise))

        def step(number: Array, carry: tuple[_Normal, Any]) -> tuple[_Normal, Any]:
            q, memory = carry
            key_step = jax.random.fold_in(key, number)
            objective = objective_of(jax.random.fold_in(key_step, 1))
            shape = (self.gradient_draws, objective.dimension)
            noise = jax.random.normal(key_step, shape, q.mean.dtype)
            slope = jax.grad(negative_elbo)(q, noise, objective)
            # A draw in a tail without a gradient must not end the fit.
            slope = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0.0), slope)
            updates, memory = adam.update(slope, memory, q)
            q = jax.tree.map(lambda value, update: value + update, q, updates)
            return q, memory

        first = state.blocks * _BLOCK
        last = jnp.minimum(first + _BLOCK, self._steps)
        q, memory = jax.lax.fori_loop(first, last, step, (state.q, state.memory))
        return state._replace(q=q, memory=memory, blocks=state.blocks + 1)


def _objective(
    target: Target, unravel: Callable[[Array], Any], size: int, data: tuple[Any, ...]
) -> _Objective:
    potential = target.potential(*data)
    return _Objective(lambda theta: -potential(unravel(theta)), size)


class _Problem(NamedTuple):
    objective: _Objective
    unravel: Callable[[Array], Any]
    start: Float[Array, " dim"]
    key_fit: Array
    key_draw: Array


class _State(NamedTuple):
    """State of a fit: after `blocks` of steps, with the optimiser's `memory`.

    **Arguments**: `elbo` and its last relative `changes` decide whether `advi` has `settled`.
    """

    q: _Normal
    memory: Any
    blocks: Array
    elbo: Array
    changes: Float[Array, " window"]
    settled: Array


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
