"""Moments of the contribution of a layer with random weights to the outputs, in closed form.

Given h, the inputs `h W` of a rectified layer with `w_ij ~ N(0, tau lambda_i^2)` are independent
normals of variance `tau v`, `v = sum_i lambda_i^2 h_i^2`, so the first two moments of
`relu(h W) W_out` over W are known: no draws are needed.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

_MEAN_SQUARED = 1.0 / (2.0 * math.pi)
_VARIANCE = 0.5 - _MEAN_SQUARED


class BranchMoments(NamedTuple):
    """Squared mean `tau v mean_squared` and variance `tau v variance` of the contribution of a branch.

    **Arguments**
    - `power`: v of every point, (N,).
    - `mean_squared`, `variance`: of every output, (K,), averaged over the output weights.
    """

    power: Float[Array, " points"]
    mean_squared: Float[Array, " outputs"]
    variance: Float[Array, " outputs"]

    def second(self) -> Float[Array, ""]:
        """Expected squared contribution at tau = 1: mean over points, sum over outputs."""
        return jnp.mean(self.power) * jnp.sum(self.mean_squared + self.variance)


def branch_moments(
    hidden: Float[Array, "points width"],
    row_variances: Float[Array, " width"],
    head_mean: Float[Array, "width outputs"],
    head_variance: Float[Array, "width outputs"],
) -> BranchMoments:
    """Moments of the layer above `hidden`, for output weights with the given means and variances.

    **Arguments**: `hidden` as multiplied by the weights (after any normalisation); `row_variances`,
    `lambda_i^2`.
    """
    sums = jnp.sum(head_mean, axis=0) ** 2 + jnp.sum(head_variance, axis=0)
    squares = jnp.sum(head_mean**2 + head_variance, axis=0)
    return BranchMoments(hidden**2 @ row_variances, _MEAN_SQUARED * sums, _VARIANCE * squares)
