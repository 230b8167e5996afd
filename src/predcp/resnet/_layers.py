"""Report of the layers: scale, complexity, divergence and effect of each."""

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp.resnet._complexity_priors import PredCPLayers
from predcp.resnet._layer_priors import Comparison
from predcp.resnet._network import Weights
from predcp.resnet._objective import (
    Model,
    Objective,
    Scales,
    divergences,
    expectation_step,
    log_precision,
)
from predcp.resnet._posterior import Posterior, variance
from predcp.resnet._predictive import first_hidden

# A layer is alive if its removal moves the mean prediction by more than this, in nats per point.
ALIVE = 0.01
_NOISE_DRAWS = 32
_ROWS = 1024


class LayerFigures(NamedTuple):
    """One number per hidden layer, each (L,).

    **Arguments**
    - `tau`: the scale; not identified apart from lambda, so read `acting_scale`.
    - `acting_scale`: mean over the rows of `lambda_i^2 tau`, the prior variance of a weight.
    - `kappa`: divergence caused by weights drawn at that scale, in nats (Equation 11).
    - `divergence`: KL of the posterior of the layer's weights from their prior, in nats.
    - `mean_size`: root mean square of the posterior means.
    - `effect`: divergence of the mean prediction from the one without the layer, nats per point.
    """

    tau: Float[Array, " layers"]
    acting_scale: Float[Array, " layers"]
    kappa: Float[Array, " layers"]
    divergence: Float[Array, " layers"]
    mean_size: Float[Array, " layers"]
    effect: Float[Array, " layers"]


@lru_cache(maxsize=32)
def layer_program(model: Model, many: bool):
    """The compiled function `(posterior, objective, x, key)` to `LayerFigures`."""
    one = partial(_figures, model)
    return jax.jit(jax.vmap(one)) if many else jax.jit(one)


def _figures(
    model: Model, posterior: Posterior, objective: Objective, x: Array, key: Array
) -> LayerFigures:
    network = model.network
    x = x[:_ROWS]
    scales = expectation_step(model, posterior, objective)
    body, _ = divergences(model, posterior, scales)
    row_variances = jnp.exp(network.by_layer(scales.body))
    _, means = network.split(posterior.mean.body)
    return LayerFigures(
        jnp.exp(scales.log_tau),
        jnp.mean(row_variances, axis=-1) * jnp.exp(scales.log_tau),
        _kappa(model, posterior, scales, x, key),
        jnp.sum(network.by_layer(body), axis=-1),
        jnp.sqrt(jnp.mean(means**2, axis=(1, 2))),
        _effects(model, posterior, x),
    )


def _kappa(
    model: Model, posterior: Posterior, scales: Scales, x: Array, key: Array
) -> Float[Array, " layers"]:
    network = model.network
    if network.layers == 0:
        return jnp.zeros(0, jnp.float32)

    def noise() -> Array:
        shape = (_NOISE_DRAWS, network.layers, network.width, network.width)
        return jax.random.normal(jax.random.wrap_key_data(key), shape, jnp.float32)

    precision = None if model.classes else jnp.exp(log_precision(model, posterior))
    comparison = Comparison(
        first_hidden(network, posterior, x),
        jnp.exp(network.by_layer(scales.body)),
        posterior.mean.head,
        variance(posterior.spread).head,
        precision,
        noise,
    )
    complexity = PredCPLayers().complexity(network, comparison)
    return jnp.exp(complexity.log_value_and_elasticity(scales.log_tau)[0])


def _effects(model: Model, posterior: Posterior, x: Array) -> Float[Array, " layers"]:
    """Each layer's weights set to zero in turn, at the posterior means."""
    network = model.network
    whole = network.apply(posterior.mean, posterior.biases, x)

    def without(layer: Array) -> Array:
        first, hidden = network.split(posterior.mean.body)
        hidden = hidden * (jnp.arange(network.layers) != layer)[:, None, None]
        body = jnp.concatenate([first, hidden.reshape(-1, network.width)])
        rest = network.apply(Weights(body, posterior.mean.head), posterior.biases, x)
        return _divergence(model, posterior, whole, rest)

    return jax.lax.map(without, jnp.arange(network.layers))


def _divergence(model: Model, posterior: Posterior, whole: Array, rest: Array) -> Array:
    if model.classes:
        ours, theirs = jax.nn.log_softmax(whole), jax.nn.log_softmax(rest)
        return jnp.mean(jnp.sum(jnp.exp(ours) * (ours - theirs), axis=-1))
    precision = jnp.exp(log_precision(model, posterior))
    return 0.5 * precision * jnp.mean(jnp.sum((whole - rest) ** 2, axis=-1))
