"""Student-t observations with equal degrees of freedom: coordinates are location and log scale.

With the model's `Y = d + s z`, d and s in units of the reference's scale, KL is
`-log s + (df + 1) / 2 E[log(1 + Y^2 / df) - log(1 + z^2 / df)]` over a standard t variable z: no
closed form. `log(1 + Y^2 / df) = 2 Re log(1 - i Y / sqrt(df))` has its singularity below the real
line and the density its own above. On the contour `z / sqrt(df) = sinh(u + i angle)` both stay at a
distance of at least `min(angle, pi / 2 - angle)` from every real u, for any d and s; the trapezoid
rule in u then converges geometrically: to 1e-10 for df >= 1 and to 1e-7 for
df = 0.5 with the nodes below.

Near equality the terms that cancel are removed on paper, and the real line serves as the contour.
"""

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import digamma
from jaxtyping import Array

from predcp._divergences._divergence import (
    Coordinates,
    Rule,
    alike,
    kl,
    register_family,
    reverse_kl,
)
from predcp._numerics.special import capped_exp, expm1_minus, log_cosh, minus_log1p
from predcp._numerics.student_t import COUNTS, half_nodes, mean_log

# The displacement, in units of sqrt(df) scales, up to which the form for small ones is used.
_SWITCH = 0.25


@register_family(dist.StudentT, dist.StudentT)
def _coordinates(student: dist.StudentT) -> Coordinates:
    loc, scale, df = alike(student.loc, student.scale, student.df)
    return {"loc": loc, "log_scale": jnp.log(scale), "df": df}


@register_family(dist.StudentT, dist.Cauchy, dist.HalfCauchy)
def _cauchy_coordinates(cauchy: dist.Cauchy | dist.HalfCauchy) -> Coordinates:
    """Of one degree of freedom; the sign, which a half has lost, would tell nothing of the scale."""
    loc, scale, df = alike(getattr(cauchy, "loc", 0.0), cauchy.scale, 1.0)
    return {"loc": loc, "log_scale": jnp.log(scale), "df": df}


def _far(df: Array, shift: Array, change: Array, reverse: bool) -> Array:
    """KL away from equality; `shift` is in units of `sqrt(df)` times the reference's scale."""
    # Exchanged, the shift is -d / s and the scale 1 / s, in units of the model's scale.
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


def _rule(reverse: bool) -> Rule:
    def parts(reference, direction, log_size):
        """Degrees of freedom, directions of shift and log scale, and how far they have gone."""
        df, unit = reference["df"], jnp.exp(-reference["log_scale"]) / jnp.sqrt(reference["df"])
        shift, change = jnp.broadcast_arrays(direction["loc"] * unit, direction["log_scale"])
        size = jnp.maximum(jnp.abs(shift), jnp.abs(change)) * capped_exp(log_size)
        return df, unit, shift, change, size

    def divergence(df, shift, change, size):
        near = size < _SWITCH
        inner_shift, inner_change = (jnp.where(near, each, 0.0) for each in (shift, change))
        shift, change = (jnp.where(near, _SWITCH, each) for each in (shift, change))
        return jnp.where(
            near, _near(df, inner_shift, inner_change, reverse), _far(df, shift, change, reverse)
        )

    def fisher(df, shift, change, shift_speed, speed):
        """Both Fisher informations; the shift is in units of sqrt(df)."""
        return (df * (df + 1.0) * shift * shift_speed + 2.0 * df * change * speed) / (df + 3.0)

    def value(reference, direction, log_size):
        df, _, shift, change, moved = parts(reference, direction, log_size)
        tiny = moved < jnp.finfo(moved.dtype).eps
        size = capped_exp(log_size)
        whole = divergence(df, shift * size, change * size, moved)
        return [
            (2.0 * log_size, jnp.where(tiny, 0.5 * fisher(df, shift, change, shift, change), 0.0)),
            (jnp.zeros_like(whole), jnp.where(tiny, 0.0, whole)),
        ]

    def slope(reference, direction, log_size, velocity):
        df, unit, shift, change, moved = parts(reference, direction, log_size)
        speeds = jnp.broadcast_arrays(velocity["loc"] * unit, velocity["log_scale"])
        speeds = [jnp.broadcast_to(speed, shift.shape) for speed in speeds]
        tiny = moved < jnp.finfo(moved.dtype).eps
        size = capped_exp(log_size)
        _, rise = jax.jvp(
            lambda s, c: divergence(df, s, c, moved), (shift * size, change * size), tuple(speeds)
        )
        return [
            (2.0 * log_size, jnp.where(tiny, fisher(df, shift, change, *speeds), 0.0)),
            (log_size + jnp.zeros_like(rise), jnp.where(tiny, 0.0, rise)),
        ]

    return Rule(value, slope, bounded=False, fixed=("df",), nodes=COUNTS["float64"])


kl.add(dist.StudentT, _rule(reverse=False))
reverse_kl.add(dist.StudentT, _rule(reverse=True))
