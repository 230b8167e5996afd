"""Quadrature in place of draws, where the predictor of each row is linear in standard normal noise.

The predictor of a row is then normal, however many effects it has, and the divergence of the row is an
integral over one number. Gauss-Hermite nodes give it almost exactly. Draws do not for rare counts: a few
large rates make up their divergence, and few draws have them.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from predcp._numerics.dependence import Origin, dependencies
from predcp._support.arrays import concrete
from predcp._support.compiled import compiled

# More nodes change nothing; with a reference for each draw, there are nodes for each of them.
_MOST_NODES, _MOST_NODES_BY_DRAW = 64, 32
_MOST_ELEMENTS = 2**23
# Largest number of noise terms: for directions that stay, and for those of every evaluation.
_MOST_FIXED, _MOST_MOVING = 2048, 64
_BLOCK = 32
# Nodes of a bounded divergence: the largest; the log distance of neighbours times the root of their number.
_FARTHEST, _SPACING = 6.5, 1.8


class RowNodes(NamedTuple):
    """What the predictors of rows are: how many nodes they get, and of what their size depends.

    **Arguments**
    - `per_row`: nodes of each row.
    - `bounded`: whether the divergence is, so that it changes near 0 only where the scale is large.
    - `by_draw`: whether the spread of the predictors depends on the draw (on the rest of its noise).
    - `draws`: over how many draws the nodes are averaged (1 if all have one reference and spread).
    """

    per_row: int
    bounded: bool
    by_draw: bool
    draws: int


def halved(nodes: RowNodes | None) -> RowNodes | None:
    """Half the nodes, to see what they leave out."""
    return nodes and nodes._replace(per_row=max(2, nodes.per_row // 4 * 2))


class RowSizes(NamedTuple):
    """Mean and standard deviation of each moving coordinate at scale 1, with a leading axis of draws."""

    mean: Any
    spread: Any


def row_nodes(single: Any, count: int) -> tuple[RowNodes, RowSizes | None] | str:
    """How the rows of a map are integrated, or why they cannot be.

    **Arguments**: a `PredictiveComplexity`; the number of nodes.

    **Returns** the nodes, and the sizes of the predictors if they depend on nothing that may change.
    """
    if single.power is None or single.moving is None:
        return "the predictions do not move as a power of the scale"
    one = jax.tree.map(lambda leaf: leaf[0], single.noise)
    normal, other = single._split_noise(one)
    size = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(normal))
    if not size or not all(_is_float(leaf) for leaf in jax.tree.leaves(normal)):
        return "there is no standard normal noise"
    flags = iter(single.moving)
    for member in single._abstract_members():
        moving = sum(next(flags) for _ in member.coordinates)
        if moving > 1 or (moving and member.class_axes):
            return f"a row of {member.family.__name__} observations moves in several coordinates"
    labels = _labels(single, normal, other)
    if "normal" in labels:
        return "the predictors are not linear in the noise, or the reference has it too"
    by_draw, given = "other" in labels, "given" in labels
    known = all(map(concrete, jax.tree.leaves((single.x, single.noise))))
    shared = not callable(single.reference) or all(single.fixed_reference or (False,))
    draws = single._count if by_draw or not shared else 1
    most = _MOST_NODES if draws == 1 else _MOST_NODES_BY_DRAW
    # An even number, because a node at 0 would not see the effect.
    count = (1 + single.bounded) * min(count + count % 2, most // (1 + single.bounded))
    nodes = RowNodes(count, single.bounded, by_draw, draws)
    rows = max(math.prod(leaf.shape) for leaf in _coordinate_shapes(single))
    if nodes.draws > 1 and nodes.draws * nodes.per_row * rows > _MOST_ELEMENTS:
        return "there are too many rows for nodes at each draw"
    if known and not given and size <= _MOST_FIXED:
        with jax.ensure_compile_time_eval():
            sizes = _fixed_moments(
                single._with_given(_feasible(single._given())), by_draw, _direction
            )
        if all(np.all(np.isfinite(np.asarray(leaf))) for leaf in jax.tree.leaves(sizes)):
            return nodes, sizes
    if size > _MOST_MOVING:
        return f"there are more than {_MOST_MOVING} noise terms, with sizes that may change"
    return nodes, None


def _labels(single: Any, normal: PyTree, other: PyTree) -> frozenset[str]:
    """What the directions of the coordinates depend on: "normal", "other" or "given"."""

    def change(normal: PyTree, other: PyTree, given: PyTree, speed: PyTree) -> Any:
        path = lambda z: _direction(single._with_given(given), z, other)  # noqa: E731
        start = jax.tree.map(jnp.zeros_like, normal)
        return jax.jvp(path, (normal,), (speed,))[1], path(start)

    def start(zero: Array, normal: PyTree, other: PyTree) -> Any:
        return single._coordinates(single._origin_at(zero, single._join_noise(normal, other)))

    inputs = {"normal": normal, "other": other, "given": single._given(), "speed": normal}
    found = jax.tree.leaves(
        dependencies(change, inputs), is_leaf=lambda leaf: isinstance(leaf, Origin)
    )
    labels = frozenset().union(*(origin.labels for origin in found)) - {"speed"}
    at_zero = {"zero": jnp.zeros((), single._dtype), "normal": normal, "other": other}
    found = jax.tree.leaves(
        dependencies(start, at_zero, ["zero"]), is_leaf=lambda leaf: isinstance(leaf, Origin)
    )
    return labels | {"normal"} if any("normal" in each.labels for each in found) else labels


def _direction(single: Any, normal: PyTree, other: PyTree) -> list[Array]:
    """Displacements of the moving coordinates at scale 1, from their derivative in log tau."""
    xi = single._join_noise(normal, other)

    def at(log_tau: Array) -> list[Array]:
        leaves = jax.tree.leaves(single._coordinates(single.parameters(jnp.exp(log_tau), xi)))
        return [leaf for leaf, moves in zip(leaves, single.moving) if moves]

    zero = jnp.zeros((), single._dtype)
    speed = jax.jvp(at, (zero,), (jnp.ones_like(zero),))[1]
    return [leaf / float(single.power[0]) for leaf in speed]


def _coordinate_shapes(single: Any) -> list[Any]:
    leaves = jax.tree.leaves([member.coordinates for member in single._abstract_members()])
    return [leaf for leaf, moves in zip(leaves, single.moving) if moves]


Direction = Callable[[Any, PyTree, PyTree], PyTree]


def noise_moments(single: Any, direction: Direction) -> RowSizes:
    """Means and standard deviations of what is linear in the noise of a map with nodes.

    **Arguments**: `direction`, from the map, the normal noise of one draw and the rest of it to arrays.
    """
    if single.sizes is None:
        return _moments(single, single.nodes.by_draw, direction)
    # They depend on nothing that is traced.
    with jax.ensure_compile_time_eval():
        known = single._with_given(_feasible(single._given()))
        return _fixed_moments(known, single.nodes.by_draw, direction)


def row_sizes(single: Any, by_draw: bool) -> RowSizes:
    """Mean and spread of the moving coordinates at scale 1, for the first draw or for each."""
    return _moments(single, by_draw, _direction)


@compiled(1, 2)
def _fixed_moments(single: Any, by_draw: bool, direction: Direction) -> RowSizes:
    return _moments(single, by_draw, direction)


def _moments(single: Any, by_draw: bool, direction: Direction) -> RowSizes:
    normal, other = single._split_noise(single.noise)
    normal = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), normal)
    flat, restore = ravel_pytree(normal)
    units = jnp.eye(flat.size, dtype=flat.dtype)

    def one(other: PyTree) -> RowSizes:
        mean, change = jax.linearize(lambda z: direction(single, restore(z), other), flat)
        if flat.size <= _MOST_MOVING:
            return RowSizes(mean, jax.tree.map(_norm, jax.vmap(change)(units)))
        blocks = jnp.pad(units, ((0, -flat.size % _BLOCK), (0, 0))).reshape(-1, _BLOCK, flat.size)
        parts = jax.lax.map(lambda rows: jax.tree.map(_norm, jax.vmap(change)(rows)), blocks)
        return RowSizes(mean, jax.tree.map(_norm, parts))

    if by_draw:
        return jax.lax.map(one, other)
    found = one(jax.tree.map(lambda leaf: leaf[0], other))
    return jax.tree.map(lambda leaf: leaf[None], found)


def _norm(parts: Float[Array, "parts ..."]) -> Float[Array, "..."]:
    """Root of the sum of squares over the leading axis, safe from overflow and with slope 0 at 0."""
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(parts), axis=0))
    unit = jnp.where(largest > 0.0, largest, 1.0)
    total = jnp.sum((parts / unit) ** 2, axis=0)
    return jnp.where(total > 0.0, unit * jnp.sqrt(jnp.where(total > 0.0, total, 1.0)), 0.0)


def _nodes_and_weights(count: int, bounded: bool) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a standard normal: those of Gauss and Hermite, or at equal log distances.

    The divergence of a coin with a large effect changes near 0 only, between the nodes of the former.
    """
    if not bounded:
        places, weights = np.polynomial.hermite_e.hermegauss(count)
        return places, weights / weights.sum()
    half = count // 2
    side = _FARTHEST * np.exp(-_SPACING / math.sqrt(half) * np.arange(half))
    weights = side * np.exp(-0.5 * side**2)
    weights = np.concatenate([weights, weights]) / (2.0 * weights.sum())
    places = np.concatenate([-side, side])
    # With the variance of a standard normal small effects are exact.
    return places / math.sqrt(np.sum(weights * places**2)), weights


def directions_at_nodes(
    nodes: RowNodes, sizes: RowSizes, like: PyTree, moving: tuple[bool, ...]
) -> tuple[PyTree, Float[Array, " nodes"]]:
    """Displacements at the nodes of each draw, in the structure of the coordinates; logs of the weights."""
    places, weights = _nodes_and_weights(nodes.per_row, nodes.bounded)
    log_weights = np.log(weights) - math.log(nodes.draws)
    leaves, structure = jax.tree.flatten(like)
    own = iter(zip(sizes.mean, sizes.spread))
    count = nodes.draws * nodes.per_row
    made = []
    for leaf, moves in zip(leaves, moving):
        if not moves:
            made.append(jnp.zeros((count, *[1] * leaf.ndim), leaf.dtype))
            continue
        mean, spread = next(own)
        shape = (1, nodes.per_row, *[1] * (mean.ndim - 1))
        at = mean[:, None] + jnp.asarray(places, mean.dtype).reshape(shape) * spread[:, None]
        at = jnp.broadcast_to(at, (nodes.draws, *at.shape[1:]))
        made.append(at.reshape(count, *at.shape[2:]))
    return jax.tree.unflatten(structure, made), jnp.asarray(np.tile(log_weights, nodes.draws))


def for_each_node(nodes: RowNodes, reference: PyTree, like: PyTree) -> PyTree:
    """The reference of each draw, repeated for its nodes; `like`, that of one draw."""

    def repeated(leaf: Array, one: Array) -> Array:
        return jnp.repeat(leaf, nodes.per_row, axis=0) if leaf.ndim > one.ndim else leaf

    return reference if nodes.draws == 1 else jax.tree.map(repeated, reference, like)


def _feasible(given: PyTree) -> PyTree:
    """The given values, ones in place of those that are not known."""
    return jax.tree.map(
        lambda leaf: leaf if concrete(leaf) else jnp.ones(leaf.shape, leaf.dtype), given
    )


def _is_float(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)
