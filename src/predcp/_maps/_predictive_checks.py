"""Checks of a predictive map: its predictions move, and start at the reference."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from predcp._divergences import has_moved
from predcp._support.arrays import concrete
from predcp._support.check import known, refuse_moving_angles


def check_moves(single: Any) -> Sequence[set[str] | None]:
    """Some prediction must depend on the scale, or D is constant."""
    found = single._abstract_members()
    inputs = jax.tree.leaves((single._arrays(), single.x))
    unknown = [None] * len(found)
    if not all(concrete(leaf) for leaf in inputs):
        return unknown
    moving: list[set[str]] = [set() for _ in found]
    # Two scales, because at a single one a model may happen to equal its reference.
    for scale in (1.0, 2.7):
        tau = jnp.asarray(scale, single._dtype)
        moved = jax.vmap(lambda xi, tau=tau: single._coordinates(single.parameters(tau, xi)))(
            single.noise
        )
        shifts = jax.tree.map(lambda here, start: here - start, moved, single._reference())
        for member, shift, names in zip(found, shifts, moving):
            gaps = {name: known(gap) for name, gap in shift.items()}
            if any(gap is None for gap in gaps.values()):
                return unknown
            names.update(name for name, gap in gaps.items() if has_moved(name, gap))
            single.divergence.check_fixed(member.family, shift, names)
            angles = single.divergence.rule(member.family, names).angles
            refuse_moving_angles(member.family, angles, names)
    if not any(moving):
        raise ValueError(
            "the predictions equal the reference's at tau = 1 and 2.7 for every draw: D is "
            "constant in tau (is x all zero, or a layer dead?)"
        )
    return moving


def check_origin(single: Any) -> None:
    """The model must reach the reference as tau goes to 0, or D(0) is not 0."""
    if not all(concrete(leaf) for leaf in jax.tree.leaves(single._arrays())):
        return
    tiny = jnp.asarray(np.finfo(single._dtype).tiny, single._dtype)
    start = jax.vmap(lambda xi: single.parameters(tiny, xi))(single.noise)
    origins = jax.vmap(single._origin)(single.noise)
    for value, origin in zip(jax.tree.leaves(start), jax.tree.leaves(origins)):
        numbers = known(value)
        if numbers is None:
            return
        gap = np.max(np.abs(numbers - np.asarray(origin)), initial=0.0)
        if not gap <= 1e-3 * (1.0 + np.max(np.abs(np.asarray(origin)), initial=0.0)):
            raise ValueError(
                f"parameters(tau, xi) must equal reference as tau goes to 0, but differs by {gap:.3g} "
                "there: the divergence would not start at 0"
            )
