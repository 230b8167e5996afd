"""A residual network of one input: tables of its first and last layer, and functions."""

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import predcp
from predcp.explore._choices import MOST_LAYERS
from predcp.explore._table import Table, mean_table, unit_table

WIDTH, DRAWS, POINTS, FUNCTIONS = 16, 8, 40, 12
REACH = 3.0
_LARGEST = 250.0


class Weights(NamedTuple):
    """Standard normal weights of several networks; hidden and output weights are over sqrt(width)."""

    inputs: Float[np.ndarray, "count 2 width"]
    hidden: Float[np.ndarray, "count layers width width"]
    output: Float[np.ndarray, "count width 1"]


class NetworkScene(NamedTuple):
    """The tables and functions of a network under a pi.

    **Arguments**: `first`, `last`, tables of those layers with the layers below at their medians;
    `functions` of the input, shape (count, points).
    """

    first: Table
    last: Table
    functions: Float[Array, "count points"]


def inputs() -> Float[np.ndarray, " points"]:
    return np.linspace(-REACH, REACH, POINTS)


@lru_cache(maxsize=4)
def weights(seed: int, count: int) -> Weights:
    """Random weights. Layers are drawn last, so that a shallower network has the same first layers."""
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((count, 2, WIDTH))
    output = rng.standard_normal((count, WIDTH, 1)) / WIDTH**0.5
    hidden = rng.standard_normal((MOST_LAYERS, count, WIDTH, WIDTH)) / WIDTH**0.5
    return Weights(first, hidden.swapaxes(0, 1), output)


@lru_cache(maxsize=1)
def _quantiles() -> Float[np.ndarray, "count layers"]:
    return np.random.default_rng(2).uniform(size=(FUNCTIONS, MOST_LAYERS))


def first_hidden(weights: Weights, x: Array) -> Float[Array, "count points width"]:
    """`h_0 = relu(x w + b)`."""
    return jax.nn.relu(x[:, None] * weights.inputs[:, :1] + weights.inputs[:, 1:])


def network_scene(
    pi: predcp.DivergencePrior, depth: int, divergence: predcp.Divergence
) -> NetworkScene:
    """Tables and functions for a pi.

    **Arguments**: `pi`; `depth`, the number of layers; `divergence`.
    """
    # Every depth runs the program of the deepest network: a layer depends only on those below it.
    unit = unit_table(False, divergence)
    given = weights(0, DRAWS), weights(1, FUNCTIONS), _quantiles()
    return _scene(pi, depth, unit, *given, divergence)


@partial(jax.jit, static_argnums=6)
def _scene(
    pi: predcp.DivergencePrior,
    depth: Array,
    unit: Table,
    in_map: Weights,
    shown: Weights,
    quantiles: Float[Array, "count layers"],
    divergence: predcp.Divergence,
) -> NetworkScene:
    x = jnp.asarray(inputs())
    hidden = first_hidden(in_map, x)
    complexity = predcp.DepthComplexity(
        hidden, in_map.hidden, in_map.output, normalize="batch", divergence=divergence
    )
    prior = predcp.LogScalePrior(pi, complexity)
    scales = prior.icdf(jnp.concatenate([jnp.full((1, MOST_LAYERS), 0.5), quantiles]))
    medians = jnp.broadcast_to(scales[0], (DRAWS, MOST_LAYERS))
    everywhere = jnp.asarray(MOST_LAYERS)
    _, rises = _outputs(in_map, medians, everywhere, x)
    rises = rises.swapaxes(0, 1).reshape(MOST_LAYERS, -1)
    functions, _ = _outputs(shown, scales[1:], depth, x)
    first, last = (mean_table(unit, rises[layer]) for layer in (0, depth - 1))
    return NetworkScene(first, last, functions)


def _outputs(
    weights: Weights,
    log_tau: Float[Array, "count layers"],
    depth: Array,
    x: Float[Array, " points"],
) -> tuple[Float[Array, "count points"], Float[Array, "count layers points"]]:
    """Outputs of each network at its own scales, and the contribution of each layer at scale 1."""
    root = jnp.exp(0.5 * jnp.clip(log_tau, -_LARGEST, _LARGEST))
    present = jnp.arange(MOST_LAYERS) < depth

    def one(hidden: Array, sizes: Array, matrices: Array, output: Array) -> tuple[Array, Array]:
        def layer(hidden: Array, given: tuple[Array, Array, Array]) -> tuple[Array, Array]:
            size, matrix, here = given
            inner = hidden - hidden.mean(0)
            inner = inner * jax.lax.rsqrt(jnp.mean(inner**2, 0) + 1e-5)
            branch = jax.nn.relu(inner @ matrix)
            return hidden + jnp.where(here, size, 0.0) * branch, (branch @ output)[:, 0]

        top, rises = jax.lax.scan(layer, hidden, (sizes, matrices, present))
        return (top @ output)[:, 0], rises

    return jax.vmap(one)(
        first_hidden(weights, x), root, jnp.asarray(weights.hidden), jnp.asarray(weights.output)
    )
