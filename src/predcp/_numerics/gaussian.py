"""Divergence of Gaussians with nearly equal covariances, without cancellation."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp._numerics.special import minus_log1p


def scaled_minus_log1p(values: Float[Array, "..."], size: Float[Array, ""]) -> Float[Array, "..."]:
    """`(v - log(1 + v)) / size^2` at `v = size * values > -1`, however small the size."""
    v = size * values
    small = jnp.abs(v) < 1e-5
    series = values**2 * (0.5 - v / 3.0 + v**2 / 4.0)
    return jnp.where(small, series, minus_log1p(jnp.where(small, 1.0, v)) / size / size)


@jax.custom_jvp
def gaussian_divergence(change: Float[Array, "n n"], size: Float[Array, ""]) -> Float[Array, ""]:
    """`tr(V - log(I + V)) / (2 size^2)` at `V = size * change`: KL[N(0, I + V) || N(0, I)] over `size^2`.

    **Arguments**: `change`, symmetric with V above -I; `size`, which is not differentiated.
    """
    return 0.5 * jnp.sum(scaled_minus_log1p(jnp.linalg.eigvalsh(change), size))


@gaussian_divergence.defjvp
def _gaussian_divergence_jvp(primals, tangents):
    change, size = primals
    slope = change @ _resolvent(change, size)
    return gaussian_divergence(change, size), 0.5 * jnp.sum(slope * tangents[0])


@jax.custom_jvp
def _resolvent(change: Float[Array, "n n"], size: Float[Array, ""]) -> Float[Array, "n n"]:
    """`(I + size * change)^-1`. A solve takes several times as long on a CPU."""
    values, vectors = jnp.linalg.eigh(change)
    return (vectors / (1.0 + size * values)) @ vectors.T


@_resolvent.defjvp
def _resolvent_jvp(primals, tangents):
    # Without derivatives of eigenvectors: those of equal eigenvalues have none.
    inverse = _resolvent(*primals)
    return inverse, -primals[1] * inverse @ tangents[0] @ inverse
