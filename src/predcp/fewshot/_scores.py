"""Scores of fitted parameters on new tasks, many tasks at once."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp.fewshot._episodes import STREAMS, Pool, task_key
from predcp.fewshot._networks import Network
from predcp.fewshot._objective import Meta, split_task, targets, task_logits
from predcp.fewshot._settings import Settings

# Most tasks adapted at once, and most numbers in the widest layer of all of them.
_BLOCK = 100
_NUMBERS = 2**30
_BINS = 15


class Scores(NamedTuple):
    """Scores of tasks; every leaf has leading axes of runs and tasks.

    **Arguments**: `accuracy`, `log_likelihood` (the mean over queries), `small_accuracy` on the first
    `shots` queries of each class, and a task's calibration `bins` `(3, bins)`: how many queries fell in
    each bin of confidence, the sum of their confidences, how many were right.
    """

    accuracy: Float[Array, "..."]
    log_likelihood: Float[Array, "..."]
    small_accuracy: Float[Array, "..."]
    bins: Float[Array, "..."]


@partial(jax.jit, static_argnames=("settings", "count", "stream"))
def score_tasks(
    network: Network,
    settings: Settings,
    meta: Meta,
    decay: Float[Array, " runs"],
    rate: Float[Array, " runs"],
    pool: Pool,
    count: int,
    stream: str,
) -> Scores:
    """The first `count` tasks of a stream under every run, `(runs, count)`.

    **Arguments**: `meta`, `decay` and inner `rate` with a leading axis of runs; `stream`, one of
    `validation`, `check` (also of validation classes) and `test`.
    """
    examples = settings.ways * (settings.shots + settings.queries)
    task = decay.shape[0] * examples * network.width(pool.example_shape)
    block = max(1, min(_BLOCK, count, _NUMBERS // task))
    blocks = -(-count // block)

    def one(number: Array) -> Scores:
        """One task under every run."""
        key = task_key(settings.task_seed, STREAMS[stream], number)
        rows = pool.rows(key, settings.ways, settings.shots + settings.queries)
        support, query = split_task(pool.standardised(rows), settings.shots)
        support, query = network.prepare(support), network.prepare(query)

        def under(meta: Meta, decay: Array, rate: Array) -> Scores:
            steps = settings.inner_steps_test
            logits = task_logits(network, settings, meta, decay, rate, support, query, steps, False)
            return score(logits, settings)

        return jax.vmap(under)(meta, decay, rate)

    numbers = jnp.arange(blocks * block).reshape(blocks, block)
    found = jax.lax.map(jax.vmap(one), numbers)
    return jax.tree.map(
        lambda leaf: jnp.moveaxis(leaf.reshape(-1, *leaf.shape[2:])[:count], 1, 0), found
    )


def score(logits: Float[Array, "q ways"], settings: Settings) -> Scores:
    """Scores of one task's queries, in rows sorted by class."""
    wanted = targets(settings.ways, settings.queries, logits.dtype)
    log_p = jax.nn.log_softmax(logits)
    right = (jnp.argmax(logits, -1) == jnp.argmax(wanted, -1)).astype(logits.dtype)
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
