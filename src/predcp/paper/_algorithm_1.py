"""The paper's own inversion, by name and for comparison only."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp._maps import Complexity
from predcp._support.arrays import as_float


def algorithm_1(
    complexity: Complexity, kappa: Any, step_size: float = 5e-5, steps: int = 20
) -> Float[Array, "..."]:
    """Algorithm 1 of the paper with its settings: damped Newton steps in tau, from tau = kappa.

    Twenty steps of 5e-5 close a thousandth of the gap at most, so the result is hardly an
    inverse; `complexity.inv` is one.

    **Arguments**: the map; `kappa`, of the shape of its scales; the paper's alpha and T.
    """
    kappa = as_float(kappa)

    def update(_, tau):
        log_tau = jnp.log(tau)
        log_kappa, log_slope = complexity.log_value_and_slope(log_tau)
        slope = jnp.exp(log_slope - log_tau)
        return tau - step_size * (jnp.exp(log_kappa) - kappa) / slope

    return jax.lax.fori_loop(0, steps, update, kappa)
