"""Nodes at which the densities of two univariate distributions are compared."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

# From the model and the reference to nodes on a leading axis, weights, and whether those are weights of
# expectations under both, not of integrals.
Places = Callable[[Any, Any], tuple[Array, Array, bool]]


def counted(largest: int) -> Places:
    """Every count up to the largest."""

    def places(model, reference):
        counts = jnp.arange(largest + 1).reshape(-1, *[1] * len(model.batch_shape))
        return counts, jnp.ones(()), False

    return places


def around(count: int) -> Places:
    """Angles at equal distances."""
    angles = -np.pi + 2.0 * np.pi * np.arange(count) / count

    def places(model, reference):
        kind = jax.tree.leaves(model)[0].dtype
        nodes = jnp.asarray(angles, kind).reshape(-1, *[1] * len(model.batch_shape))
        return nodes, jnp.asarray(2.0 * np.pi / count, kind), False

    return places


def quantiles(count: int) -> Places:
    """Probabilities u = (1 + tanh(pi/2 sinh x)) / 2 and their weights, by the trapezoid rule in x."""

    def places(model, reference):
        kind = jax.tree.leaves(model)[0].dtype
        # Up to probabilities that differ from 1 by rounding.
        x = np.linspace(-1.0, 1.0, count) * (3.0 if kind == np.float64 else 2.3)
        inner = 0.5 * np.pi * np.sinh(x)
        weight = 0.25 * np.pi * np.cosh(x) / np.cosh(inner) ** 2 * (x[1] - x[0])
        shape = (-1, *[1] * len(model.batch_shape))
        u = jnp.asarray(0.5 * (1.0 + np.tanh(inner)), kind).reshape(shape)
        nodes = jnp.concatenate(
            [
                jnp.broadcast_to(each.icdf(u), (count, *model.batch_shape))
                for each in (model, reference)
            ]
        )
        return nodes, jnp.asarray(np.tile(weight, 2), kind).reshape(shape), True

    return places
