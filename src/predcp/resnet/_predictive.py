"""Predictions: outputs of many draws of the posterior, some at a time."""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from predcp.resnet._network import Network
from predcp.resnet._posterior import Posterior, draw
from predcp.resnet._stochastic import flipout

# Hidden states held at once by one fit, in numbers.
_BLOCK = 2**21


@lru_cache(maxsize=32)
def predictor(network: Network, samples: int, many: bool):
    """The compiled function `(posterior, x, key, flips)` to outputs (S, N, K) in standard units.

    Every point has its own signs: outputs of one draw have the right distribution at each point, but
    not jointly over points. `function_draws` are joint.
    """
    one = partial(_outputs, network, samples)
    return jax.jit(jax.vmap(one)) if many else jax.jit(one)


@lru_cache(maxsize=32)
def function_draws(network: Network, samples: int):
    """The compiled function `(posterior, x, key)` to outputs (S, N, K), one function per draw."""

    def one(posterior: Posterior, x: Array, key: Array) -> Array:
        def outputs(key: Array) -> Array:
            return network.apply(draw(key, posterior), posterior.biases, x)

        keys = jax.random.split(jax.random.wrap_key_data(key), samples)
        return lax.map(outputs, keys, batch_size=_at_once(network, x, samples))

    return jax.jit(one)


def _outputs(
    network: Network,
    samples: int,
    posterior: Posterior,
    x: Float[Array, "points inputs"],
    key: Array,
    flips: Array,
) -> Float[Array, "samples points outputs"]:
    def sample(key: Array) -> Array:
        return flipout(network, posterior, x, 1, key, flips).outputs[0]

    keys = jax.random.split(jax.random.wrap_key_data(key), samples)
    return lax.map(sample, keys, batch_size=_at_once(network, x, samples))


def _at_once(network: Network, x: Array, samples: int) -> int:
    return max(1, min(samples, _BLOCK // (2 * x.shape[0] * max(network.width, x.shape[1]))))


def first_hidden(network: Network, posterior: Posterior, x: Array) -> Float[Array, "points width"]:
    """`h_0` under the posterior means."""
    return network.first(posterior.mean, posterior.biases, jnp.asarray(x, jnp.float32))
