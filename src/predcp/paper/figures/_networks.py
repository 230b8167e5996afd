"""Random ReLU networks of one input: their depth-wise map, and functions at given scales."""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import predcp

Normalization = Literal["batch"] | None
_LARGEST = 250.0


class Weights(NamedTuple):
    """Standard normal weights of several networks, the first axis."""

    inputs: Float[Array, "count 2 width"]
    hidden: Float[Array, "count depth width width"]
    output: Float[Array, "count width 1"]


def draw_weights(key: Array, count: int, depth: int, width: int) -> Weights:
    """Independent networks; the first layer has a bias, so that its kinks are not all at 0."""
    shapes = ((2, width), (depth, width, width), (width, 1))
    return Weights(*predcp.normal_noise(key, count, shapes))


def first_hidden(
    weights: Weights, x: Float[Array, " points"]
) -> Float[Array, "count points width"]:
    """`h_0 = relu(x w + b)`."""
    return jax.nn.relu(x[:, None] * weights.inputs[:, :1] + weights.inputs[:, 1:])


def depth_map(
    weights: Weights, x: Float[Array, " points"], residual: bool, normalize: Normalization
) -> predcp.DepthComplexity:
    """The depth-wise complexity, averaged over these networks and inputs."""
    return predcp.DepthComplexity(
        first_hidden(weights, x),
        weights.hidden,
        weights.output,
        residual=residual,
        normalize=normalize,
    )


def functions(
    weights: Weights,
    log_tau: Float[Array, "count depth"],
    x: Float[Array, " points"],
    residual: bool,
    normalize: Normalization,
) -> Float[Array, "count points"]:
    """The outputs of each network at its own scales, without noise.

    A log-Cauchy puts one scale in four hundred outside `exp(+-250)`, where it is cut: beyond, squares leave
    floating point.
    """
    log_tau = jnp.clip(log_tau, -_LARGEST, _LARGEST)

    def layer(hidden: Array, scale_and_weights: tuple[Array, Array]) -> tuple[Array, None]:
        scale, matrix = scale_and_weights
        inner = hidden
        if normalize == "batch":
            inner = hidden - hidden.mean(0)
            inner = inner * jax.lax.rsqrt(jnp.mean(inner**2, 0) + 1e-5)
        rise = jax.nn.relu(inner @ (jnp.exp(0.5 * scale) * matrix))
        return (hidden + rise if residual else rise), None

    def one(hidden: Array, scales: Array, matrices: Array, output: Array) -> Array:
        return (jax.lax.scan(layer, hidden, (scales, matrices))[0] @ output)[:, 0]

    return jax.jit(jax.vmap(one))(first_hidden(weights, x), log_tau, weights.hidden, weights.output)
