"""Outputs under the posterior with noise that differs from point to point.

Flipout (Wen et al., 2018): one draw of the weights' noise per step, its signs flipped by the rows and
columns of a fresh pair of sign vectors for every point of every sample. Local reparameterisation
(Kingma et al., 2015): the noise of the sums `h W` instead, independent from point to point.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp.resnet._network import Network, Weights
from predcp.resnet._noise import Source, coins, normals, words_for
from predcp.resnet._posterior import Posterior

# Keeps the derivative of the square root finite for a row of zeros, which has no noise.
_FLOOR = 1e-20


class Pass(NamedTuple):
    """A pass through the network.

    **Arguments**
    - `outputs`: (S, N, K).
    - `hidden`: `h_0` of every sample and point, (S N, H).
    - `noise`: standard normal matrices, (S', L, H, H), or None where none were drawn.
    """

    outputs: Float[Array, "samples points outputs"]
    hidden: Float[Array, "rows width"]
    noise: Float[Array, "draws layers width width"] | None


def flipout_words(network: Network, samples: int, points: int) -> int:
    """Random words that `flipout` takes."""
    signs = network.inputs + (2 * network.layers + 2) * network.width + network.outputs
    return network.weights + samples * words_for(points) * signs


def flipout(
    network: Network,
    posterior: Posterior,
    x: Float[Array, "points inputs"],
    samples: int,
    key: Array,
    quirk: Array | float = 0.0,
) -> Pass:
    """Outputs with sign-flipped noise.

    **Arguments**: `quirk` 1 for the public code's version, whose "signs" are -1 and 3 and which has
    no normal noise; 0 for flipout itself.
    """
    points, width, layers = x.shape[0], network.width, network.layers
    source = Source(key, flipout_words(network, samples, points))
    words = words_for(points)
    raw = Weights(
        normals(source.take(network.rows, width)), normals(source.take(width, network.outputs))
    )
    body, head = (
        jnp.sqrt(jax.nn.softplus(spread)) * (quirk + (1.0 - quirk) * noise)
        for spread, noise in zip(posterior.spread, raw)
    )
    hidden_bits = source.take(layers, 2, samples, words, width)
    high = 1.0 + 2.0 * quirk

    def signed(rows, bits):
        tossed = coins(bits, points).reshape(samples * points, -1)
        return jnp.where(tossed, high * rows, -rows)

    def flipped(rows, matrix, before, after):
        return signed(signed(rows, before) @ matrix, after)

    def layer(hidden, parameters):
        mean, noise, bits, bias = parameters
        inner = network.normalized(hidden)
        rise = jax.nn.relu(inner @ mean + flipped(inner, noise, bits[0], bits[1]) + bias)
        return hidden + rise if network.residual else rise

    biases = posterior.biases
    first_mean, hidden_mean = network.split(posterior.mean.body)
    first_noise, hidden_noise = network.split(body)
    # The means are the same for every sample: one product serves all.
    mean = x @ first_mean + biases.hidden[0]
    rows = jnp.broadcast_to(x, (samples, *x.shape)).reshape(samples * points, -1)
    noise = flipped(
        rows,
        first_noise,
        source.take(samples, words, network.inputs),
        source.take(samples, words, width),
    )
    first = jax.nn.relu(mean + noise.reshape(samples, points, width)).reshape(-1, width)
    top = network.through(layer, first, (hidden_mean, hidden_noise, hidden_bits, biases.hidden[1:]))
    before, after = source.take(samples, words, width), source.take(samples, words, network.outputs)
    outputs = top @ posterior.mean.head + flipped(top, head, before, after) + biases.output
    return Pass(outputs.reshape(samples, points, -1), first, network.split(raw.body)[1][None])


def local(
    network: Network,
    posterior: Posterior,
    x: Float[Array, "points inputs"],
    samples: int,
    key: Array,
) -> Pass:
    """Outputs with independent noise of the sums `h W`."""
    points, width, layers = x.shape[0], network.width, network.layers
    rows = samples * points
    source = Source(key, rows * ((layers + 1) * width + network.outputs))
    hidden_bits = source.take(layers, rows, width)

    def noisy(inner, mean, spread, bits, bias):
        variance = inner**2 @ jax.nn.softplus(spread)
        return inner @ mean + jnp.sqrt(variance + _FLOOR) * normals(bits) + bias

    def layer(hidden, parameters):
        mean, spread, bits, bias = parameters
        rise = jax.nn.relu(noisy(network.normalized(hidden), mean, spread, bits, bias))
        return hidden + rise if network.residual else rise

    first_mean, hidden_mean = network.split(posterior.mean.body)
    first_spread, hidden_spread = network.split(posterior.spread.body)
    biases = posterior.biases
    inputs = jnp.broadcast_to(x, (samples, *x.shape)).reshape(rows, -1)
    first = jax.nn.relu(
        noisy(inputs, first_mean, first_spread, source.take(rows, width), biases.hidden[0])
    )
    top = network.through(
        layer, first, (hidden_mean, hidden_spread, hidden_bits, biases.hidden[1:])
    )
    outputs = noisy(
        top,
        posterior.mean.head,
        posterior.spread.head,
        source.take(rows, network.outputs),
        biases.output,
    )
    return Pass(outputs.reshape(samples, points, -1), first, None)
