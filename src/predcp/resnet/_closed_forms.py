"""Best variances in closed form, given second moments of weights `w ~ N(0, variance)`."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float


def inverse_gamma(
    moment: Float[Array, "..."], count: int, shape: float, scale: float
) -> Float[Array, "..."]:
    """Log of the mode of `IG(shape, scale)` times the likelihood of `count` weights.

    **Arguments**: `moment`, the sum of `E w^2` over the weights that share the variance.
    """
    return jnp.log(2.0 * scale + moment) - math.log(count + 2.0 * shape + 2.0)


def half_cauchy(moment: Float[Array, "..."], count: int, scale: float) -> Float[Array, "..."]:
    """The same for a standard deviation `~ C+(0, scale)`: log of the square of its mode."""
    # (n + 2) t^2 + (n - m) t - m = 0 for t = variance / scale^2, m in the same unit.
    m = moment / scale**2
    linear = count - m
    root = jnp.sqrt(linear**2 + 4.0 * (count + 2.0) * m)
    # Above and below m = n, use the form of the root without a subtraction.
    small = linear > 0.0
    below = 2.0 * m / jnp.where(small, linear + root, 1.0)
    above = (root - linear) / (2.0 * (count + 2.0))
    return jnp.log(jnp.where(small, below, above)) + 2.0 * math.log(scale)


def require_positive(**values: float) -> None:
    """Refuse parameters that are not positive and finite, by name."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"{name} must be positive and finite, got {value!r}")
