"""What the three methods of inference have in common: cells of the scales and a table over them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jax.scipy.special import log_ndtr
from jaxtyping import Array

# Cells of log tau: evenly spaced ones, and ones around the peak.
ONE_SCALE = (64, 32)
TWO_SCALES = (27, 13)


class Rows(NamedTuple):
    """Rows to predict, T of them.

    Their coefficients of the regressors `x` (T, p) and of known effects `z` (T, G_f), the squared length
    of those of new effects `fresh` (T,), noise, trials, the group (-1 for a new one), and outcomes.
    """

    x: Any
    z: tuple[Any, ...]
    fresh: tuple[Any, ...]
    noise: Any
    trials: Any
    group: Any
    y: Any


class Table(NamedTuple):
    """The likelihood over cells of the scales and nodes of a nuisance parameter.

    - `edges`: of each scale, 0 and infinity included, (n_f + 1,).
    - `log_like`: (n_1, ..., n_F, K), nuisance weights included.
    - `mean`, `variance`, `below`: of the scored effects given the node; `below` is the probability
        that they are below their true value. (n_1, ..., n_F, K, E)
    - `log_density`: of the rows to predict, (n_1, ..., n_F, K, T).
    - `rest`: what complexity priors are conditional on; depends on the method.
    """

    edges: tuple[Array, ...]
    log_like: Array
    mean: Array
    variance: Array
    below: Array
    log_density: Array
    rest: dict[str, Array]


class Limits(NamedTuple):
    """Lowest and highest inner edge of the cells, in units."""

    lowest: float
    highest: float


def base_edges(limits: Limits, unit: float, count: int) -> np.ndarray:
    """Inner edges of so many cells, evenly spaced in log tau."""
    return unit * np.geomspace(limits.lowest, limits.highest, count - 1)


def midpoints(inner: Any) -> Any:
    """Where the likelihood of each cell is taken."""
    middle = jnp.sqrt(inner[1:] * inner[:-1])
    return jnp.concatenate([inner[:1] / 2.0, middle, inner[-1:] * 1.2])


def closed(inner: Any) -> Any:
    """Edges with 0 and infinity."""
    return jnp.concatenate([jnp.zeros(1), inner, jnp.full(1, jnp.inf)])


def spread(inner: Any, log_like: Array, unit: float, extra: int) -> Array:
    """Inner edges with more of them where a vague posterior is.

    **Arguments**: `log_like`, of the cells between `inner`, (n,).
    """
    # The vague prior of tau has the distribution function tau / (1 + tau), in units.
    below = jnp.concatenate([jnp.zeros(1), inner / (inner + unit), jnp.ones(1)])
    log_weight = log_like + jnp.log(jnp.diff(below))
    cumulated = jnp.cumsum(jnp.exp(log_weight - logsumexp(log_weight)))[:-1]
    # Where the sum is flat, interpolation would divide by zero.
    steps = cumulated + 1e-12 * jnp.arange(cumulated.size)
    low, high = jnp.interp(jnp.array([0.003, 0.997]), steps, jnp.log(inner))
    # At least a tenth of an e-fold, so that no two edges coincide.
    centre, half = 0.5 * (low + high), jnp.maximum(0.5 * (high - low), 0.05)
    near = jnp.linspace(centre - half, centre + half, extra + 2)[1:-1]
    return jnp.exp(jnp.sort(jnp.concatenate([jnp.log(inner), near])))


def grid(taus: list[Array]) -> list[Array]:
    """Every combination of the scales' values, one flat array per scale."""
    return [each.ravel() for each in jnp.meshgrid(*taus, indexing="ij")]


def below_normal(truth: Any, mean: Array, variance: Array) -> Array:
    """Normal probability of being below the truth."""
    return jnp.exp(log_ndtr((truth - mean) / jnp.sqrt(variance)))


def log_normal_density(y: Any, mean: Array, variance: Array) -> Array:
    """Log density of a normal."""
    return -0.5 * (jnp.log(2.0 * jnp.pi * variance) + (y - mean) ** 2 / variance)


def along_first(values: Array, shape: tuple[int, ...]) -> Array:
    """Unflatten the leading axis."""
    return jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), values)
