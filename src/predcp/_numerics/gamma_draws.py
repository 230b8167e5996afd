"""Logs of gamma draws, all elements together.

`jax.random.loggamma` draws its elements one after another on a CPU, which takes seconds for a
million. Here every element makes a proposal in every round (Marsaglia and Tsang, 2000); all
are accepted after five or six rounds.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def log_gamma_draws(
    key: Any, concentration: Float[Array, "..."], shape: tuple[int, ...]
) -> Float[Array, "..."]:
    """Draws of the log of a gamma variable of scale 1, without derivatives.

    **Arguments**: `concentration`, which broadcasts to `shape`.
    """
    concentration = lax.stop_gradient(concentration)
    dtype = concentration.dtype
    key_power, key_rounds = jax.random.split(key)
    # Below 1: gamma(a) = gamma(a + 1) U^(1 / a).
    below = concentration < 1.0
    d = jnp.where(below, concentration + 1.0, concentration) - 1.0 / 3.0
    c = 1.0 / jnp.sqrt(9.0 * d)

    def propose(state):
        key, log_cube, done = state
        key, key_normal, key_uniform = jax.random.split(key, 3)
        x = jax.random.normal(key_normal, shape, dtype)
        root = 1.0 + c * x
        outside = root <= 0.0
        proposed = 3.0 * jnp.log(jnp.where(outside, 1.0, root))
        log_ratio = 0.5 * x**2 + d - d * root**3 + d * proposed
        # In this form NaN counts as accepted and ends the loop.
        rejected = outside | (-jax.random.exponential(key_uniform, shape, dtype) > log_ratio)
        return key, jnp.where(done, log_cube, proposed), done | ~rejected

    start = (key_rounds, jnp.zeros(shape, dtype), jnp.zeros(shape, bool))
    _, log_cube, _ = lax.while_loop(lambda state: ~jnp.all(state[2]), propose, start)
    power = -jax.random.exponential(key_power, shape, dtype) / concentration
    return jnp.log(d) + log_cube + jnp.where(below, power, 0.0)
