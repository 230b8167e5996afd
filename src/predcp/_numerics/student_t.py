"""Expectations under a Student-t variable, by the trapezoid rule on a contour."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp._numerics.special import log_cosh

# Nodes u >= 0, each of which stands for -u too. Single precision needs half the reach, half the nodes.
COUNTS = {"float32": 41, "float64": 81}


def half_nodes(df: Array) -> tuple[Array, Array]:
    """Nodes u >= 0 and the weights of the rule for pairs of u and -u.

    At the farthest `cosh(u)^-df` is rounding. For few degrees of freedom that is so far out that
    nodes are needed more densely where the weight is: `u = farthest sinh(k v) / sinh(k)`.
    """
    depth = (1.5 - math.log(float(jnp.finfo(df.dtype).eps))) / df
    farthest = depth + jnp.log1p(jnp.sqrt(-jnp.expm1(-2.0 * depth)))
    k = 2.5 * jnp.maximum(1.4 / df - 0.4, 1e-6) ** 0.25
    v = jnp.asarray(np.linspace(0.0, 1.0, COUNTS[df.dtype.name]), df.dtype)
    u = farthest * jnp.sinh(k * v) / jnp.sinh(k)
    weight = jnp.where(v == 0.0, 0.5, jnp.cosh(k * v))
    # The rule is right wherever its nodes are: a derivative need not follow them.
    return jax.lax.stop_gradient(u), jax.lax.stop_gradient(weight)


def mean_log(df: Array, log_unit: Array, shift: Array, scale: Array) -> Array:
    """`E log(1 + Y^2 / df)` for `Y / sqrt(df) = e^log_unit (shift + scale z / sqrt(df))`.

    **Arguments**: `log_unit >= 0` such that neither `shift` nor `scale` is above 1.
    """
    df, log_unit, shift, scale = (array[..., None] for array in (df, log_unit, shift, scale))
    # The weights oscillate by e^(df angle^2 / 2) at most.
    angle = jnp.minimum(math.pi / 4.0, 1.5 / jnp.sqrt(df))
    u, weight = half_nodes(df)
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    # cosh(u + i angle)^-df: density times the step of the contour.
    decay = log_cosh(u) + 0.5 * jnp.log1p(-((sine / jnp.cosh(u)) ** 2))
    phase = df * jnp.arctan(jnp.tanh(u) * jnp.tan(angle))
    size = weight * jnp.exp(-df * (decay - jnp.log(cosine)))
    even, odd = size * jnp.cos(phase), -size * jnp.sin(phase)
    total = jnp.sum(even, -1, keepdims=True)
    even, odd = even / total, odd / total
    # The logarithm's argument 1 - i Y / sqrt(df), in units of e^log_unit cosh(u), at u and at -u:
    # the logs of the two sizes are added and the angles subtracted.
    real = jnp.exp(-log_unit) / jnp.cosh(u) + scale * sine
    middle, swing = shift / jnp.cosh(u), scale * jnp.tanh(u) * cosine
    above, below = (
        jnp.sqrt(real**2 + (middle + swing) ** 2),
        jnp.sqrt(real**2 + (middle - swing) ** 2),
    )
    # Angles from the two unit vectors: products of the sides would underflow.
    up, down = (middle + swing) / above, (middle - swing) / below
    right_up, right_down = real / above, real / below
    turn = jnp.arctan2(up * right_down - down * right_up, right_up * right_down + up * down)
    logs = jnp.log(above * below) * even + turn * odd
    return 2.0 * (log_unit[..., 0] + jnp.sum(log_cosh(u) * even, -1)) + jnp.sum(logs, -1)
