"""The variational posterior: independent normals for the weights, points for the biases."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp.resnet._network import Biases, Network, Weights

# Below this softplus(r) = exp(r) to single precision, and its log is r itself.
_LINEAR = -15.0


class Posterior(NamedTuple):
    """`q(w) = N(mean, softplus(spread))`, with point estimates of the biases and the rest.

    **Arguments**
    - `mean`, `spread`: of every weight; softplus of the spread is the **variance**.
    - `biases`: point estimates.
    - `log_tau`: logs of the hidden layers' scales, (L,), moved by gradients or set in closed form.
    - `log_precision`: log of the noise precision on standardised targets, used where it is learned.
    """

    mean: Weights
    spread: Weights
    biases: Biases
    log_tau: Float[Array, " layers"]
    log_precision: Float[Array, ""]


def start(key: Array, network: Network, log_tau: float = 0.0, precision: float = 20.0) -> Posterior:
    """Means from U(-.05, .05), variances softplus(U(-10, -6.5)), biases .1, as the public code."""
    keys = jax.random.split(key, 4)
    body, head = (network.rows, network.width), (network.width, network.outputs)

    def uniform(key, shape, low, high):
        return jax.random.uniform(key, shape, jnp.float32, low, high)

    mean = Weights(uniform(keys[0], body, -0.05, 0.05), uniform(keys[1], head, -0.05, 0.05))
    spread = Weights(uniform(keys[2], body, -10.0, -6.5), uniform(keys[3], head, -10.0, -6.5))
    biases = Biases(
        jnp.full((network.layers + 1, network.width), 0.1, jnp.float32),
        jnp.full((network.outputs,), 0.1, jnp.float32),
    )
    return Posterior(
        mean,
        spread,
        biases,
        jnp.full((network.layers,), log_tau, jnp.float32),
        jnp.asarray(math.log(precision), jnp.float32),
    )


def variance(spread: Weights) -> Weights:
    """Variance of every weight."""
    return Weights(jax.nn.softplus(spread.body), jax.nn.softplus(spread.head))


def log_variance(spread: Float[Array, "..."]) -> Float[Array, "..."]:
    """`log softplus`, also where softplus underflows."""
    far = spread < _LINEAR
    near = jnp.log(jax.nn.softplus(jnp.where(far, 0.0, spread)))
    return jnp.where(far, spread, near)


def second_moments(mean: Weights, spread: Weights) -> Weights:
    """`E w^2` of every weight."""
    return Weights(
        *(mu**2 + jax.nn.softplus(s) for mu, s in zip(mean, spread)),
    )


def row_divergence(
    moment: Float[Array, "rows columns"],
    spread: Float[Array, "rows columns"],
    log_scale: Float[Array, " rows"],
) -> Float[Array, " rows"]:
    """KL of a row's weights from N(0, exp(log_scale)), summed over the row."""
    return 0.5 * jnp.sum(
        moment * jnp.exp(-log_scale)[:, None] - 1.0 + log_scale[:, None] - log_variance(spread),
        axis=-1,
    )


def draw(key: Array, posterior: Posterior) -> Weights:
    """One set of weights from the posterior."""
    keys = jax.random.split(key)
    return Weights(
        *(
            mu + jnp.sqrt(jax.nn.softplus(s)) * jax.random.normal(k, mu.shape, mu.dtype)
            for k, mu, s in zip(keys, posterior.mean, posterior.spread)
        )
    )
