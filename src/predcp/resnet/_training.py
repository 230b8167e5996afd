"""Training: epochs of mini-batches in one compiled program, for one fit or many at once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from predcp.resnet._objective import Model, Objective, Terms, loss
from predcp.resnet._posterior import Posterior, start

# Streams of random numbers of a fit.
_START, _ORDER, _STEPS = range(3)
Schedule = Callable[[Any], Any]


@dataclass(frozen=True)
class Optimiser:
    """Adam.

    **Arguments**: `learning_rate`, a number or an optax schedule of the step.
    """

    learning_rate: float | Schedule = 1e-3

    def __post_init__(self) -> None:
        rate = self.learning_rate
        if not callable(rate) and not (isinstance(rate, int | float) and rate > 0.0):
            raise ValueError(f"learning_rate must be positive or an optax schedule, got {rate!r}")

    def transformation(self) -> optax.GradientTransformation:
        """Adam on all parameters as one vector: one small kernel instead of one per array."""
        return optax.flatten(optax.adam(self.learning_rate))


class State(NamedTuple):
    """State of a fit.

    **Arguments**
    - `seed`: words of the fit's random key; they and `epoch` determine all its random numbers.
    - `epoch`: epochs done.
    - `objective`: mean over the last epoch's steps of log likelihood, divergence and log p(tau).
    """

    posterior: Posterior
    optimiser: PyTree
    seed: Array
    epoch: Int[Array, ""]
    objective: Float[Array, "3"]


class Data(NamedTuple):
    """Training rows, standardised, in single precision."""

    x: Float[Array, "rows inputs"]
    y: Array


class Programs(NamedTuple):
    """Compiled functions of one fit, or of many with a leading axis.

    **Arguments**
    - `start(seed, log_tau)`: a new state.
    - `advance(state, data, objective, epochs)`: the state after `epochs` further epochs.
    """

    start: Callable[..., State]
    advance: Callable[..., State]


def seed_words(seed: int, stream: int = 0) -> Array:
    """Words of the key of a fit."""
    return jax.random.key_data(jax.random.fold_in(jax.random.key(seed), stream))


def steps_of(rows: int, batch: int) -> tuple[int, int]:
    """Rows of a batch and steps of an epoch; rows that do not fill a batch are left out of the epoch."""
    size = min(rows, batch)
    return size, rows // size


@lru_cache(maxsize=32)
def programs(model: Model, optimiser: Optimiser, batch: int, many: bool) -> Programs:
    """The programs of a model; made once, compiled once for each shape of the data."""
    transformation = optimiser.transformation()
    begin = partial(_start, model, transformation)
    advance = partial(_advance, model, transformation, batch)
    if not many:
        return Programs(jax.jit(begin), jax.jit(advance, donate_argnums=0))
    return Programs(
        jax.jit(jax.vmap(begin)),
        jax.jit(jax.vmap(advance, in_axes=(0, 0, 0, None)), donate_argnums=0),
    )


def _stream(seed: Array, stream: int) -> Array:
    return jax.random.fold_in(jax.random.wrap_key_data(seed), stream)


def _start(
    model: Model, transformation: optax.GradientTransformation, seed: Array, log_tau: Array
) -> State:
    precision = 20.0 if model.precision is None else model.precision
    posterior = start(_stream(seed, _START), model.network, precision=precision)
    posterior = posterior._replace(log_tau=posterior.log_tau + log_tau)
    return State(
        posterior,
        transformation.init(posterior),  # type: ignore[arg-type]
        seed,
        jnp.zeros((), jnp.int32),
        jnp.zeros(3, jnp.float32),
    )


def _advance(
    model: Model,
    transformation: optax.GradientTransformation,
    batch: int,
    state: State,
    data: Data,
    objective: Objective,
    epochs: Int[Array, ""],
) -> State:
    rows = data.x.shape[0]
    size, steps = steps_of(rows, batch)
    order_key, step_key = _stream(state.seed, _ORDER), _stream(state.seed, _STEPS)
    gradient = jax.grad(loss, has_aux=True)

    def step(now, carry, inputs):
        posterior, optimiser = carry
        chosen, number = inputs
        key = jax.random.fold_in(step_key, number)
        slope, terms = gradient(posterior, model, now, data.x[chosen], data.y[chosen], key)
        updates, optimiser = transformation.update(slope, optimiser)
        posterior = cast("Posterior", optax.apply_updates(posterior, updates))
        return (_with_scales(model, now, posterior, terms), optimiser), _parts(terms)

    def epoch(_, state):
        bits = jax.random.bits(jax.random.fold_in(order_key, state.epoch), (rows,), jnp.uint32)
        order = jnp.argsort(bits)[: steps * size].reshape(steps, size)
        numbers = state.epoch * steps + jnp.arange(steps)
        (posterior, optimiser), parts = lax.scan(
            partial(step, objective.at(state.epoch)),
            (state.posterior, state.optimiser),
            (order, numbers),
        )
        return State(posterior, optimiser, state.seed, state.epoch + 1, jnp.mean(parts, axis=0))

    return lax.fori_loop(0, epochs, epoch, state)


def _with_scales(
    model: Model, objective: Objective, posterior: Posterior, terms: Terms
) -> Posterior:
    """Keep scales in closed form for the next step; the others are already updated."""
    closed = [not prior.by_gradient for prior in model.priors]
    if all(closed):
        return posterior._replace(log_tau=terms.scales.log_tau)
    if not any(closed):
        return posterior
    here = jnp.asarray(closed)[objective.choice]
    return posterior._replace(log_tau=jnp.where(here, terms.scales.log_tau, posterior.log_tau))


def _parts(terms: Terms) -> Float[Array, "3"]:
    return jnp.stack([terms.log_likelihood, terms.divergence, terms.log_prior])
