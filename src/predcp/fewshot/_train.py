"""Training: runs side by side in one compiled program, iterations in a scan."""

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, PyTree

from predcp.fewshot._complexity import ChainComplexity, module_noise
from predcp.fewshot._episodes import STREAMS, Pool, task_key
from predcp.fewshot._networks import Network
from predcp.fewshot._objective import Meta, outer_loss
from predcp.fewshot._runs import Present, Run, RunValues, run_values
from predcp.fewshot._scores import Scores, score_tasks
from predcp.fewshot._settings import Settings

# Noise draws for the reported kappa: enough for a smooth plot.
_REPORTED_DRAWS = 8
# Only its direction: rates are data, so that runs of one program may differ in them.
_ADAM = optax.scale_by_adam()


class State(NamedTuple):
    """State of training; every leaf but `iteration` has a leading axis of runs.

    **Arguments**: `best`, the parameters that did best on validation tasks, with `best_accuracy` and
    `best_iteration`; `stale`, the number of validations since.
    """

    meta: Meta
    optimiser: PyTree
    best: Meta
    best_accuracy: Float[Array, " runs"]
    best_iteration: Int[Array, " runs"]
    stale: Int[Array, " runs"]
    iteration: Int[Array, ""]


class Trainer:
    """Runs that share data, network and settings; their programs are compiled once per process.

    **Arguments**
    - `network`, `settings`: of all runs. `runs`: priors and seeds.
    - `train`: classes to train on; `validation`: classes to select on, or None to keep the last.
    - `devices`: to spread runs over, or the tasks of an iteration if there are not enough runs; None for
        the first alone.
    """

    def __init__(
        self,
        network: Network,
        settings: Settings,
        runs: Sequence[Run],
        train: Pool,
        validation: Pool | None = None,
        devices: Sequence[Any] | None = None,
    ):
        if not runs:
            raise ValueError("runs must name at least one prior and seed")
        if network.ways != settings.ways:
            raise ValueError(f"the network has {network.ways} ways, the tasks {settings.ways}")
        sizes = (settings.ways, settings.shots, settings.queries)
        train.require(*sizes, "the training data")
        if validation is not None:
            require_alike(validation, train, "validation")
            validation.require(*sizes, "the validation data")
        self.network, self.settings, self.runs = network, settings, tuple(runs)
        self.train, self.validation = train, validation
        priors = [run.prior for run in runs]
        self.present = Present.among(priors)
        rates = [run.rates or settings.rates for run in runs]
        self.values, self.densities = run_values(priors, network.module_names, rates)
        self.seeds = jnp.asarray([run.seed for run in runs], jnp.uint32)
        self._place(devices)

    def _place(self, devices: Sequence[Any] | None) -> None:
        """Devices of the arrays: runs are spread over them if they divide, else tasks of an iteration."""
        self._of_runs = self._of_tasks = self._everywhere = None
        if devices is None or len(devices) < 2:
            return
        mesh = Mesh(devices, ("devices",))
        self._everywhere = NamedSharding(mesh, PartitionSpec())
        if len(self.runs) % len(devices) == 0:
            self._of_runs = NamedSharding(mesh, PartitionSpec("devices"))
        elif self.settings.meta_batch % len(devices) == 0:
            self._of_runs = self._everywhere
            self._of_tasks = NamedSharding(mesh, PartitionSpec(None, None, "devices"))
        else:
            raise ValueError(
                f"{len(devices)} devices divide neither the {len(self.runs)} runs nor the "
                f"{self.settings.meta_batch} tasks of an iteration (meta_batch); use fewer devices"
            )
        self.values, self.seeds = jax.device_put((self.values, self.seeds), self._of_runs)
        self.train, self.validation = jax.device_put(
            (self.train, self.validation), self._everywhere
        )

    def narrowed(self, places: Sequence[int]) -> "Trainer":
        """A trainer of some of the runs, with the same results for them."""
        if list(places) == list(range(len(self.runs))):
            return self
        other = copy.copy(self)
        other.runs = tuple(self.runs[place] for place in places)
        chosen = jnp.asarray(places)
        other.values, other.seeds = jax.tree.map(
            lambda leaf: leaf[chosen], (self.values, self.seeds)
        )
        return other

    def working(self, state: State) -> list[int]:
        """Indices of the runs to go on with: those that have not stopped, and a few that have.

        A program is compiled for a number of runs, so that number falls only when a third of them have
        stopped. It depends on the state alone, so a resumed fit has the same runs.
        """
        patience = self.settings.patience
        count = len(self.runs)
        if patience is None or self.validation is None or self._everywhere is not None:
            return list(range(count))
        stale = np.asarray(state.stale)
        active = int(np.sum(stale < patience))
        while 0 < active <= 2 * count // 3:
            count = max(active, 2 * count // 3)
        # Keep the latest of the stopped runs, so that sets of runs only shrink.
        return sorted(np.argsort(stale, kind="stable")[:count].tolist())

    def start(self) -> State:
        """Initial parameters: they depend on the seed, not on the prior."""
        return self.placed(
            _start(
                self.network,
                self.settings.program,
                self.values,
                self.seeds,
                self.train.example_shape,
            )
        )

    def placed(self, state: State) -> State:
        """A state on the devices of this trainer."""
        if self._everywhere is None:
            return jax.tree.map(jnp.asarray, state)
        spread = jax.device_put(state, self._of_runs_where(state))
        return spread

    def _of_runs_where(self, state: State) -> Any:
        return jax.tree.map(
            lambda leaf: self._of_runs if jnp.ndim(leaf) else self._everywhere, state
        )

    def advance(self, state: State, length: int) -> tuple[State, dict[str, Array]]:
        """`length` iterations, and the mean query loss and accuracy of each run over them."""
        return _advance(
            self.network,
            self.settings.program,
            self.densities,
            self.values,
            self.seeds,
            self.train,
            state,
            jnp.asarray(self.settings.iterations),
            length,
            self.present,
            self._of_tasks,
        )

    def scores(self, meta: Meta, pool: Pool, count: int, stream: str) -> Scores:
        """Scores of tasks of a pool, `(runs, count)`; `stream` is `validation`, `check` or `test`."""
        if self._everywhere is not None:
            pool = jax.device_put(pool, self._everywhere)
        return score_tasks(
            self.network,
            self.settings.program,
            meta,
            self.values.decay,
            self.values.rates.inner_rate,
            pool,
            count,
            stream,
        )

    def selected(self, state: State) -> tuple[State, dict[str, Array]]:
        """The state after a validation, and its scores."""
        if self.validation is None:
            now = jnp.broadcast_to(state.iteration, state.best_iteration.shape)
            return state._replace(best=state.meta, best_iteration=now), {}
        count = self.settings.validation_tasks
        seen = self.scores(state.meta, self.validation, count, "validation")
        accuracy, likelihood = seen.accuracy.mean(1), seen.log_likelihood.mean(1)
        return _selected(state, accuracy, self.settings.patience), {
            "validation_accuracy": accuracy,
            "validation_log_likelihood": likelihood,
        }

    def kappa(self, meta: Meta) -> Float[Array, "runs modules"]:
        """kappa of every module on one fixed batch of tasks, with fixed noise."""
        pool = self.train if self.validation is None else self.validation
        return reported_kappa(self.network, self.settings.program, meta, pool)


def some_of(state: State, places: Sequence[int]) -> State:
    """The state of the runs at those places."""
    chosen = jnp.asarray(places)
    return jax.tree.map(lambda leaf: leaf[chosen] if jnp.ndim(leaf) else leaf, state)


def put_back(state: State, part: State, places: Sequence[int]) -> State:
    """The state of all runs with the new state of some; the others stay as they were."""
    chosen = jnp.asarray(places)
    # Runs left out count validations too: which run stopped first stays known.
    state = state._replace(stale=state.stale + 1)
    return jax.tree.map(
        lambda old, new: old.at[chosen].set(new) if jnp.ndim(old) else new, state, part
    )


def require_alike(pool: Pool, train: Pool, name: str) -> None:
    """Refuse examples of another shape than those trained on."""
    if pool.example_shape != train.example_shape:
        raise ValueError(
            f"{name} examples have shape {pool.example_shape}, those trained on "
            f"{train.example_shape}: both must be alike, channels too"
        )


def _half_cosine(share: Array) -> Array:
    """From 1 at the start to 0 at the end."""
    return 0.5 * (1.0 + jnp.cos(jnp.pi * share))


@partial(jax.jit, static_argnames=("settings", "example_shape"))
def _start(network, settings, values, seeds, example_shape) -> State:
    def one(seed: Array, run: RunValues) -> tuple[Meta, PyTree]:
        theta, shared = network.init(task_key(seed, STREAMS["start"], 0), example_shape)
        kind = jnp.result_type(float)
        log_sigma = jnp.full(len(network.module_names), jnp.log(run.rates.initial_scale), kind)
        # MAML has no scales: a step of theta is the inner rate times the gradient.
        meta = Meta(theta, shared, log_sigma * run.trainable)
        return meta, _ADAM.init(meta)  # type: ignore[arg-type]

    meta, optimiser = jax.vmap(one)(seeds, values)
    runs = seeds.shape[0]
    return State(
        meta,
        optimiser,
        meta,
        jnp.full(runs, -1.0, meta.log_sigma.dtype),
        jnp.zeros(runs, jnp.int32),
        jnp.zeros(runs, jnp.int32),
        jnp.zeros((), jnp.int32),
    )


@partial(jax.jit, static_argnames=("settings", "length", "present", "of_tasks"))
def _advance(
    network, settings, densities, values, seeds, train, state, total, length, present, of_tasks
):
    """`length` iterations of every run.

    **Arguments**: `total` iterations of the whole fit; what is `present` among the runs; `of_tasks`, the
    sharding of drawn tasks.
    """
    each = settings.shots + settings.queries
    numbers = state.iteration + jnp.arange(length)

    def rows(number: Array, seed: Array) -> Array:
        key = task_key(seed, STREAMS["train"], number)
        keys = jax.random.split(key, settings.meta_batch)
        return jax.vmap(lambda key: train.rows(key, settings.ways, each))(keys)

    def noise_key(number: Array, seed: Array) -> Array:
        return task_key(seed, STREAMS["noise"], number)

    def for_all(function):
        return jax.vmap(lambda number: jax.vmap(partial(function, number))(seeds))(numbers)

    # All tasks of the chunk at once: drawing them costs a few kernels, not a few an iteration.
    drawn = for_all(rows)
    if of_tasks is not None:
        drawn = jax.lax.with_sharding_constraint(drawn, of_tasks)

    def step(meta, memory, run, rows, key, over):
        x = train.standardised(rows)
        (_, figures), slope = jax.value_and_grad(outer_loss, has_aux=True)(
            meta, network, settings, densities, present, run, x, key
        )
        slope = slope._replace(log_sigma=slope.log_sigma * run.trainable)
        if present.clips:
            square = sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(slope))
            shrink = jnp.minimum(1.0, run.clip / jnp.sqrt(square))
            slope = jax.tree.map(lambda leaf: leaf * shrink, slope)
        direction, memory = _ADAM.update(slope, memory)
        share = run.rates.final_rate + (1.0 - run.rates.final_rate) * over
        rate = run.rates.outer_rate * share
        kept = 1.0 - rate * run.rates.weight_decay
        meta = meta._replace(theta=jax.tree.map(lambda leaf: kept * leaf, meta.theta))
        meta = jax.tree.map(lambda leaf, change: leaf - rate * change, meta, direction)
        return meta, memory, figures

    def iterate(carry, inputs):
        (meta, memory), (rows, key, over) = carry, inputs
        own = jax.vmap(step, in_axes=(0, 0, 0, 0, 0, None))
        meta, memory, figures = own(meta, memory, values, rows, key, over)
        return (meta, memory), figures

    (meta, memory), (loss, accuracy) = jax.lax.scan(
        iterate,
        (state.meta, state.optimiser),
        (drawn, for_all(noise_key), _half_cosine(numbers / total).astype(values.decay.dtype)),
    )
    advanced = state._replace(meta=meta, optimiser=memory, iteration=state.iteration + length)
    return advanced, {"loss": loss.mean(0), "accuracy": accuracy.mean(0)}


@partial(jax.jit, static_argnames="patience")
def _selected(state: State, accuracy: Array, patience: int | None) -> State:
    stopped = jnp.zeros_like(accuracy, bool) if patience is None else state.stale >= patience
    # A run that has stopped stays as it was, so that its company does not change its result.
    better = (accuracy > state.best_accuracy) & ~stopped

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return state._replace(
        best=jax.tree.map(choose, state.meta, state.best),
        best_accuracy=jnp.where(better, accuracy, state.best_accuracy),
        best_iteration=jnp.where(better, state.iteration, state.best_iteration),
        stale=jnp.where(better, 0, state.stale + 1),
    )


@partial(jax.jit, static_argnames="settings")
def reported_kappa(
    network: Network, settings: Settings, meta: Meta, pool: Pool
) -> Float[Array, "runs modules"]:
    """kappa of every module of every run on one fixed batch of support sets, with fixed noise."""
    key_tasks, key_noise = jax.random.split(task_key(settings.task_seed, STREAMS["kappa"], 0))
    keys = jax.random.split(key_tasks, settings.meta_batch)
    rows = jax.vmap(lambda key: pool.rows(key, settings.ways, settings.shots))(keys)
    x = pool.standardised(rows)
    inputs = network.prepare(x.reshape(-1, *x.shape[3:]))

    def one(meta: Meta) -> Array:
        noise = module_noise(key_noise, meta.theta, _REPORTED_DRAWS)
        complexity = ChainComplexity(network, meta.theta, meta.shared, inputs, noise)
        return jnp.exp(complexity.log_value_and_elasticity(2.0 * meta.log_sigma)[0])

    return jax.vmap(one)(meta)
