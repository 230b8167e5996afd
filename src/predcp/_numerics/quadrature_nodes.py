"""Nodes at which the densities of two univariate distributions are compared."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

Found = tuple[Array, Array, bool]


class Places(NamedTuple):
    """A choice of nodes.

    **Arguments**
    - `find`: from the model and the reference to nodes on a leading axis, weights, and whether these are
        weights of expectations under both (not of an integral).
    - `follow`: whether the sum is no smooth function of the model at fixed nodes, so that its slope is
        that with nodes that move.
    """

    find: Callable[[Any, Any], Found]
    follow: bool = False

    def __call__(self, model: Any, reference: Any) -> Found:
        return self.find(model, reference)


def counted(largest: int) -> Places:
    """Every count up to the largest."""

    def places(model, reference):
        counts = jnp.arange(largest + 1).reshape(-1, *[1] * len(model.batch_shape))
        return counts, jnp.ones(()), False

    return Places(places)


def around(count: int) -> Places:
    """Angles about either mean, `2 atan(s tan(u / 2))` with u at equal distances and s the spread."""
    half = np.pi * ((np.arange(count) + 0.5) / count - 0.5)

    def places(model, reference):
        found = []
        for each in (model, reference):
            kind = jax.tree.leaves(each)[0].dtype
            sine, cosine = (
                jnp.asarray(part, kind).reshape(-1, *[1] * len(each.batch_shape))
                for part in (np.sin(half), np.cos(half))
            )
            # The variance of angles is at most 1, where they are at equal distances.
            spread = jnp.sqrt(each.variance / (2.0 - each.variance))
            moved = each.mean + 2.0 * jnp.arctan2(spread * sine, cosine)
            angles = jnp.mod(moved + np.pi, 2.0 * np.pi) - np.pi
            stretch = spread / (cosine**2 + (spread * sine) ** 2)
            found.append((angles, jnp.exp(each.log_prob(angles)) * stretch * (2.0 * np.pi / count)))
        angles, weights = (jnp.concatenate(parts) for parts in zip(*found))
        return angles, weights, True

    return Places(places)


def quantiles(count: int, corner: Callable[[Any], Array] | None = None) -> Places:
    """Probabilities u = (1 + tanh(pi/2 sinh x)) / 2 and their weights, by the trapezoid rule in x.

    **Arguments**: how many; from a distribution to the place of a corner of its log density, on
    both sides of which there are then as many nodes.
    """

    def places(model, reference):
        kind = jax.tree.leaves(model)[0].dtype
        # Up to probabilities that differ from 1 by rounding.
        own = count if corner is None else count // 2 + 1
        x = np.linspace(-1.0, 1.0, own) * (3.0 if kind == np.float64 else 2.3)
        inner = 0.5 * np.pi * np.sinh(x)
        weight = 0.25 * np.pi * np.cosh(x) / np.cosh(inner) ** 2 * (x[1] - x[0])
        shape = (-1, *[1] * len(model.batch_shape))
        u = jnp.asarray(0.5 * (1.0 + np.tanh(inner)), kind).reshape(shape)
        weight = jnp.asarray(weight, kind).reshape(shape)
        nodes, weights = [], []
        for each in (model, reference):
            below, mass = u, weight
            if corner is not None:
                # A limit may lie beyond the corner.
                tiny = float(jnp.finfo(kind).eps)
                split = jnp.clip(each.cdf(corner(each)), tiny, 1.0 - tiny)
                below = jnp.concatenate([split * u, split + (1.0 - split) * u])
                mass = jnp.concatenate([split * weight, (1.0 - split) * weight])
            nodes.append(jnp.broadcast_to(each.icdf(below), (len(below), *model.batch_shape)))
            weights.append(mass)
        return jnp.concatenate(nodes), jnp.concatenate(weights), True

    return Places(places, follow=corner is not None)


def drawn(count: int) -> Places:
    """Draws of both with fixed base noise, the same for the two."""

    def places(model, reference):
        nodes = [each.sample(jax.random.key(0), (count,)) for each in (model, reference)]
        return jnp.concatenate(nodes), jnp.full((), 1.0 / count), True

    return Places(places, follow=True)
