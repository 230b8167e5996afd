"""Transformed observations: a divergence is invariant under a transformation of both."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from numpyro.distributions.transforms import AbsTransform

from predcp._divergences._divergence import DIVERGENCES, Member, members, register_reader
from predcp._divergences._refusals import is_refused, reason


@register_reader(dist.TransformedDistribution)
def _read_transformed(made: Any) -> list[Member]:
    """The distribution that is transformed, with the parameters of the transforms, which must not move."""
    kind = type(made)
    if any(isinstance(each, AbsTransform) for each in made.transforms):
        kind = dist.FoldedDistribution
    if is_refused(kind):
        raise ValueError(
            f"no divergence is known for {kind.__name__} observations: {reason(kind)}; add one with "
            "predcp.register_quadrature or predcp.register_divergence"
        )
    numbers = [jnp.asarray(leaf) for leaf in jax.tree.leaves(made.transforms)]
    return [_held(member, made, numbers) for member in members(made.base_dist)]


def _held(member: Member, made: Any, numbers: list[Any]) -> Member:
    one = next(iter(member.coordinates.values()))
    axes = one.ndim - len(made.batch_shape)
    held = {}
    for place, leaf in enumerate(numbers):
        wide = leaf.reshape(*leaf.shape, *[1] * max(0, one.ndim - made.event_dim - leaf.ndim))
        try:
            held[f"transform_{place}"] = jnp.broadcast_to(wide, one.shape).astype(one.dtype)
        except ValueError:
            raise ValueError(
                f"transforms of {type(made).__name__} observations must have numbers of the shape of the "
                f"batch, got {leaf.shape} for {made.batch_shape}"
            ) from None
    family = transformed(member.family, tuple(held)) if held else member.family
    return Member(family, {**member.coordinates, **held}, made.batch_shape, axes)


@cache
def transformed(family: Any, held: tuple[str, ...]) -> type:
    """The family of fixed transforms of one family; adds its rules."""
    made = type(f"Transformed{family.__name__}", (), {"derived": True})
    for divergence in DIVERGENCES.values():
        if divergence.knows(family):
            rule = divergence.rule(family)
            divergence.add(made, rule._replace(fixed=(*rule.fixed, *held), freed=None))
    return made
