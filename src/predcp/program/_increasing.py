"""Maps of programs must increase: only then do they have an inverse."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from predcp._support.arrays import concrete

# Range in which to check that a map increases: from e^-9 to e^9.
GRID = np.linspace(-9.0, 9.0, 13)


def require_increasing(complexity: Any) -> None:
    """Refuse a map that decreases somewhere, with the reason; only for known values."""
    if not all(concrete(leaf) for leaf in jax.tree.leaves(complexity)):
        return
    # Evaluate with known numbers even while the program around is being traced.
    with jax.ensure_compile_time_eval():
        grid = jnp.asarray(GRID, complexity._dtype)
        log_kappa = np.array(complexity.log_value_and_elasticity(grid)[0])
    require_increasing_values(complexity.program.sites.scale, log_kappa)


def require_increasing_values(scale: str, log_kappa: np.ndarray) -> None:
    """Refuse log divergences at the scales of `GRID` that are not numbers or that decrease."""
    wrong = np.isnan(log_kappa) | (log_kappa == np.inf)
    # Zero at the smallest scale is an error; a later zero is a decrease.
    wrong[0] |= log_kappa[0] == -np.inf
    if np.any(wrong):
        at = float(np.exp(GRID[wrong][0]))
        raise ValueError(
            f"the divergence of the predictions is not a finite positive number at {scale} = {at:.3g}: "
            + _cause(wrong, str(log_kappa.dtype))
        )
    highest = np.maximum.accumulate(log_kappa)
    fall = highest - log_kappa
    if np.max(fall) > 0.05:
        at = float(np.exp(GRID[int(np.argmax(fall))]))
        raise ValueError(
            f"the predictions do not move further from the reference as {scale!r} grows: D falls "
            f"by {1.0 - np.exp(-np.max(fall)):.0%} near {scale} = {at:.3g}, so it has no inverse; is the "
            "site a precision, or a parameter that does more than scale an effect?"
        )


def _cause(wrong: np.ndarray, dtype: str) -> str:
    """Why divergences at some scales of `GRID` are not numbers, and the cure."""
    first = int(np.argmax(wrong))
    if GRID[first] > 0.0 and np.all(wrong[first:]):
        return (
            f"numbers of the program overflow {dtype} there. Does it raise the scale to a high power, or "
            "take a hyperbolic function of it? Bound that number, as with jnp.minimum(..., 1e100)"
        )
    precision = "" if dtype == "float64" else " Use double precision (JAX_ENABLE_X64=1)."
    return (
        f"rounding in {dtype} may be the cause.{precision} If a covariance matrix has no factor there, "
        "add a share of its variance to its diagonal, such as 1e-4 * scale**2, not a constant"
    )
