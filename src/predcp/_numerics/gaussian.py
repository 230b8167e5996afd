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
    values = jnp.linalg.eigvalsh(change)
    return 0.5 * jnp.sum(scaled_minus_log1p(jnp.where(_present(values), values, 0.0), size))


@gaussian_divergence.defjvp
def _gaussian_divergence_jvp(primals, tangents):
    slope = _slope(*primals)
    return gaussian_divergence(*primals), 0.5 * jnp.sum(slope * tangents[0])


def _present(values: Float[Array, " n"]) -> Array:
    """Whether an eigenvalue is more than rounding of the largest, which a large `size` would magnify."""
    largest = jnp.max(jnp.abs(values))
    return jnp.abs(values) > values.size * jnp.finfo(values.dtype).eps * largest


@jax.custom_jvp
def _slope(change: Float[Array, "n n"], size: Float[Array, ""]) -> Float[Array, "n n"]:
    """`change (I + size * change)^-1`. A solve takes several times as long on a CPU."""
    values, vectors = jnp.linalg.eigh(change)
    values = jnp.where(_present(values), values, 0.0)
    return (vectors * (values / (1.0 + size * values))) @ vectors.T


@_slope.defjvp
def _slope_jvp(primals, tangents):
    inverse = _resolvent(*primals)
    return _slope(*primals), inverse @ tangents[0] @ inverse


@jax.custom_jvp
def _resolvent(change: Float[Array, "n n"], size: Float[Array, ""]) -> Float[Array, "n n"]:
    """`(I + size * change)^-1`."""
    values, vectors = jnp.linalg.eigh(change)
    values = jnp.where(_present(values), values, 0.0)
    return (vectors / (1.0 + size * values)) @ vectors.T


@_resolvent.defjvp
def _resolvent_jvp(primals, tangents):
    # Avoid derivatives of eigenvectors: they do not exist for equal eigenvalues.
    inverse = _resolvent(*primals)
    return inverse, -primals[1] * inverse @ tangents[0] @ inverse
