"""Multivariate normal observations with covariance `L L'`: coordinates are location and the root L.

A root is given by the logs of its diagonal and by what is below it. With L_0 the reference's root,
`M = L_0^-1 L` and z the displacement of the location in units of L_0,

    KL = |z|^2 / 2 + sum_i (M_ii^2 - 1 - 2 log M_ii) / 2 + sum_(i > j) M_ij^2 / 2.

`log M_ii` is the displacement of a log diagonal. Reverse KL and the Bhattacharyya distance, `|z|^2 / 2` and
`|z|^2 / 8`, are known for a shared root.
"""

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array

from predcp._divergences._closed_form import hellinger_from
from predcp._divergences._divergence import (
    Coordinates,
    Rule,
    kl,
    register_family,
    reverse_kl,
    squared_hellinger,
)
from predcp._numerics.special import (
    Terms,
    capped_exp,
    exponential_excess,
    exponential_excess_slope,
)


@register_family(dist.MultivariateNormal, dist.MultivariateNormal, class_axes=1)
def _coordinates(normal: dist.MultivariateNormal) -> Coordinates:
    return _rooted(jnp.asarray(normal.loc), jnp.asarray(normal.scale_tril))


@register_family(dist.MultivariateNormal, dist.LowRankMultivariateNormal, class_axes=1)
def _low_rank_coordinates(normal: dist.LowRankMultivariateNormal) -> Coordinates:
    return _rooted(jnp.asarray(normal.loc), jnp.linalg.cholesky(normal.covariance_matrix))


def _rooted(loc: Array, root: Array) -> Coordinates:
    batch, size = jnp.broadcast_shapes(loc.shape[:-1], root.shape[:-2]), loc.shape[-1]
    root = jnp.broadcast_to(root, (*batch, size, size))
    rows, columns = jnp.tril_indices(size, -1)
    return {
        "loc": jnp.broadcast_to(loc, (*batch, size)),
        "log_diagonal": jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)),
        "below": root[..., rows, columns],
    }


def _solved(reference: Coordinates, right: Array) -> Array:
    """`L_0^-1 right`."""
    root = _matrix(reference["below"], jnp.exp(reference["log_diagonal"]))
    batch = jnp.broadcast_shapes(root.shape[:-2], right.shape[:-2])
    return solve_triangular(
        jnp.broadcast_to(root, (*batch, *root.shape[-2:])),
        jnp.broadcast_to(right, (*batch, *right.shape[-2:])),
        lower=True,
    )


def _matrix(below: Array, diagonal: Array) -> Array:
    """The lower triangular matrix with those entries."""
    size = diagonal.shape[-1]
    rows, columns = jnp.tril_indices(size, -1)
    made = jnp.zeros((*below.shape[:-1], size, size), diagonal.dtype)
    made = made.at[..., rows, columns].set(below)
    return made + diagonal[..., None] * jnp.eye(size, dtype=diagonal.dtype)


def _moved(reference: Coordinates, direction: Coordinates) -> Array:
    """z in units of the size of the displacement."""
    return _solved(reference, direction["loc"][..., None])[..., 0]


def _column_parts(reference: Coordinates, direction: Coordinates, log_size: Array, velocity=None):
    """Below the diagonal of M, column j in units of e^w_j; the weights w; with a velocity, its speed.

    A column's displacement is that of its entries and `L_jj (e^r - 1)` of its diagonal, r its log change.
    """
    size = capped_exp(log_size)[..., None]
    change = direction["log_diagonal"] * size
    weight = jnp.where(jnp.abs(change) < 1.0, log_size[..., None], jnp.maximum(change, 0.0))
    near = jnp.where(jnp.abs(change) < 1.0, change, 0.0)
    ratio = jnp.where(near == 0.0, 1.0, jnp.expm1(near) / jnp.where(near == 0.0, 1.0, near))
    up, down = jnp.maximum(change, 0.0), jnp.minimum(change, 0.0)
    rise = jnp.where(
        jnp.abs(change) < 1.0, ratio * direction["log_diagonal"], jnp.exp(down) - jnp.exp(-up)
    )
    # Entries move by size: in units of e^w.
    unit = jnp.where(jnp.abs(change) < 1.0, 1.0, size * jnp.exp(-up))
    diagonal = jnp.exp(reference["log_diagonal"])

    def below(entries: Array, first: Array, scale: Array) -> Array:
        moved = _matrix(entries, jnp.zeros_like(diagonal)) * scale[..., None, :]
        moved = moved + (diagonal * first)[..., None] * jnp.eye(
            diagonal.shape[-1], dtype=first.dtype
        )
        return jnp.tril(_solved(reference, moved), -1)

    part = below(direction["below"], rise, unit)
    if velocity is None:
        return part, weight, None
    grow = jnp.where(jnp.abs(change) < 1.0, jnp.exp(near), size * jnp.exp(down))
    return part, weight, below(velocity["below"], grow * velocity["log_diagonal"], unit)


def _half(terms: list[Terms]) -> list[Terms]:
    return [(weight[..., None], 0.5 * c[..., None]) for weight, c in terms]


def _spread(log_size: Array, reference: Coordinates) -> Array:
    return jnp.asarray(log_size, reference["loc"].dtype)


def _kl_value(reference, direction, log_size):
    log_size = _spread(log_size, reference)
    part, weight, _ = _column_parts(reference, direction, log_size)
    return [
        (2.0 * log_size[..., None, None], 0.5 * _moved(reference, direction)[..., None] ** 2),
        *_half(exponential_excess(2.0 * direction["log_diagonal"], log_size[..., None])),
        (2.0 * weight[..., None, :], 0.5 * part**2),
    ]


def _kl_slope(reference, direction, log_size, velocity):
    log_size = _spread(log_size, reference)
    part, weight, speed = _column_parts(reference, direction, log_size, velocity)
    product = _moved(reference, direction) * _moved(reference, velocity)
    widening, widening_speed = 2.0 * direction["log_diagonal"], 2.0 * velocity["log_diagonal"]
    return [
        (2.0 * log_size[..., None, None], product[..., None]),
        *_half(exponential_excess_slope(widening, log_size[..., None], widening_speed)),
        (2.0 * weight[..., None, :], part * speed),
    ]


def _shared_root(curvature: float) -> Rule:
    """The rule of `curvature |z|^2 / 2`."""

    def value(reference, direction, log_size):
        return [(2.0 * log_size, 0.5 * curvature * jnp.sum(_moved(reference, direction) ** 2, -1))]

    def slope(reference, direction, log_size, velocity):
        product = _moved(reference, direction) * _moved(reference, velocity)
        return [(2.0 * log_size, curvature * jnp.sum(product, -1))]

    return Rule(value, slope, bounded=False, fixed=("log_diagonal", "below"))


kl.add(dist.MultivariateNormal, Rule(_kl_value, _kl_slope, bounded=False))
reverse_kl.add(dist.MultivariateNormal, _shared_root(1.0))
squared_hellinger.add(dist.MultivariateNormal, hellinger_from(_shared_root(0.25)))
