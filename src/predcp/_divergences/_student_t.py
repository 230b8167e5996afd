"""Student-t observations with equal degrees of freedom: coordinates are location and log scale.

With the model's `Y = d + s z`, d and s in units of the reference's scale, KL is
`-log s + (df + 1) / 2 E[log(1 + Y^2 / df) - log(1 + z^2 / df)]` over a standard t variable z: no
closed form. `log(1 + Y^2 / df) = 2 Re log(1 - i Y / sqrt(df))` has its singularity below the real
line and the density its own above. On the contour `z / sqrt(df) = sinh(u + i angle)` both stay at a
distance of at least `min(angle, pi / 2 - angle)` from every real u, for any d and s; the trapezoid
rule in u then converges geometrically: to 1e-10 for df >= 1 with the nodes below.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array

from predcp._divergences._closed_form import closed_form
from predcp._divergences._divergence import Coordinates, alike, kl, register_family, reverse_kl
from predcp._numerics.special import Terms, log_cosh

_GRID = np.linspace(-1.0, 1.0, 321)


@register_family(dist.StudentT, dist.StudentT)
def _coordinates(student: dist.StudentT) -> Coordinates:
    loc, scale, df = alike(student.loc, student.scale, student.df)
    return {"loc": loc, "log_scale": jnp.log(scale), "df": df}


@register_family(dist.StudentT, dist.Cauchy, dist.HalfCauchy)
def _cauchy_coordinates(cauchy: dist.Cauchy | dist.HalfCauchy) -> Coordinates:
    """Of one degree of freedom; the sign, which a half has lost, would tell nothing of the scale."""
    loc, scale, df = alike(getattr(cauchy, "loc", 0.0), cauchy.scale, 1.0)
    return {"loc": loc, "log_scale": jnp.log(scale), "df": df}


def _mean_log(df: Array, log_unit: Array, shift: Array, scale: Array) -> Array:
    """`E log(1 + Y^2 / df)` for `Y / sqrt(df) = e^log_unit (shift + scale z / sqrt(df))`.

    **Arguments**: `log_unit >= 0` such that neither `shift` nor `scale` is above 1.
    """
    df, log_unit, shift, scale = (array[..., None] for array in (df, log_unit, shift, scale))
    # cosh(reach)^-df is rounding, and the weights oscillate by e^(df angle^2 / 2) at most.
    depth = (1.5 - math.log(float(jnp.finfo(df.dtype).eps))) / df
    reach = depth + jnp.log1p(jnp.sqrt(-jnp.expm1(-2.0 * depth)))
    angle = jnp.minimum(math.pi / 4.0, 1.5 / jnp.sqrt(df))
    u = reach * jnp.asarray(_GRID, df.dtype)
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    # cosh(u + i angle)^-df: density times the step of the contour.
    decay = log_cosh(u) + 0.5 * jnp.log1p(-((sine / jnp.cosh(u)) ** 2))
    phase = df * jnp.arctan(jnp.tanh(u) * jnp.tan(angle))
    size = jnp.exp(-df * (decay - jnp.log(cosine)))
    even, odd = size * jnp.cos(phase), -size * jnp.sin(phase)
    even, odd = even / jnp.sum(even, -1, keepdims=True), odd / jnp.sum(even, -1, keepdims=True)
    # The logarithm's argument 1 - i Y / sqrt(df), in units of e^log_unit cosh(u).
    real = jnp.exp(-log_unit) / jnp.cosh(u) + scale * sine
    imaginary = shift / jnp.cosh(u) + scale * jnp.tanh(u) * cosine
    log_size = log_cosh(u) + 0.5 * jnp.log(real**2 + imaginary**2)
    logs = log_size * even + jnp.arctan2(imaginary, real) * odd
    return 2.0 * (log_unit[..., 0] + jnp.sum(logs, -1))


def _formula(reference: Coordinates, displacement: Coordinates, reverse: bool) -> list[Terms]:
    df, change = reference["df"], displacement["log_scale"]
    shift = displacement["loc"] * jnp.exp(-reference["log_scale"]) / jnp.sqrt(df)
    df, change, shift = jnp.broadcast_arrays(df, change, shift)
    # Exchanged, the shift is -d / s and the scale 1 / s, in units of the model's scale.
    log_scale, log_shift_unit = (-change, -change) if reverse else (change, 0.0)
    largest = jnp.maximum(log_scale, log_shift_unit + jnp.log(jnp.maximum(jnp.abs(shift), 1.0)))
    unit = jax.lax.stop_gradient(jnp.maximum(largest, 0.0))
    moved = _mean_log(df, unit, shift * jnp.exp(log_shift_unit - unit), jnp.exp(log_scale - unit))
    still = _mean_log(df, jnp.zeros_like(df), jnp.zeros_like(df), jnp.ones_like(df))
    return [(jnp.zeros_like(df), -log_scale + 0.5 * (df + 1.0) * (moved - still))]


for _divergence, _reverse in ((kl, False), (reverse_kl, True)):
    _divergence.add(
        dist.StudentT,
        closed_form(
            lambda reference, d, reverse=_reverse: _formula(reference, d, reverse),
            moving=("loc", "log_scale"),
            bounded=False,
            fixed=("df",),
            nodes=len(_GRID),
        ),
    )
