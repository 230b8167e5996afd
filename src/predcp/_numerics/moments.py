"""Means and variances of observations that are independent given the parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float, PyTree
from numpyro.distributions.distribution import ExpandedDistribution, MaskedDistribution

from predcp._support.check import known


def moments_of(observations: PyTree) -> dict[str, Float[Array, " points"]]:
    """Means and variances of a pytree of distributions, as vectors; 0 and 1 where they are masked."""
    found = _leaves(observations)
    for each in found:
        base = _unwrapped(each)[-1]
        if base.event_shape:
            raise ValueError(
                f"observations must be independent given theta, got {type(base).__name__} with event "
                f"shape {base.event_shape}"
            )
    return {
        "mean": jnp.concatenate([_kept(each, each.mean, 0.0) for each in found]),
        "variance": jnp.concatenate([_kept(each, each.variance, 1.0) for each in found]),
    }


def require_moments(observations: PyTree) -> None:
    """Refuse observations without a finite mean and variance."""
    for each in _leaves(observations):
        moments = [known(moment) for moment in (each.mean, each.variance)]
        if not all(found is None or np.all(np.isfinite(found)) for found in moments):
            raise ValueError(
                f"{type(_unwrapped(each)[-1]).__name__} observations have no finite mean and variance "
                "at the reference, which JointComplexity compares; use PredictiveComplexity"
            )


def _leaves(observations: PyTree) -> list[Any]:
    return jax.tree.leaves(observations, is_leaf=lambda leaf: isinstance(leaf, dist.Distribution))


def _unwrapped(made: Any) -> list[Any]:
    """A distribution and what it wraps, from outside to inside."""
    found = [made]
    while isinstance(found[-1], dist.Independent | MaskedDistribution | ExpandedDistribution):
        found.append(found[-1].base_dist)
    return found


def _kept(made: Any, moment: Any, otherwise: float) -> Array:
    """A moment of each observation as a vector, another number where observations are masked."""
    moment = jnp.broadcast_to(moment, made.shape())
    for each in _unwrapped(made):
        if isinstance(each, MaskedDistribution):
            mask = jnp.broadcast_to(each._mask, each.batch_shape)
            mask = mask.reshape(*mask.shape, *[1] * each.event_dim)
            moment = jnp.where(mask, moment, otherwise)
    return moment.ravel()
