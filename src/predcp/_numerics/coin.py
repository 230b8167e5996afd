"""Two coins, and the log ratios of their probabilities."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array


class Coin(NamedTuple):
    """Log probabilities of a coin and its reference, and the two log ratios between them."""

    displacement: Array
    log_p: Array
    log_q: Array
    log_p0: Array
    log_q0: Array
    t_1: Array
    t_0: Array


@jax.custom_jvp
def log_coin(logits: Array) -> tuple[Array, Array]:
    """Log probabilities of 1 and of 0, each with relative accuracy, from one exponential."""
    rest = jnp.log1p(jnp.exp(-jnp.abs(logits)))
    return jnp.minimum(logits, 0.0) - rest, jnp.minimum(-logits, 0.0) - rest


@log_coin.defjvp
def _log_coin_jvp(primals, tangents):
    (logits,), (speed,) = primals, tangents
    log_p, log_q = log_coin(logits)
    return (log_p, log_q), (jnp.exp(log_q) * speed, -jnp.exp(log_p) * speed)


def coin(reference: Array, displacement: Array) -> Coin:
    """Both coins; the ratios have relative accuracy for tiny and for huge displacements."""
    log_p0, log_q0 = log_coin(reference)
    log_p, log_q = log_coin(reference + displacement)
    small = jnp.abs(displacement) < 1.0
    step = jnp.expm1(jnp.where(small, displacement, 0.0))
    t_1 = jnp.log1p(-jnp.exp(log_q0) * step / (1.0 + step))
    t_0 = jnp.log1p(jnp.exp(log_p0) * step)
    t_1, t_0 = jnp.where(small, t_1, log_p0 - log_p), jnp.where(small, t_0, log_q0 - log_q)
    return Coin(displacement, log_p, log_q, log_p0, log_q0, t_1, t_0)


def both_ones(first: Array, second: Array) -> Array:
    """The log odds that two coins of these log odds both show 1."""
    (log_first, log_not_first), (log_second, log_not_second) = log_coin(first), log_coin(second)
    return log_first + log_second - jnp.logaddexp(log_not_first, log_first + log_not_second)
