"""A divergence map as a table, so that a new pi needs no forward pass of the model."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float

import predcp

NODES = 320
_UNIT_NODES = 2048
# In units of log tau, around the scale at which the leading term of D is one nat.
_BELOW, _ABOVE = 30.0, 60.0
_FLAT = -80.0


class Table(NamedTuple):
    """`log D` and its log elasticity at nodes of `log tau`, and the log of the supremum of D."""

    log_tau: Float[Array, " nodes"]
    log_kappa: Float[Array, " nodes"]
    log_elasticity: Float[Array, " nodes"]
    log_supremum: Float[Array, ""]


class TableComplexity(predcp.ScalarComplexity):
    """The map of a table.

    **Arguments**: `table`; `bounded`, whether D has a supremum.
    """

    unit = "variance"

    def __init__(self, table: Table, bounded: bool):
        self.table, self.bounded = table, bounded

    def bind(self):
        return partial(value_and_elasticity, self.table)

    def _single_log_supremum(self) -> Float[Array, ""]:
        return self.table.log_supremum


def _normal(theta: Array, x: None) -> dist.Distribution:
    return dist.Normal(theta, 1.0)


def _bernoulli(theta: Array, x: None) -> dist.Distribution:
    return dist.Bernoulli(logits=theta)


def _root(tau: Array, xi: Array) -> Array:
    return jnp.sqrt(tau) * xi


@partial(jax.jit, static_argnums=(0, 1))
def unit_table(logistic: bool, divergence: predcp.Divergence) -> Table:
    """The table of `tau -> D(p(y | sqrt(tau)), p(y | 0))`: one observation, at one standard deviation.

    **Arguments**: `logistic`, for a Bernoulli with a logit, else a normal with a mean; `divergence`.
    """
    likelihood = _bernoulli if logistic else _normal
    unit = predcp.PredictiveComplexity(
        likelihood, _root, jnp.zeros(()), None, jnp.ones(1), divergence
    )
    return _tabulated(unit.log_value_and_elasticity, unit.log_supremum(jnp.zeros(())), _UNIT_NODES)


@jax.jit
def mean_table(unit: Table, predictors: Float[Array, " pairs"]) -> Table:
    """The table of the mean divergence over predictors `sqrt(tau) eta`, from that of a single one.

    **Arguments**: `unit`, the table of one observation; `predictors`, eta of every row and draw.
    """
    moving = predictors != 0.0
    log_square = 2.0 * jnp.log(jnp.where(moving, jnp.abs(predictors), 1.0))
    weight = moving / predictors.shape[0]

    def evaluate(log_tau: Array) -> tuple[Array, Array]:
        log_kappa, log_elasticity = value_and_elasticity(unit, log_tau[:, None] + log_square)
        largest = jnp.max(jnp.where(moving, log_kappa, -jnp.inf), axis=1, keepdims=True)
        size = jnp.exp(jnp.where(moving, log_kappa - largest, 0.0))
        total = size @ weight
        slope = (size * jnp.exp(log_elasticity)) @ weight
        return largest[:, 0] + jnp.log(total), jnp.log(slope) - jnp.log(total)

    return _tabulated(evaluate, unit.log_supremum + jnp.log(weight.sum()), NODES)


def _tabulated(
    evaluate: Callable[[Array], tuple[Array, Array]], log_supremum: Array, nodes: int
) -> Table:
    """The table of a map of a variance, which is linear in tau for small tau."""
    probe = jnp.full((1,), -_BELOW)
    one_nat = probe[0] - evaluate(probe)[0][0]
    log_tau = one_nat + jnp.linspace(-_BELOW, _ABOVE, nodes)
    log_kappa, log_elasticity = evaluate(log_tau)
    # A saturated map has elasticity 0; its log would make infinity minus infinity between two nodes.
    return Table(log_tau, log_kappa, jnp.maximum(log_elasticity, _FLAT), log_supremum)


def shifted(table: Table, log_factor: Array) -> Table:
    """The table of `D(tau / factor)`: noise of variance `factor` instead of 1."""
    return table._replace(log_tau=table.log_tau + log_factor)


def value_and_elasticity(
    table: Table, log_tau: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """`log D` and its log elasticity: cubics between the nodes, a power law beyond them."""
    first, width = table.log_tau[0], table.log_tau[1] - table.log_tau[0]
    inside = jnp.clip(log_tau, first, table.log_tau[-1])
    position = (inside - first) / width
    left = jnp.clip(position.astype(int), 0, table.log_tau.shape[0] - 2)
    t = position - left
    slope = width * jnp.exp(table.log_elasticity)
    low, high = table.log_kappa[left], table.log_kappa[left + 1]
    rise = high - low
    bend_low, bend_high = slope[left] - rise, rise - slope[left + 1]
    log_kappa = low + t * rise + t * (1.0 - t) * ((1.0 - t) * bend_low + t * bend_high)
    # Cubics with slopes from the neighbouring nodes.
    known, end = table.log_elasticity, table.log_elasticity.shape[0] - 1
    before, below = known[jnp.maximum(left - 1, 0)], known[left]
    above, after = known[left + 1], known[jnp.minimum(left + 2, end)]
    bends = (0.5 * (above - before) - (above - below), (above - below) - 0.5 * (after - below))
    log_elasticity = below + t * (above - below)
    log_elasticity += t * (1.0 - t) * ((1.0 - t) * bends[0] + t * bends[1])
    beyond = jnp.where(log_tau == inside, 0.0, jnp.exp(log_elasticity) * (log_tau - inside))
    return log_kappa + beyond, log_elasticity


def inverse(table: Table, log_kappa: Float[Array, "..."]) -> Float[Array, "..."]:
    """The `log tau` at which the map is `kappa`: interpolation between nodes, then Newton's method."""
    below = (log_kappa - table.log_kappa[0]) / jnp.exp(table.log_elasticity[0])
    slope = jnp.exp(table.log_elasticity[-1])
    above = (log_kappa - table.log_kappa[-1]) / jnp.maximum(slope, jnp.finfo(slope.dtype).tiny)
    log_tau = jnp.interp(log_kappa, table.log_kappa, table.log_tau)
    # A saturated map has no power law above the table.
    follow = jnp.isinf(table.log_supremum)
    log_tau = log_tau + jnp.minimum(below, 0.0) + jnp.where(follow, jnp.maximum(above, 0.0), 0.0)
    width = table.log_tau[1] - table.log_tau[0]

    def step(_: int, current: Array) -> Array:
        value, log_elasticity = value_and_elasticity(table, current)
        move = (log_kappa - value) * jnp.exp(-log_elasticity)
        # Where the map is flat to rounding, take no step.
        move = jnp.where(jnp.isfinite(move), move, 0.0)
        return current + jnp.clip(move, -width, width)

    return jax.lax.fori_loop(0, 4, step, log_tau)
