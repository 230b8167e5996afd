"""Draws of observations of any structure."""

from typing import Any

import jax
import numpyro.distributions as dist
from jaxtyping import Array, PyTree


def sampled(observations: Any, key: Array) -> PyTree:
    """One draw from each distribution of a pytree of them."""
    leaves, structure = jax.tree.flatten(
        observations, is_leaf=lambda leaf: isinstance(leaf, dist.Distribution)
    )
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(structure, [leaf.sample(k) for leaf, k in zip(leaves, keys)])
