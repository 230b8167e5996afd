"""Divergences between Student-t variables, by the trapezoid rule on a contour."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma
from jaxtyping import Array

from predcp._numerics.special import expm1_minus, log_cosh, minus_log1p

# Number of nodes u >= 0 (each also stands for -u). Single precision needs half the range and nodes.
COUNTS = {"float32": 41, "float64": 81}
# The displacement, in units of sqrt(df) scales, up to which the form for small ones is used.
_SWITCH = 0.25


def half_nodes(df: Array) -> tuple[Array, Array]:
    """Nodes u >= 0 and the weights of the rule for pairs of u and -u.

    At the farthest node `cosh(u)^-df` is below rounding. For few degrees of freedom that node is so far
    out that nodes must be denser where the weight is: `u = farthest sinh(k v) / sinh(k)`.
    """
    depth = (1.5 - math.log(float(jnp.finfo(df.dtype).eps))) / df
    farthest = depth + jnp.log1p(jnp.sqrt(-jnp.expm1(-2.0 * depth)))
    k = 2.5 * jnp.maximum(1.4 / df - 0.4, 1e-6) ** 0.25
    v = jnp.asarray(np.linspace(0.0, 1.0, COUNTS[df.dtype.name]), df.dtype)
    u = farthest * jnp.sinh(k * v) / jnp.sinh(k)
    weight = jnp.where(v == 0.0, 0.5, jnp.cosh(k * v))
    # The rule is right for any nodes, so derivatives of the nodes are not needed.
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


def _far(df: Array, shift: Array, change: Array, reverse: bool) -> Array:
    """KL away from equality; `shift` is in units of `sqrt(df)` times the reference's scale."""
    # With the two exchanged, the shift is -d / s and the scale 1 / s, in units of the model's scale.
    log_scale, log_shift_unit = (-change, -change) if reverse else (change, jnp.zeros_like(change))
    largest = jnp.maximum(log_scale, log_shift_unit + jnp.log(jnp.maximum(jnp.abs(shift), 1.0)))
    unit = jax.lax.stop_gradient(jnp.maximum(largest, 0.0))
    moved = mean_log(df, unit, shift * jnp.exp(log_shift_unit - unit), jnp.exp(log_scale - unit))
    still = digamma(0.5 * (df + 1.0)) - digamma(0.5 * df)
    return -log_scale + 0.5 * (df + 1.0) * (moved - still)


def _near(df: Array, shift: Array, change: Array, reverse: bool) -> Array:
    """KL near equality, from pairs of nodes z and -z of the real line."""
    if reverse:
        shift, change = -shift * jnp.exp(-change), -change
    df = df[..., None]
    u, weight = half_nodes(df)
    weight = weight * jnp.exp(-df * log_cosh(u))
    weight = weight / jnp.sum(weight, -1, keepdims=True)
    # Shares of c = 1 + z^2 / df in units of cosh(u)^2: 1 = still^2 + part.
    part, still = jnp.tanh(u) ** 2, 1.0 / jnp.cosh(u) ** 2
    widening = jnp.expm1(2.0 * change)[..., None]
    scale_part = -jnp.sum(weight * minus_log1p(widening * part), -1)
    # (1 + (r z + d)^2 / df)(1 + (r z - d)^2 / df) / c_r^2 - 1
    wide = 1.0 + widening * part
    q = shift[..., None] ** 2 * still
    x = q * (2.0 * wide + q - 4.0 * part * (1.0 + widening)) / wide**2
    shift_part = 0.5 * jnp.sum(weight * jnp.log1p(x), -1)
    return 0.5 * (df[..., 0] + 1.0) * (scale_part + shift_part) + 0.5 * expm1_minus(2.0 * change)


def divergence(df: Array, shift: Array, change: Array, size: Array, reverse: bool) -> Array:
    """KL of a variable displaced by `shift`, in units of `sqrt(df)` scales, and by `change` in log scale.

    **Arguments**: `size`, the larger of the two displacements; `reverse`, whether to exchange the two.
    """
    near = size < _SWITCH
    inner_shift, inner_change = (jnp.where(near, each, 0.0) for each in (shift, change))
    shift, change = (jnp.where(near, _SWITCH, each) for each in (shift, change))
    return jnp.where(
        near, _near(df, inner_shift, inner_change, reverse), _far(df, shift, change, reverse)
    )


def of_shift(df: Array, shift: Array) -> Array:
    """The divergence, the same either way round, if only the location moves."""
    return divergence(df, shift, jnp.zeros_like(shift), jnp.abs(shift), reverse=False)
