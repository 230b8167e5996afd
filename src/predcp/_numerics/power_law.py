"""Functions of a log scale that are computed within floating point and extrapolated beyond."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp._numerics.inverse import Evaluate


def floating_range(dtype: Any) -> float:
    """Half-width of the range of `log tau` in which a black-box model is evaluated."""
    return 0.45 * float(np.log(jnp.finfo(dtype).max))


def extrapolated(
    value_and_elasticity: Callable[[Array], tuple[Array, Array]],
    half_width: Any,
    bounded: bool = False,
) -> Evaluate:
    """A map computed within floating point, extrapolated by its power law at the edge.

    **Arguments**: a function from `log tau` to `log D` and its log elasticity; how far from 0 to
    evaluate it; whether D is bounded, and then constant above.
    """

    def everywhere(log_tau):
        inside = jnp.clip(log_tau, -half_width, half_width)
        log_kappa, log_elasticity = value_and_elasticity(inside)
        # `inside` is `log_tau` itself almost always; 0 * inf must not arise when it is.
        beyond = jnp.where(log_tau == inside, 0.0, jnp.exp(log_elasticity) * (log_tau - inside))
        if bounded:
            above = jnp.maximum(log_tau - half_width, 0.0)
            return log_kappa + jnp.where(above > 0.0, 0.0, beyond), log_elasticity - above
        return log_kappa + beyond, log_elasticity

    return everywhere
