"""Two coins, and the log ratios of their probabilities."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.nn import log_sigmoid
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


def coin(reference: Array, displacement: Array) -> Coin:
    """Both coins; the ratios have relative accuracy for tiny and for huge displacements."""
    log_p0, log_q0 = log_sigmoid(reference), log_sigmoid(-reference)
    log_p = log_sigmoid(reference + displacement)
    log_q = log_sigmoid(-reference - displacement)
    small = jnp.abs(displacement) < 1.0
    near = jnp.where(small, displacement, 0.0)
    t_1 = jnp.where(small, jnp.log1p(jnp.exp(log_q0) * jnp.expm1(-near)), log_p0 - log_p)
    t_0 = jnp.where(small, jnp.log1p(jnp.exp(log_p0) * jnp.expm1(near)), log_q0 - log_q)
    return Coin(displacement, log_p, log_q, log_p0, log_q0, t_1, t_0)
