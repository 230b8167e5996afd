"""Mixtures, whose divergences are bounded by those of a component together with its label.

Observing the labels too can only increase a divergence. With weights w and
w_0 and components matched in order,

    KL <= KL(w, w_0) + sum_k w_k KL_k,    H^2 <= H^2(w, w_0) + sum_k sqrt(w_k w_0k) H^2_k;

reverse KL is KL with the two exchanged, and Jensen-Shannon is bounded by `sum_k w_k JS_k` for shared
weights. The bound is exact where the components do not overlap, and at equality.
"""

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array

from predcp._divergences import _categorical  # noqa: F401  (registers the rule of labels)
from predcp._divergences._divergence import (
    Coordinates,
    Divergence,
    LogSize,
    Member,
    Rule,
    jensen_shannon,
    kl,
    members,
    register_reader,
    reverse_kl,
    squared_hellinger,
)
from predcp._numerics.class_sums import class_sum, from_top_class, log_softmax_from_top, top_class
from predcp._numerics.special import Terms, capped_exp

WEIGHTS = "weight_logits"
# The power of the model's weights in those of the components' divergences.
_POWERS: list[tuple[Divergence, float]] = [
    (kl, 1.0),
    (reverse_kl, 0.0),
    (squared_hellinger, 0.5),
    (jensen_shannon, 0.0),
]


def weighted(inner: Rule, power: float, class_axes: int, labels: Rule | None = None) -> Rule:
    """The rule of `sum_k w_k^power w_0k^(1 - power) D_k`.

    **Arguments**
    - `inner`: the rule of one component.
    - `power`: 1 for the model's weights, 0 for the reference's.
    - `class_axes`: trailing axes of one component's coordinates. Weights are on the axis before them.
    - `labels`: the rule of the weights' own divergence, which is then added.
    """

    def parted(coordinates: Coordinates) -> tuple[Array, Coordinates]:
        rest = dict(coordinates)
        logits = rest.pop(WEIGHTS)
        return jnp.squeeze(logits, tuple(range(-class_axes, 0))), rest

    def log_weights(reference, direction, log_size, velocity=None):
        """Logs of the factors of the components, and their derivatives."""
        start, move = parted(reference)[0], parted(direction)[0]
        size = capped_exp(jnp.asarray(log_size, move.dtype)[..., None])
        top = top_class(start + move * size)
        moved = from_top_class(start, top) + from_top_class(move, top) * size
        log_w = log_softmax_from_top(moved)
        log_w0 = log_softmax_from_top(from_top_class(start, top_class(start)))
        found = power * log_w + (1.0 - power) * log_w0
        if velocity is None:
            return found, None
        speed = from_top_class(parted(velocity)[0], top)
        return found, power * (speed - class_sum(jnp.exp(log_w) * speed))

    def wide(array: Array, term: Array, rank: int) -> Array:
        """Numbers per component, reshaped to the axes of a term, which may have class axes after them."""
        return array.reshape(*array.shape, *[1] * max(term.ndim - rank, 0))

    def terms(of_inner: list[Terms], factor: Array, rank: int) -> list[Terms]:
        return [(w + wide(factor, c, rank), c) for w, c in of_inner]

    def sized(log_size: LogSize, direction: Coordinates) -> LogSize:
        """The size of the displacement on the axes of components."""
        return jnp.asarray(log_size, direction[WEIGHTS].dtype)[..., None]

    def rank_of(direction: Coordinates) -> int:
        return max(array.ndim for array in direction.values()) - class_axes

    def value(reference, direction, log_size):
        factor, _ = log_weights(reference, direction, log_size)
        within = inner.value(parted(reference)[1], parted(direction)[1], sized(log_size, direction))
        found = terms(within, factor, rank_of(direction))
        if labels is None:
            return found
        start, move = ({"logits": parted(each)[0]} for each in (reference, direction))
        return [*found, *labels.value(start, move, log_size)]

    def slope(reference, direction, log_size, velocity):
        factor, speed = log_weights(reference, direction, log_size, velocity)
        (_, start), (_, move), (_, rate) = map(parted, (reference, direction, velocity))
        rank, size = rank_of(direction), sized(log_size, direction)
        found = terms(inner.slope(start, move, size, rate), factor, rank)
        if power and speed is not None:
            for w, c in inner.value(start, move, size):
                moved = w + wide(factor + size, c, rank)
                found.append((moved, c * wide(speed, c, rank)))
        if labels is None:
            return found
        start, move, rate = (
            {"logits": parted(each)[0]} for each in (reference, direction, velocity)
        )
        return [*found, *labels.slope(start, move, log_size, rate)]

    bounded = inner.bounded and (labels is None or labels.bounded)
    along = (WEIGHTS,) if labels is not None and labels.bounded else ()
    return Rule(value, slope, bounded, inner.fixed, inner.nodes, along)


@cache
def mixture(family: Any, class_axes: int) -> type:
    """The family of mixtures of one family; adds its rules."""
    made = type(f"Mixture{family.__name__}", (), {"derived": True})
    for divergence, power in _POWERS:
        if divergence.knows(family):
            rule, labels = divergence.rule(family), divergence.rule(dist.Categorical)
            held = rule.fixed
            if divergence is jensen_shannon:
                labels, held = None, (*held, WEIGHTS)
            whole, half = (
                weighted(one, power, class_axes, labels)._replace(fixed=held)
                for one in (rule, rule.coarse or rule)
            )
            divergence.add(made, whole._replace(coarse=half if rule.coarse else None))
    return made


@register_reader(dist.MixtureSameFamily)
def _read_mixture(mixed: Any) -> Member:
    (component,) = members(mixed.component_distribution)
    return _mixed(mixed, component, len(component.batch_shape) - 1)


@register_reader(dist.MixtureGeneral)
def _read_general_mixture(mixed: Any) -> Member:
    parts = [member for each in mixed.component_distributions for member in members(each)]
    kinds = {part.family for part in parts}
    if len(kinds) > 1 or len(parts) > mixed.mixture_size:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(
            f"components of a mixture must be of one family, got {names}: their divergences are bounded "
            "component by component"
        )
    place = len(mixed.batch_shape)
    stacked = {
        name: jnp.stack(
            [
                jnp.broadcast_to(
                    part.coordinates[name],
                    (*mixed.batch_shape, *part.coordinates[name].shape[len(part.batch_shape) :]),
                )
                for part in parts
            ],
            place,
        )
        for name in parts[0].coordinates
    }
    return _mixed(mixed, parts[0]._replace(coordinates=stacked), place)


def _mixed(mixed: Any, component: Member, place: int) -> Member:
    """A mixture from its components' coordinates, whose axis `place` is that of the components."""
    labels = mixed.mixing_distribution
    if isinstance(labels, dist.CategoricalProbs):
        logits = jnp.log(jnp.asarray(labels.probs))
    else:
        logits = jnp.asarray(labels.logits)
    one = next(iter(component.coordinates.values()))
    size, axes = mixed.mixture_size, one.ndim - place - 1
    logits = jnp.broadcast_to(logits, (*mixed.batch_shape, size)).astype(one.dtype)
    logits = logits.reshape(*logits.shape, *[1] * axes)
    coordinates = {
        name: jnp.broadcast_to(array, (*mixed.batch_shape, size, *array.shape[place + 1 :]))
        for name, array in component.coordinates.items()
    }
    family = mixture(component.family, axes)
    return Member(family, {WEIGHTS: logits, **coordinates}, mixed.batch_shape, 1 + axes)
