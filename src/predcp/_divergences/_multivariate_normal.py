"""Multivariate normal observations with covariance `L L'`: coordinates are location and the root L.

A root is given by the logs of its diagonal and by what is below it. With L_0 the reference's root,
`M = L_0^-1 (L - L_0)`, r the change of a log diagonal and z that of the location in units of L_0,

    KL = |z|^2 / 2 + sum_i (e^(2 r_i) - 1 - 2 r_i) / 2 + sum_(i > j) M_ij^2 / 2.

Reverse KL and squared Hellinger are in `_multivariate_distances`.
"""

from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array

from predcp._divergences._divergence import (
    Coordinates,
    Rule,
    alike,
    register_family,
    register_rules,
)
from predcp._numerics.special import (
    capped_exp,
    exponential_excess,
    exponential_excess_slope,
    half,
    over_argument,
)


@register_family(dist.MultivariateNormal, dist.MultivariateNormal, class_axes=1)
def _coordinates(normal: dist.MultivariateNormal) -> Coordinates:
    return _rooted(jnp.asarray(normal.loc), jnp.asarray(normal.scale_tril))


@register_family(
    dist.MultivariateNormal, dist.LowRankMultivariateNormal, dist.CirculantNormal, class_axes=1
)
def _structured_coordinates(normal: Any) -> Coordinates:
    return _rooted(jnp.asarray(normal.loc), jnp.linalg.cholesky(normal.covariance_matrix))


@register_family(dist.MultivariateNormal, dist.MatrixNormal, class_axes=1)
def _matrix_coordinates(normal: dist.MatrixNormal) -> Coordinates:
    """The entries row by row, whose covariance is a Kronecker product."""
    loc = jnp.asarray(normal.loc)
    root = jnp.einsum("...ij,...kl->...ikjl", normal.scale_tril_row, normal.scale_tril_column)
    size = loc.shape[-2] * loc.shape[-1]
    return _rooted(loc.reshape(*loc.shape[:-2], size), root.reshape(*root.shape[:-4], size, size))


@register_family(dist.Normal, dist.GaussianRandomWalk, class_axes=1)
def _walk_coordinates(walk: dist.GaussianRandomWalk) -> Coordinates:
    """Its steps, which are independent: their sum is no other observation."""
    log_scale = jnp.log(*alike(walk.scale))[..., None]
    log_scale = jnp.broadcast_to(log_scale, (*walk.batch_shape, walk.num_steps))
    return {"loc": jnp.zeros_like(log_scale), "log_scale": log_scale}


def _rooted(loc: Array, root: Array) -> Coordinates:
    batch, size = jnp.broadcast_shapes(loc.shape[:-1], root.shape[:-2]), loc.shape[-1]
    root = jnp.broadcast_to(root, (*batch, size, size))
    return {
        "loc": jnp.broadcast_to(loc, (*batch, size)),
        "log_diagonal": jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)),
        "below": root[..., *jnp.tril_indices(size, -1)],
    }


def _solved(reference: Coordinates, move: Coordinates, log_diagonal: Array) -> tuple[Array, Array]:
    """z, and M below its diagonal, from a location, a root below its diagonal and a log diagonal."""
    diagonal, size = jnp.exp(reference["log_diagonal"]), reference["loc"].shape[-1]
    corner = jnp.tril_indices(size, -1)

    def matrix(below: Array, entries: Array) -> Array:
        made = jnp.zeros((*below.shape[:-1], size, size), entries.dtype)
        return made.at[..., *corner].set(below) + entries[..., None] * jnp.eye(
            size, dtype=made.dtype
        )

    root, step = (
        matrix(reference["below"], diagonal),
        matrix(move["below"], diagonal * log_diagonal),
    )
    right = jnp.concatenate([move["loc"][..., None], step], -1)
    batch = jnp.broadcast_shapes(root.shape[:-2], right.shape[:-2])
    found = solve_triangular(
        jnp.broadcast_to(root, (*batch, size, size)),
        jnp.broadcast_to(right, (*batch, size, size + 1)),
        lower=True,
    )
    return found[..., 0], found[..., 1:][..., *corner]


def whitened(
    reference: Coordinates, direction: Coordinates, log_size: Array
) -> tuple[Array, Array]:
    """z and M in units of the size of the displacement."""
    change = direction["log_diagonal"] * capped_exp(log_size)
    growth = over_argument(jnp.expm1, change, 0.5)
    return _solved(reference, direction, growth * direction["log_diagonal"])


def _kl_value(reference, direction, log_size):
    log_size = jnp.asarray(log_size, reference["loc"].dtype)[..., None]
    shift, below = whitened(reference, direction, log_size)
    return [
        (2.0 * log_size, 0.5 * shift**2),
        (2.0 * log_size, 0.5 * below**2),
        *half(exponential_excess(2.0 * direction["log_diagonal"], log_size)),
    ]


def _kl_slope(reference, direction, log_size, velocity):
    log_size = jnp.asarray(log_size, reference["loc"].dtype)[..., None]
    shift, below = whitened(reference, direction, log_size)
    growth = jnp.exp(direction["log_diagonal"] * capped_exp(log_size))
    shift_speed, below_speed = _solved(reference, velocity, growth * velocity["log_diagonal"])
    widening, speed = 2.0 * direction["log_diagonal"], 2.0 * velocity["log_diagonal"]
    return [
        (2.0 * log_size, shift * shift_speed),
        (2.0 * log_size, below * below_speed),
        *half(exponential_excess_slope(widening, log_size, speed)),
    ]


register_rules(dist.MultivariateNormal, kl=Rule(_kl_value, _kl_slope, bounded=False))
