"""Multivariate normal observations with a shared covariance `L L'`: coordinates are `L^-1 loc`.

With z the displacement of those, KL is `|z|^2 / 2` either way, and the Bhattacharyya distance
`|z|^2 / 8`. The covariance must not move.
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


@register_family(dist.MultivariateNormal, dist.MultivariateNormal, class_axes=1)
def _coordinates(normal: dist.MultivariateNormal) -> Coordinates:
    return _whitened(jnp.asarray(normal.loc), jnp.asarray(normal.scale_tril))


@register_family(dist.MultivariateNormal, dist.LowRankMultivariateNormal, class_axes=1)
def _low_rank_coordinates(normal: dist.LowRankMultivariateNormal) -> Coordinates:
    return _whitened(jnp.asarray(normal.loc), jnp.linalg.cholesky(normal.covariance_matrix))


def _whitened(loc: Array, root: Array) -> Coordinates:
    batch = jnp.broadcast_shapes(loc.shape[:-1], root.shape[:-2])
    loc, root = (
        jnp.broadcast_to(loc, (*batch, loc.shape[-1])),
        jnp.broadcast_to(root, (*batch, *root.shape[-2:])),
    )
    white = solve_triangular(root, loc[..., None], lower=True)[..., 0]
    return {"loc": white, "scale_tril": root.reshape(*batch, -1)}


def _rule(curvature: float) -> Rule:
    """The rule of `curvature |z|^2 / 2`."""

    def value(reference, direction, log_size):
        return [(2.0 * log_size, 0.5 * curvature * jnp.sum(direction["loc"] ** 2, -1))]

    def slope(reference, direction, log_size, velocity):
        return [(2.0 * log_size, curvature * jnp.sum(direction["loc"] * velocity["loc"], -1))]

    return Rule(value, slope, bounded=False, fixed=("scale_tril",))


kl.add(dist.MultivariateNormal, _rule(1.0))
reverse_kl.add(dist.MultivariateNormal, _rule(1.0))
squared_hellinger.add(dist.MultivariateNormal, hellinger_from(_rule(0.25)))
