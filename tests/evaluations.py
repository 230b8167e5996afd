"""Count how often an inversion evaluates a map."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from predcp._numerics import inverse


@jax.jit
def evaluations(complexity: Any, log_kappa: Array) -> Array:
    """The number of evaluations for each target.

    **Arguments**: `complexity`, a map of one scale without batch axes; `log_kappa`, shape (n,).
    """
    evaluate = jax.vmap(complexity.bind())
    bound = complexity.log_supremum(jnp.zeros((), log_kappa.dtype))

    def count(value: Array, start: Array) -> Array:
        target = inverse._straighten(value, bound)[None]
        return inverse._newton(evaluate, target, start[None], bound)[1]

    return jax.vmap(count)(log_kappa, complexity.guess(log_kappa))
