"""KL between negative binomial counts whose concentrations differ.

A concentration that moves adds `E [log Gamma(y + n) / Gamma(n) - log Gamma(y + n_0) / Gamma(n_0)]` to KL,
by Malmsten's integral and `G(s) = E e^(-s y)`

    int_0^inf (e^(-n_0 s) - e^(-n s)) (1 - G(s)) / (s (1 - e^-s)) ds,

to which the trapezoid rule in log s converges exponentially, however large the counts.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_sigmoid, softplus
from jaxtyping import Array

from predcp._numerics.special import Terms, capped_exp, log_share, log_softplus


def log_weight_share(a: Array) -> Array:
    """`log (softplus(a) / e^a)`, without the difference of two logs where both are alike."""
    t = jnp.exp(jnp.minimum(a, 0.0))
    wide = jnp.maximum(t, 1e-3)
    near = jnp.where(
        t < 1e-3, -t / 2.0 + 5.0 / 24.0 * t**2 - t**3 / 8.0, jnp.log(jnp.log1p(wide) / wide)
    )
    return jnp.where(a < 0.0, near, log_softplus(a) - a)


def pair_terms(model: list[Array], reference: list[Array], nodes: int) -> list[Terms]:
    """Terms of KL of one count from another, from log odds, log concentrations and log means.

    **Arguments**: `nodes` of the quadrature.
    """
    (a, log_n, log_mean), (a_0, log_n0, log_mean0) = model, reference
    far = -math.log(float(jnp.finfo(log_mean.dtype).eps))
    largest = jnp.maximum(jnp.maximum(log_n + softplus(a), log_n0), 0.0)
    ends = -jnp.minimum(largest, 60.0) - far - 2.0, math.log(far + 4.0) - jnp.minimum(log_n, log_n0)
    low, high = jax.lax.stop_gradient(jnp.broadcast_arrays(*ends))
    steps = jnp.asarray(np.linspace(0.0, 1.0, nodes), low.dtype).reshape(-1, *[1] * low.ndim)
    x = low + (high - low) * steps
    # e^(-n_0 s) - e^(-n s), by the form whose exponents are negative
    up = log_n >= log_n0
    step = capped_exp(x + log_n0) * jnp.expm1(log_n - log_n0)
    gap = jnp.where(
        up,
        -jnp.exp(-capped_exp(x + log_n0)) * jnp.expm1(-jnp.where(up, step, 0.0)),
        jnp.exp(-capped_exp(x + log_n)) * jnp.expm1(jnp.where(up, 0.0, step)),
    )
    # log (1 - e^-s), and 1 - G = 1 - e^-A
    log_s = log_share(x) + x
    log_rest = log_weight_share(a + log_s)
    log_rest = log_rest + log_share(log_rest + log_s + log_mean)
    total = jnp.sum(gap * jnp.exp(log_rest), 0) * (high - low) / (nodes - 1)
    ones = jnp.ones_like(total)
    return [
        (log_mean + log_weight_share(a), -ones),
        (log_mean0 + log_weight_share(a_0), ones),
        (log_mean, log_sigmoid(a) - log_sigmoid(a_0) + total),
    ]
