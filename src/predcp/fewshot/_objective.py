"""The outer objective: the loss of adapted parameters on queries, minus the log prior of the scales."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from predcp._divergence_priors import DivergencePrior
from predcp._prior import ComplexityPrior
from predcp.fewshot._adapt import adapted, cross_entropy
from predcp.fewshot._chosen_pi import ChosenPrior
from predcp.fewshot._complexity import ChainComplexity, module_noise
from predcp.fewshot._networks import Modules, Network
from predcp.fewshot._runs import Present, RunValues
from predcp.fewshot._settings import Settings


class Meta(NamedTuple):
    """Parameters of all tasks: phi, the affine part of the normalisation, log sigma of each module."""

    theta: Modules
    shared: Modules
    log_sigma: Float[Array, " modules"]


def targets(ways: int, each: int, dtype: Any) -> Float[Array, "n ways"]:
    """Classes of a task's rows in their order: `each` of the first, `each` of the second, ..."""
    return jnp.repeat(jnp.eye(ways, dtype=dtype), each, axis=0)


def split_task(x: Float[Array, "ways each ..."], shots: int) -> tuple[Array, Array]:
    """Support and query examples, each in rows sorted by class."""
    shape = x.shape[2:]
    return x[:, :shots].reshape(-1, *shape), x[:, shots:].reshape(-1, *shape)


def task_logits(
    network: Network,
    settings: Settings,
    meta: Meta,
    decay: Array,
    rate: float | Array,
    support: Float[Array, "n ..."],
    query: Float[Array, "q ..."],
    steps: int,
    unroll: bool,
) -> Float[Array, "q ways"]:
    """Predictions for prepared queries after adapting to a prepared support set."""
    known = targets(settings.ways, settings.shots, meta.log_sigma.dtype)
    own = adapted(
        network,
        meta.theta,
        meta.shared,
        meta.log_sigma,
        decay,
        support,
        known,
        steps,
        rate,
        settings.objective,
        settings.first_order,
        unroll,
    )
    return network.logits(own, meta.shared, query)


def outer_loss(
    meta: Meta,
    network: Network,
    settings: Settings,
    densities: Sequence[DivergencePrior],
    present: Present,
    run: RunValues,
    x: Float[Array, "tasks ways each ..."],
    key: Key[Array, ""],
) -> tuple[Float[Array, ""], tuple[Array, Array]]:
    """Mean cross-entropy of the queries minus `beta log p(tau)`; also the former alone, and the accuracy.

    **Arguments**: `present`, the features that the runs of this program need; `key` of the noise.
    """
    support, query = jax.vmap(lambda task: split_task(task, settings.shots))(x)
    support, query = jax.vmap(network.prepare)(support), jax.vmap(network.prepare)(query)
    wanted = targets(settings.ways, settings.queries, meta.log_sigma.dtype)

    def one(support: Array, query: Array) -> tuple[Array, Array]:
        logits = task_logits(
            network,
            settings,
            meta,
            run.decay,
            run.rates.inner_rate,
            support,
            query,
            settings.inner_steps,
            settings.unroll,
        )
        right = jnp.argmax(logits, -1) == jnp.argmax(wanted, -1)
        return cross_entropy(logits, wanted).mean(), right.mean()

    losses, accuracies = jax.vmap(one)(support, query)
    loss, accuracy = losses.mean(), accuracies.mean()
    total = loss
    inputs = support if settings.kappa_inputs == "support" else query
    inputs = inputs.reshape(-1, *inputs.shape[2:])
    if "shrinkage" in present.kinds:
        total = total - run.shrinkage * shrinkage_log_density(densities, run, meta.log_sigma)
    if "predcp" in present.kinds:
        total = total - run.predcp * predcp_log_density(
            densities, run, network, settings, meta, inputs, key, present.detaches
        )
    return total, (loss, accuracy)


def shrinkage_log_density(
    densities: Sequence[DivergencePrior], run: RunValues, log_sigma: Float[Array, " modules"]
) -> Float[Array, ""]:
    """`sum_m log p(sigma_m)` with pi the density of sigma; of another variable by its Jacobian."""
    each = ChosenPrior(densities, run.pi).log_prob_log(log_sigma)
    return jnp.sum(run.mask * (each - 2.0 * run.jacobian * log_sigma))


def predcp_log_density(
    densities: Sequence[DivergencePrior],
    run: RunValues,
    network: Network,
    settings: Settings,
    meta: Meta,
    inputs: Float[Array, "n ..."],
    key: Key[Array, ""],
    detaches: bool = True,
) -> Float[Array, ""]:
    """`sum_m log p(tau_m)`, `p(tau) = pi(kappa) |d kappa / d tau|` (algorithm 3 of the paper).

    **Arguments**: `inputs`, prepared, of all tasks of the iteration; `detaches`, whether any run of the
    program keeps the prior's gradient from phi.
    """

    def gate(leaf: Array) -> Array:
        # Whether the prior's gradient reaches phi is data, so that runs can share a program.
        return leaf - run.detached * (leaf - jax.lax.stop_gradient(leaf))

    theta, shared = meta.theta, meta.shared
    if detaches:
        theta, shared = jax.tree.map(gate, (theta, shared))
    noise = module_noise(key, meta.theta, settings.noise_draws)
    complexity = ChainComplexity(network, theta, shared, inputs, noise)
    prior = ComplexityPrior(ChosenPrior(densities, run.pi), complexity, settings.truncate)
    log_tau = 2.0 * meta.log_sigma
    each = prior.log_scale().log_prob(log_tau)
    return jnp.sum(run.mask * (each - run.jacobian * log_tau))
