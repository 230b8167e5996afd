"""What a divergence is, and the table of the families of distributions it is known for.

A distribution is described by its *coordinates*, a dictionary of arrays in which small changes are
harmless (locations, logits, log scales). A divergence between a model and its reference is a
function of the reference's coordinates and of the *displacement* of the model's from them, so
that nothing is lost near equality. A displacement is `exp(log_size) * direction`: scales
far outside floating point stay representable.
"""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float
from numpyro.distributions.distribution import ExpandedDistribution, Independent, MaskedDistribution

from predcp._divergences._refusals import reason
from predcp._numerics.log_of_exp import without_overflow
from predcp._numerics.special import Terms, log_abs_sum_and_ratio
from predcp._support.check import known

Coordinates = dict[str, Float[Array, "..."]]
LogSize = Float[Array, "..."]
# The coordinate that says which points of a masked distribution are observed: 1 or 0.
_MASK = "mask"
# What a mean over points is taken per: "trial", "row", or the units that each point stands for.
Per = Any


class Rule(NamedTuple):
    """A divergence for one family, with its derivative along a velocity, both in log space.

    **Arguments**
    - `value`: (reference, direction, log_size) to the terms whose sum is the divergence.
    - `slope`: (reference, direction, log_size, velocity) to the terms of its derivative,
        where the coordinates move with `exp(log_size) * velocity`.
    - `bounded`: whether the divergence stays finite as the displacement grows.
    - `bounded_along`: coordinates along which it does, where it does not along all.
    - `fixed`: coordinates that the model and the reference must share.
    - `nodes`: how many numbers the divergence of one observation passes through (nodes of a
        quadrature), from which maps see how many scales they can take at once.
    - `coarse`: the rule with half the nodes, where it is a quadrature whose error is reported.
    """

    value: Callable[[Coordinates, Coordinates, LogSize], list[Terms]]
    slope: Callable[[Coordinates, Coordinates, LogSize, Coordinates], list[Terms]]
    bounded: bool
    fixed: tuple[str, ...] = ()
    nodes: int = 1
    bounded_along: tuple[str, ...] = ()
    coarse: Any = None

    def bounded_if(self, moving: set[str] | None) -> bool:
        """Whether it stays finite as the coordinates `moving` move (None: all may)."""
        return self.bounded or (moving is not None and moving <= set(self.bounded_along))


class Member(NamedTuple):
    """One factor of an observation distribution.

    **Arguments**: its family; its coordinates; its batch shape, over which a divergence is averaged;
    how many trailing axes of a coordinate belong to one observation (the classes of a softmax).
    """

    family: Any
    coordinates: Coordinates
    batch_shape: tuple[int, ...]
    class_axes: int


# How a class of NumPyro distributions is read.
_READERS: dict[type, Callable[[Any], Member]] = {}


def register_reader(*classes: type) -> Callable[[Callable[[Any], Member]], Callable]:
    """Declare how `classes` of NumPyro distributions are read, where the family is found by reading."""

    def record(reader: Callable[[Any], Member]) -> Callable[[Any], Member]:
        _READERS.update(dict.fromkeys(classes, reader))
        return reader

    return record


def register_family(
    family: Any, *classes: type, class_axes: int = 0
) -> Callable[[Callable[[Any], Coordinates]], Callable[[Any], Coordinates]]:
    """Declare how `classes` of NumPyro distributions are read as coordinates of `family`."""

    def record(coordinates: Callable[[Any], Coordinates]) -> Callable[[Any], Coordinates]:
        register_reader(*classes)(
            lambda made: Member(family, coordinates(made), made.batch_shape, class_axes)
        )
        return coordinates

    return record


def alike(*values: Any) -> list[Array]:
    """Parameters of a distribution as arrays of one shape and one floating-point type.

    A Python number takes the type of the arrays beside it.
    """
    kind = jnp.result_type(*values)
    if not jnp.issubdtype(kind, jnp.floating):
        kind = jnp.result_type(float)
    return list(jnp.broadcast_arrays(*(jnp.asarray(value, kind) for value in values)))


def families() -> set[Any]:
    """Every family that some divergence is known for."""
    every = (kl, reverse_kl, squared_hellinger, jensen_shannon)
    return {family for divergence in every for family in divergence._rules}


class Divergence:
    """A divergence of a model's observation distribution from a reference's.

    Call it on two NumPyro distributions of one family: `kl(p, q)` has the batch shape of the two;
    event dimensions are summed (exact for KL and reverse KL; for squared Hellinger and
    Jensen-Shannon the sum of the coordinate-wise divergences, an upper bound of the joint one).
    """

    def __init__(self, name: str):
        self.name = name
        self._rules: dict[Any, Rule] = {}
        # Compiled programs are kept for the rules they were traced with.
        self.rules_added = 0

    def __repr__(self) -> str:
        return f"predcp.{self.name}"

    def knows(self, family: Any) -> bool:
        """Whether there is a rule for a family."""
        return family in self._rules

    def rule(self, family: Any) -> Rule:
        """The rule for a family, or an error that names those there are."""
        if family not in self._rules:
            names = ", ".join(sorted(other.__name__ for other in self._rules))
            raise ValueError(
                f"divergence {self.name!r} is not known for {family.__name__} observations "
                f"(it is for: {names}); add it with predcp.register_divergence"
            )
        return self._rules[family]

    def check_fixed(self, family: Any, direction: Coordinates) -> None:
        """Refuse a displacement of a coordinate that the rule for the family holds fixed."""
        for name in self.rule(family).fixed:
            numbers = known(direction[name])
            if numbers is not None and np.any(numbers != 0.0):
                raise ValueError(
                    f"divergence {self.name!r} between {family.__name__} observations needs the "
                    f"same {name} in both, but it differs by up to {np.max(np.abs(numbers)):.3g}"
                )

    def coarsened(self) -> "Divergence":
        """The same with half the nodes of every quadrature."""
        made = Divergence(self.name)
        made._rules = {family: rule.coarse or rule for family, rule in self._rules.items()}
        return made

    def add(self, family: Any, rule: Rule) -> None:
        """Add the rule for one family."""
        self._rules[family] = rule
        self.rules_added += 1

    def __call__(self, p: dist.Distribution, q: dist.Distribution) -> Float[Array, "..."]:
        """The divergence of `p` from the reference `q`, one value a batch element."""
        total = None
        for model, reference in zip(members(p), members(q), strict=True):
            if model.family is not reference.family:
                raise ValueError(
                    f"p and q must be of one family, got {model.family.__name__} "
                    f"and {reference.family.__name__}"
                )
            rule = self.rule(model.family)
            direction = {
                name: model.coordinates[name] - reference.coordinates[name]
                for name in model.coordinates
            }
            direction = _held(direction, reference.coordinates)
            self.check_fixed(model.family, direction)
            batch_shape = jnp.broadcast_shapes(model.batch_shape, reference.batch_shape)
            kind = jnp.result_type(*direction.values())
            value = jnp.zeros(batch_shape, kind)
            for log_weight, coefficient in rule.value(
                reference.coordinates, direction, jnp.zeros((), kind)
            ):
                term = jnp.exp(log_weight) * coefficient
                value = value + term.sum(axis=tuple(range(len(batch_shape), term.ndim)))
            total = value if total is None else total + value
        assert total is not None
        return total


def members(distribution: Any) -> list[Member]:
    """The factors of an observation distribution; a tuple, list or dict of them is their product."""
    if isinstance(distribution, dict):
        return [member for name in sorted(distribution) for member in members(distribution[name])]
    if isinstance(distribution, tuple | list):
        return [member for factor in distribution for member in members(factor)]
    if not isinstance(distribution, dist.Distribution):
        raise ValueError(
            "likelihood must return a NumPyro distribution (or a tuple, list or dict of them), "
            f"got {type(distribution).__name__}"
        )
    batch_shape = distribution.batch_shape
    inner: Any = distribution
    masks: list[Any] = []
    while isinstance(inner, Independent | ExpandedDistribution | MaskedDistribution):
        if isinstance(inner, MaskedDistribution):
            masks.append(inner._mask)
        inner = inner.base_dist
    reader = next((_READERS[base] for base in type(inner).__mro__ if base in _READERS), None)
    if reader is not None:
        found = reader(inner)
        summed = distribution.event_shape[: distribution.event_dim - inner.event_dim]
        plates, class_axes = (*batch_shape, *summed), found.class_axes
        spread = {
            name: _spread(array, plates, class_axes) for name, array in found.coordinates.items()
        }
        if masks:
            kept = reduce(jnp.logical_and, map(jnp.asarray, masks))
            kept = kept.reshape(*kept.shape, *[1] * class_axes)
            kept = kept.astype(jnp.result_type(*spread.values()))
            spread[_MASK] = _spread(kept, plates, class_axes)
        return [found._replace(coordinates=spread, batch_shape=batch_shape)]
    names = ", ".join(sorted(family.__name__ for family in families()))
    raise ValueError(
        f"no divergence is known for {type(inner).__name__} observations: {reason(type(inner))} "
        f"(known: {names}); add one with predcp.register_quadrature or predcp.register_divergence"
    )


def _spread(array: Array, plates: tuple[int, ...], class_axes: int) -> Array:
    """A coordinate of every point, also where `expand` has left one for many."""
    classes = array.shape[array.ndim - class_axes :]
    return jnp.broadcast_to(array, (*plates, *classes))


def abstract_members(likelihood: Callable[..., Any], *arguments: Any) -> list[Member]:
    """The factors that `likelihood(*arguments)` has, with the shapes of their coordinates only."""
    found: list[Member] = []

    def record(*traced):
        found.extend(members(likelihood(*traced)))
        return [member.coordinates for member in found]

    shapes = jax.eval_shape(record, *arguments)
    return [member._replace(coordinates=shape) for member, shape in zip(found, shapes)]


def coordinates_of(likelihood: Callable[..., Any], *arguments: Any) -> list[Coordinates]:
    """The coordinates of each factor of `likelihood(*arguments)`, finite where a rate is not."""

    def read(*given):
        return [member.coordinates for member in members(likelihood(*given))]

    return without_overflow(read)(*arguments)


def log_mean_and_elasticity(
    divergence: Divergence,
    found: list[Member],
    reference: list[Coordinates],
    directions: list[Coordinates],
    log_sizes: list[LogSize],
    velocities: list[Coordinates],
    keep: int = 0,
    per: Per = "trial",
    weights: Array | None = None,
) -> tuple[Array, Array]:
    """Log of the mean divergence over points and draws, summed over members; its log elasticity.

    The mean over points is `sum_n w_n D_n / sum_n w_n u_n`, where u_n is the number of units that
    point n stands for.

    **Arguments**
    - the members, and for each the reference's coordinates, the displacement from them and its
        velocity (as in `Rule`, with a leading axis of draws, which `keep=1` leaves alone).
    - `per`: the unit. `"trial"`: u_n is the total count of a binomial or multinomial, 1 for other
        families; `"row"`: 1; an array that broadcasts to the batch shape: u_n itself (an exposure).
    - `weights`: w_n, an array that broadcasts to the batch shape; 1 when None.
    """
    values: list[Terms] = []
    slopes: list[Terms] = []
    draws = jax.tree.leaves(directions)[0].shape[0]
    for member, start, move, size, speed in zip(
        found, reference, directions, log_sizes, velocities
    ):
        rule = divergence.rule(member.family)
        move, speed = _held(move, start), _held(speed, start)
        log_points = _log_units(member, start, move, per, weights)
        for sums, terms in (
            (values, rule.value(start, move, size)),
            (slopes, rule.slope(start, move, size, speed)),
        ):
            for log_weight, coefficient in terms:
                if weights is not None:
                    coefficient = coefficient * _along_points(weights, member, coefficient.ndim)
                sums.append((log_weight - log_points, coefficient))
    log_value, log_elasticity = log_abs_sum_and_ratio(values, slopes, keep)
    return log_value if keep else log_value - math.log(draws), log_elasticity


def _log_units(
    member: Member, start: Coordinates, move: Coordinates, per: Per, weights: Array | None
) -> Array | float:
    """Log of `sum_n w_n u_n` over the points that no mask leaves out."""
    counts, mask = start.get("total_count"), start.get(_MASK)
    if (
        weights is None
        and mask is None
        and (isinstance(per, str) and (per == "row" or counts is None))
    ):
        return math.log(max(1, math.prod(member.batch_shape)))
    units = jnp.ones(member.batch_shape) if isinstance(per, str) else jnp.asarray(per)
    trailing = jax.tree.leaves(move)[0].ndim - 1 - len(member.batch_shape)

    def by_point(array: Array) -> Array:
        """The mean over events and classes, and over draws where the reference has them."""
        inner = array.mean(axis=tuple(range(array.ndim - trailing, array.ndim)))
        return inner.mean(axis=tuple(range(inner.ndim - len(member.batch_shape))))

    if isinstance(per, str) and per == "trial" and counts is not None:
        units = by_point(counts)
    if mask is not None:
        units = units * by_point(mask)
    kind = jnp.result_type(*move.values())
    weighted = units if weights is None else units * weights
    return jnp.log(jnp.sum(jnp.broadcast_to(weighted, member.batch_shape).astype(kind)))


def _held(displacement: Coordinates, start: Coordinates) -> Coordinates:
    """The displacement of the points that a mask keeps: the others stay where they are."""
    if _MASK not in start:
        return displacement
    return {name: array * start[_MASK] for name, array in displacement.items()}


def _along_points(weights: Array, member: Member, rank: int) -> Array:
    """Weights on the axes of points of an array that has draws before and more axes behind them."""
    points = jnp.broadcast_to(weights, member.batch_shape)
    return points.reshape(*points.shape, *[1] * (rank - 1 - points.ndim))


def register_divergence(
    divergence: Divergence,
    distribution: type,
    coordinates: Callable[[Any], Coordinates],
    bounded: bool = False,
) -> Callable[[Callable[[Coordinates, Coordinates], Array]], Callable]:
    """Teach a divergence a new family of NumPyro distributions (a decorator).

    **Arguments**
    - `divergence`: `predcp.kl` or another one.
    - `distribution`: the NumPyro class.
    - `coordinates`: reads a distribution as a dictionary of arrays of its batch shape.
    - `bounded`: whether the divergence stays finite as the displacement grows; the prior is
        then truncated at that bound.

    The decorated function takes the reference's coordinates and the displacement of the model's,
    and returns the divergence; write it so that it is accurate for a small displacement.
    """
    if not isinstance(divergence, Divergence):
        raise ValueError(f"divergence must be one of predcp's divergences, got {divergence!r}")
    register_family(distribution, distribution)(coordinates)

    def record(function: Callable[[Coordinates, Coordinates], Array]):
        divergence.add(distribution, differentiated(function, bounded))
        return function

    return record


def differentiated(function: Callable[[Coordinates, Coordinates], Array], bounded: bool) -> Rule:
    """A rule from a divergence alone, its slope by a forward derivative."""

    def displaced(direction: Coordinates, log_size: LogSize) -> Coordinates:
        return {name: jnp.exp(log_size) * array for name, array in direction.items()}

    def value(reference, direction, log_size):
        return [(jnp.zeros_like(log_size), function(reference, displaced(direction, log_size)))]

    def slope(reference, direction, log_size, velocity):
        _, tangent = jax.jvp(
            lambda displacement: function(reference, displacement),
            (displaced(direction, log_size),),
            (displaced(velocity, log_size),),
        )
        return [(jnp.zeros_like(log_size), tangent)]

    return Rule(value, slope, bounded)


def counted(rule: Rule) -> Rule:
    """The rule of `total_count` independent observations of the same distribution."""

    def times(terms: list[Terms], reference: Coordinates) -> list[Terms]:
        return [(weight, coefficient * reference["total_count"]) for weight, coefficient in terms]

    def value(reference, direction, log_size):
        return times(rule.value(reference, direction, log_size), reference)

    def slope(reference, direction, log_size, velocity):
        return times(rule.slope(reference, direction, log_size, velocity), reference)

    return Rule(value, slope, rule.bounded, (*rule.fixed, "total_count"), rule.nodes)


kl = Divergence("kl")
reverse_kl = Divergence("reverse_kl")
squared_hellinger = Divergence("squared_hellinger")
jensen_shannon = Divergence("jensen_shannon")
