"""Student-t observations with equal degrees of freedom: coordinates are location and log scale.

KL has no closed form. It is an expectation over one standard t variable, taken here by a
241-point double-exponential rule in the angle whose tangent is the variable. Pairs z and
-z are joined and the first-order terms removed on paper, so that it is accurate near equality.
"""

import math

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array

from predcp._divergences._divergence import Coordinates, differentiated, kl, register_family
from predcp._numerics.special import expm1_minus, minus_log1p


@register_family(dist.StudentT, dist.StudentT)
def _coordinates(student: dist.StudentT) -> Coordinates:
    loc, log_scale, df = jnp.broadcast_arrays(
        jnp.asarray(student.loc), jnp.log(jnp.asarray(student.scale)), jnp.asarray(student.df)
    )
    return {"loc": loc, "log_scale": log_scale, "df": df}


def _double_exponential(count: int = 241, reach: float = 3.2) -> tuple[np.ndarray, np.ndarray]:
    """Log tangent and log cosine-weighted step of angles in (0, pi/2), dense at both ends."""
    grid = np.linspace(-reach, reach, count)
    inner = 0.5 * math.pi * np.sinh(grid)
    # angle = (pi / 2) e^inner / (e^inner + e^-inner); its complement has the sign of inner changed.
    angle = 0.5 * math.pi / (1.0 + np.exp(-2.0 * inner))
    complement = 0.5 * math.pi / (1.0 + np.exp(2.0 * inner))
    log_tangent = np.log(np.sin(angle)) - np.log(np.sin(complement))
    log_step = np.log(np.cosh(grid)) - 2.0 * np.log(np.cosh(inner))
    return log_tangent, log_step


_LOG_TANGENT, _LOG_STEP = _double_exponential()


def _moments(df: Array) -> tuple[Array, Array, Array]:
    """Nodes `w = z^2 / (df + z^2)`, `z^2 / df` and normalised weights of the t distribution."""
    log_tangent = jnp.asarray(_LOG_TANGENT, df.dtype)
    w = 1.0 / (1.0 + jnp.exp(-2.0 * log_tangent))
    # The density of the angle is proportional to cos^(df - 1), and cos^2 = 1 - w.
    log_weight = (df[..., None] - 1.0) * 0.5 * -jnp.logaddexp(0.0, 2.0 * log_tangent)
    log_weight = log_weight + jnp.asarray(_LOG_STEP, df.dtype)
    weight = jnp.exp(log_weight - jnp.max(log_weight, axis=-1, keepdims=True))
    return w, jnp.exp(2.0 * log_tangent), weight / jnp.sum(weight, axis=-1, keepdims=True)


def _kl_of(reference: Coordinates, displacement: Coordinates) -> Array:
    df, change = reference["df"], displacement["log_scale"]
    shift = displacement["loc"] * jnp.exp(-reference["log_scale"])
    w, ratio, weight = _moments(df)
    widening = jnp.expm1(2.0 * change)[..., None]
    # log c_r / c with c = 1 + z^2 / df and c_r the same at the model's scale, less its mean.
    scale_part = -jnp.sum(weight * minus_log1p(widening * w), axis=-1)
    # (1 + (r z + d)^2 / df)(1 + (r z - d)^2 / df) / c_r^2 - 1, from the pair z, -z.
    c_r = 1.0 + ratio * (1.0 + widening)
    q = (shift**2 / df)[..., None]
    x = q * (2.0 * c_r + q - 4.0 * ratio * (1.0 + widening)) / c_r**2
    shift_part = 0.5 * jnp.sum(weight * jnp.log1p(x), axis=-1)
    return 0.5 * (df + 1.0) * (scale_part + shift_part) + 0.5 * expm1_minus(2.0 * change)


kl.add(dist.StudentT, differentiated(_kl_of, bounded=False))
