"""Training: runs side by side in one compiled program, iterations in a scan."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, PyTree

from predcp.fewshot._complexity import module_draws, module_kappa
from predcp.fewshot._episodes import Pool, task_key
from predcp.fewshot._networks import Network
from predcp.fewshot._objective import Meta, outer_loss, targets, task_logits
from predcp.fewshot._priors import ScalePrior, run_values
from predcp.fewshot._settings import Settings

# Streams of random numbers: no two uses share one.
_START, _TRAIN, _DRAWS, _VALIDATION, _TEST, _KAPPA = range(6)
STREAMS = {"validation": _VALIDATION, "test": _TEST}
# Tasks adapted at once when a model is tried.
_BLOCK = 100
# Draws of the kappa that is reported: enough for a smooth picture.
_REPORTED_DRAWS = 8


class Run(NamedTuple):
    """One fit: its prior and its seed."""

    prior: ScalePrior
    seed: int


class State(NamedTuple):
    """Where training stands; every leaf but `iteration` has a leading axis of runs.

    **Arguments**: `best` are the parameters that did best on validation tasks, `best_accuracy` and
    `best_iteration` say how well and when, `stale` counts looks since.
    """

    meta: Meta
    optimiser: PyTree
    best: Meta
    best_accuracy: Float[Array, " runs"]
    best_iteration: Int[Array, " runs"]
    stale: Int[Array, " runs"]
    iteration: Int[Array, ""]


class Scores(NamedTuple):
    """How tasks went; every leaf has leading axes of runs and tasks.

    **Arguments**: `accuracy`, `log_likelihood` (the mean over queries), `small_accuracy` on the first
    `shots` queries of each class, and a task's calibration `bins` `(3, bins)`: how many queries fell in
    each bin of confidence, the sum of their confidences, how many were right.
    """

    accuracy: Float[Array, "..."]
    log_likelihood: Float[Array, "..."]
    small_accuracy: Float[Array, "..."]
    bins: Float[Array, "..."]


class Trainer:
    """Compiled programs for runs that share data, network and settings.

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
        train.require(settings.ways, settings.shots, settings.queries, "the training data")
        if validation is not None:
            if validation.example_shape != train.example_shape:
                raise ValueError(
                    f"validation examples have shape {validation.example_shape}, those to train on "
                    f"{train.example_shape}: both must be alike, channels too"
                )
            validation.require(
                settings.ways, settings.shots, settings.queries, "the validation data"
            )
        self.network, self.settings, self.runs = network, settings, tuple(runs)
        self.train, self.validation = train, validation
        self.kinds = frozenset(run.prior.kind for run in runs)
        self.values, self.densities = run_values(
            [run.prior for run in runs], network.module_names
        )
        self.seeds = jnp.asarray([run.seed for run in runs], jnp.uint32)
        self.optimiser = optax.adam(settings.outer_rate)
        self._place(devices)
        self._advance = jax.jit(self._chunk, static_argnames="length")
        self._try = jax.jit(self._scores, static_argnames=("count", "stream"))
        self._kappa = jax.jit(self._reported_kappa)
        self._select = jax.jit(self._selected)

    def _place(self, devices: Sequence[Any] | None) -> None:
        """Where arrays go: runs spread over devices if they divide, else tasks of an iteration."""
        self._by_run = self._by_task = self._everywhere = None
        if devices is None or len(devices) < 2:
            return
        mesh = Mesh(devices, ("devices",))
        self._everywhere = NamedSharding(mesh, PartitionSpec())
        if len(self.runs) % len(devices) == 0:
            self._by_run = NamedSharding(mesh, PartitionSpec("devices"))
            self.values = jax.device_put(self.values, self._by_run)
            self.seeds = jax.device_put(self.seeds, self._by_run)
        elif self.settings.meta_batch % len(devices) == 0:
            self._by_task = NamedSharding(mesh, PartitionSpec(None, None, "devices"))
            self.values = jax.device_put(self.values, self._everywhere)
            self.seeds = jax.device_put(self.seeds, self._everywhere)
        else:
            raise ValueError(
                f"{len(devices)} devices divide neither the {len(self.runs)} runs nor the "
                f"{self.settings.meta_batch} tasks of an iteration (meta_batch); use fewer devices"
            )
        self.train = jax.device_put(self.train, self._everywhere)
        if self.validation is not None:
            self.validation = jax.device_put(self.validation, self._everywhere)

    def start(self) -> State:
        """Fresh parameters: a seed decides them, whatever the prior."""

        def one(seed: Array) -> tuple[Meta, PyTree]:
            theta, shared = self.network.init(
                task_key(seed, _START, 0), self.train.example_shape
            )
            modules = len(self.network.module_names)
            log_sigma = jnp.full(modules, jnp.log(self.settings.initial_scale))
            meta = Meta(theta, shared, log_sigma.astype(jnp.result_type(float)))
            return meta, self.optimiser.init(meta)

        meta, optimiser = jax.jit(jax.vmap(one))(self.seeds)
        # MAML has no scales: a step of theta is the inner rate times the gradient.
        fixed = meta.log_sigma * self.values.trainable[:, None]
        meta = meta._replace(log_sigma=fixed)
        runs = len(self.runs)
        state = State(
            meta,
            optimiser,
            meta,
            jnp.full(runs, -1.0, meta.log_sigma.dtype),
            jnp.zeros(runs, jnp.int32),
            jnp.zeros(runs, jnp.int32),
            jnp.zeros((), jnp.int32),
        )
        return self.placed(state)

    def placed(self, state: State) -> State:
        """A state on the devices of this trainer."""
        if self._everywhere is None:
            return jax.tree.map(jnp.asarray, state)
        runs = self._by_run or self._everywhere
        moved = jax.device_put(state._replace(iteration=jnp.zeros((), jnp.int32)), runs_of(runs, state))
        return moved._replace(iteration=jax.device_put(state.iteration, self._everywhere))

    def advance(self, state: State, length: int) -> tuple[State, dict[str, Array]]:
        """`length` iterations, and the mean query loss and accuracy of each run over them."""
        return self._advance(state, self.values, self.seeds, self.train, length=length)

    def _chunk(self, state, values, seeds, train, length):
        settings = self.settings
        each = settings.shots + settings.queries
        numbers = state.iteration + jnp.arange(length)

        def rows(number: Array, seed: Array) -> Array:
            keys = jax.random.split(task_key(seed, _TRAIN, number), settings.meta_batch)
            return jax.vmap(lambda key: train.rows(key, settings.ways, each))(keys)

        # All tasks of the chunk at once: drawing them costs a few kernels, not a few an iteration.
        drawn = jax.vmap(lambda number: jax.vmap(partial(rows, number))(seeds))(numbers)
        if self._by_task is not None:
            drawn = jax.lax.with_sharding_constraint(drawn, self._by_task)
        keys = jax.vmap(
            lambda number: jax.vmap(lambda seed: task_key(seed, _DRAWS, number))(seeds)
        )(numbers)

        def iterate(carry, inputs):
            meta, optimiser = carry
            meta, optimiser, told = jax.vmap(partial(self._step, train))(
                meta, optimiser, values, *inputs
            )
            return (meta, optimiser), told

        (meta, optimiser), (loss, accuracy) = jax.lax.scan(
            iterate, (state.meta, state.optimiser), (drawn, keys)
        )
        advanced = state._replace(
            meta=meta, optimiser=optimiser, iteration=state.iteration + length
        )
        return advanced, {"loss": loss.mean(0), "accuracy": accuracy.mean(0)}

    def _step(self, train, meta, optimiser, run, rows, key):
        x = train.standardised(rows)
        (_, told), slope = jax.value_and_grad(outer_loss, has_aux=True)(
            meta, self.network, self.settings, self.densities, self.kinds, run, x, key
        )
        slope = slope._replace(log_sigma=slope.log_sigma * run.trainable)
        if any(held.prior.clip is not None for held in self.runs):
            shrink = jnp.minimum(1.0, run.clip / optax.global_norm(slope))
            slope = jax.tree.map(lambda leaf: leaf * shrink, slope)
        change, optimiser = self.optimiser.update(slope, optimiser, meta)
        return optax.apply_updates(meta, change), optimiser, told

    def scores(self, meta: Meta, pool: Pool, count: int, stream: str) -> Scores:
        """How `count` tasks of a pool go, `(runs, tasks)`; `stream` is `validation` or `test`."""
        if self._everywhere is not None:
            pool = jax.device_put(pool, self._everywhere)
        return self._try(meta, self.values.decay, pool, count=count, stream=stream)

    def _scores(self, meta, decay, pool, count, stream):
        block = min(_BLOCK, count)
        blocks = -(-count // block)

        def some(numbers: Array) -> Scores:
            def one(number: Array) -> Scores:
                key = task_key(self.settings.task_seed, STREAMS[stream], number)
                return self._one_task(meta, decay, pool, key)

            return jax.vmap(one)(numbers)

        numbers = jnp.arange(blocks * block).reshape(blocks, block)
        found = jax.lax.map(some, numbers)
        return jax.tree.map(
            lambda leaf: jnp.moveaxis(leaf.reshape(-1, *leaf.shape[2:])[:count], 1, 0), found
        )

    def _one_task(self, meta, decay, pool, key) -> Scores:
        """One task under every run."""
        settings = self.settings
        x = pool.standardised(pool.rows(key, settings.ways, settings.shots + settings.queries))
        shape = x.shape[2:]
        support = self.network.prepare(x[:, : settings.shots].reshape(-1, *shape))
        query = self.network.prepare(x[:, settings.shots :].reshape(-1, *shape))

        def one(meta: Meta, decay: Array) -> Scores:
            logits = task_logits(
                self.network,
                settings,
                meta,
                decay,
                support,
                query,
                settings.inner_steps_test,
                False,
            )
            return score(logits, settings)

        return jax.vmap(one)(meta, decay)

    def selected(self, state: State) -> tuple[State, dict[str, Array]]:
        """The state after a look at the validation tasks, and what was seen."""
        if self.validation is None:
            now = jnp.broadcast_to(state.iteration, state.best_iteration.shape)
            return state._replace(best=state.meta, best_iteration=now), {}
        seen = self.scores(
            state.meta, self.validation, self.settings.validation_tasks, "validation"
        )
        accuracy, likelihood = seen.accuracy.mean(1), seen.log_likelihood.mean(1)
        return self._select(state, accuracy), {
            "validation_accuracy": accuracy,
            "validation_log_likelihood": likelihood,
        }

    def _selected(self, state: State, accuracy: Array) -> State:
        patience = self.settings.patience
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

    def kappa(self, meta: Meta) -> Float[Array, "runs modules"]:
        """kappa of every module on one fixed batch of tasks, with fixed draws."""
        pool = self.train if self.validation is None else self.validation
        return self._kappa(meta, pool)

    def _reported_kappa(self, meta, pool):
        settings = self.settings
        keys = jax.random.split(task_key(settings.task_seed, _KAPPA, 0), settings.meta_batch)
        rows = jax.vmap(lambda key: pool.rows(key, settings.ways, settings.shots))(keys)
        x = pool.standardised(rows)
        inputs = self.network.prepare(x.reshape(-1, *x.shape[3:]))

        def one(meta: Meta) -> Array:
            draws = module_draws(
                task_key(settings.task_seed, _KAPPA, 1), meta.theta, _REPORTED_DRAWS
            )
            found = module_kappa(
                self.network, meta.theta, meta.shared, meta.log_sigma, inputs, draws
            )
            return jnp.exp(found.log_kappa)

        return jax.vmap(one)(meta)


def runs_of(sharding: NamedSharding, state: State) -> Any:
    """That sharding for every leaf with an axis of runs."""
    everywhere = NamedSharding(sharding.mesh, PartitionSpec())
    return jax.tree.map(lambda leaf: sharding if jnp.ndim(leaf) else everywhere, state)


_BINS = 15


def score(logits: Float[Array, "q ways"], settings: Settings) -> Scores:
    """How one task's queries went, in rows sorted by class."""
    wanted = targets(settings.ways, settings.queries, logits.dtype)
    log_p = jax.nn.log_softmax(logits)
    guess = jnp.argmax(logits, -1)
    right = (guess == jnp.argmax(wanted, -1)).astype(logits.dtype)
    confidence = jnp.exp(log_p.max(-1))
    place = jnp.clip((confidence * _BINS).astype(int), 0, _BINS - 1)
    member = (place[:, None] == jnp.arange(_BINS)).astype(logits.dtype)
    few = min(settings.shots, settings.queries)
    first = right.reshape(settings.ways, settings.queries)[:, :few]
    return Scores(
        right.mean(),
        jnp.sum(wanted * log_p, -1).mean(),
        first.mean(),
        jnp.stack([member.sum(0), confidence @ member, right @ member]),
    )
