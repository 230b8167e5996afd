"""Divergences, and the table of the families of distributions each is known for.

A distribution is described by its *coordinates*, a dictionary of arrays without constraints
(locations, logits, log scales). A divergence between a model and its reference is a function of the
reference's coordinates and of the model's *displacement* from them, so that no digits are lost near
equality. A displacement is `exp(log_size) * direction`, which represents scales far outside
floating point.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
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
# The unit of a mean over points: "trial", "row", or an array of units per point.
Per = Any


class Rule(NamedTuple):
    """A divergence for one family, with its derivative along a velocity, both in log space.

    **Arguments**
    - `value`: (reference, direction, log_size) to the terms whose sum is the divergence.
    - `slope`: (reference, direction, log_size, velocity) to the terms of its derivative,
        where the coordinates move with `exp(log_size) * velocity`.
    - `bounded`: whether the divergence stays finite as the displacement grows.
    - `bounded_along`: the coordinates along which it stays finite, if not along all.
    - `fixed`: coordinates that the model and the reference must share.
    - `nodes`: how many intermediate numbers one observation needs (nodes of a quadrature); maps
        choose from it how many scales to evaluate at once.
    - `tabled_along`: coordinates that need no nodes of their own where no others move.
    - `coarse`: the rule with half the nodes, for the error estimate of a quadrature.
    - `freed`: a coordinate, and the rule that is used if that coordinate moves too.
    - `angles`: coordinates that go round a circle, which the scale of a map must not move.
    """

    value: Callable[[Coordinates, Coordinates, LogSize], list[Terms]]
    slope: Callable[[Coordinates, Coordinates, LogSize, Coordinates], list[Terms]]
    bounded: bool
    fixed: tuple[str, ...] = ()
    nodes: int = 1
    bounded_along: tuple[str, ...] = ()
    coarse: Any = None
    freed: Any = None
    angles: tuple[str, ...] = ()
    tabled_along: tuple[str, ...] = ()

    def nodes_if(self, moving: Set[str] | None) -> int:
        """How many numbers one observation needs if the coordinates `moving` move (None: any may)."""
        return 1 if moving is not None and moving <= set(self.tabled_along) else self.nodes

    def bounded_if(self, moving: set[str] | None) -> bool:
        """Whether it stays finite as the coordinates `moving` grow (None: any may)."""
        return self.bounded or (moving is not None and moving <= set(self.bounded_along))


class Member(NamedTuple):
    """One factor of an observation distribution.

    **Arguments**: its family; its coordinates; its batch shape, over which a divergence is averaged;
    how many trailing axes of a coordinate belong to one observation (the classes of a softmax); the
    coordinates that move, None where that is not known.
    """

    family: Any
    coordinates: Coordinates
    batch_shape: tuple[int, ...]
    class_axes: int
    moving: frozenset[str] | None = None


# One factor, or several whose divergences add up.
Reader = Callable[[Any], Member | list[Member]]
# How a class of NumPyro distributions is read.
_READERS: dict[type, Reader] = {}
# Counts are summed up to the largest total count; up to this number where that is traced.
_MOST_TRIALS = ContextVar("most_trials", default=128)


@contextmanager
def trials_up_to(count: int | None) -> Iterator[None]:
    """Sum counts up to this total where total counts are traced; None changes nothing."""
    token = _MOST_TRIALS.set(_MOST_TRIALS.get() if count is None else count)
    try:
        yield
    finally:
        _MOST_TRIALS.reset(token)


def most_trials(total_count: Any) -> int:
    """The largest total count, or where it is traced the number set by `trials_up_to`."""
    numbers = known(total_count)
    return _MOST_TRIALS.get() if numbers is None else int(np.max(numbers, initial=1))


def register_reader(*classes: type) -> Callable[[Reader], Reader]:
    """Declare a function that reads `classes` of NumPyro distributions and finds their family."""

    def record(reader: Reader) -> Reader:
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
    kind = jnp.result_type(float, *values)
    return list(jnp.broadcast_arrays(*(jnp.asarray(value, kind) for value in values)))


def families() -> set[Any]:
    """Every family that some divergence is known for."""
    return {family for divergence in DIVERGENCES.values() for family in divergence._rules}


class Divergence:
    """A divergence of a model's observation distribution from a reference's.

    Call it on two NumPyro distributions of one family: `kl(p, q)` has the batch shape of the two;
    event dimensions are summed (exact for KL and reverse KL; for squared Hellinger and
    Jensen-Shannon the sum of the coordinate-wise divergences, an upper bound of the joint one).

    A parameter that a rule needs to be the same in both (`df` of Student-t observations) gives an error
    where it differs, and NaN inside of `jax.jit`, where numbers are not known.
    """

    # Counts the rules: a compiled program is valid only for those it was traced with.
    trace_key = 0

    def __init__(self, name: str):
        self.name = name
        self._rules: dict[Any, Rule] = {}

    def __repr__(self) -> str:
        return f"predcp.{self.name}"

    def knows(self, family: Any) -> bool:
        """Whether there is a rule for a family."""
        return family in self._rules

    def rule(self, family: Any, moving: Set[str] | None = None) -> Rule:
        """The rule for a family whose coordinates `moving` move; an error lists the known families."""
        if family not in self._rules:
            names = ", ".join(sorted(other.__name__ for other in self._rules))
            raise ValueError(
                f"divergence {self.name!r} is not known for {family.__name__} observations "
                f"(it is for: {names}); add it with predcp.register_divergence"
            )
        rule = self._rules[family]
        return rule.freed[1] if rule.freed and moving and rule.freed[0] in moving else rule

    def check_fixed(
        self, family: Any, direction: Mapping[str, Any], moving: Set[str] | None = None
    ) -> None:
        """Refuse a displacement of a coordinate that the rule for the family holds fixed."""
        for name in self.rule(family, moving).fixed:
            numbers = known(direction[name])
            if numbers is not None and np.any(numbers != 0.0):
                raise ValueError(
                    f"divergence {self.name!r} between {family.__name__} observations needs the "
                    f"same {name} in both, but it differs by up to {np.max(np.abs(numbers)):.3g}"
                )

    def coarsened(self) -> "Divergence":
        """The same with half the nodes of every quadrature."""
        made = Divergence(self.name)
        made._rules = {
            family: rule.coarse
            or rule._replace(freed=rule.freed and (rule.freed[0], rule.freed[1].coarse))
            for family, rule in self._rules.items()
        }
        return made

    def add(self, family: Any, rule: Rule) -> None:
        """Add the rule for one family."""
        self._rules[family] = rule
        self.trace_key += 1

    def __call__(self, p: dist.Distribution, q: dist.Distribution) -> Float[Array, "..."]:
        """The divergence of `p` from the reference `q`, one value per batch element."""
        total = None
        for model, reference in zip(members(p), members(q), strict=True):
            if model.family is not reference.family:
                raise ValueError(
                    f"p and q must be of one family, got {model.family.__name__} "
                    f"and {reference.family.__name__}"
                )
            direction = {
                name: model.coordinates[name] - reference.coordinates[name]
                for name in model.coordinates
            }
            direction = _held(direction, reference.coordinates)
            moving = _moving(direction)
            rule = self.rule(model.family, moving)
            self.check_fixed(model.family, direction, moving)
            batch_shape = jnp.broadcast_shapes(model.batch_shape, reference.batch_shape)
            kind = jnp.result_type(*direction.values())
            value = jnp.zeros(batch_shape, kind)
            for log_weight, coefficient in rule.value(
                reference.coordinates, direction, jnp.zeros((), kind)
            ):
                term = jnp.exp(log_weight) * coefficient
                value = value + term.sum(axis=tuple(range(len(batch_shape), term.ndim)))
            for name in (each for each in rule.fixed if known(direction[each]) is None):
                gap = beyond_rounding(direction[name], reference.coordinates[name])
                moved = jnp.any(gap != 0.0, axis=tuple(range(len(batch_shape), gap.ndim)))
                value = jnp.where(moved, jnp.nan, value)
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
    pairs = 0
    while isinstance(inner, _WRAPPERS):
        pairs += type(inner).__name__.startswith("Interval")
        if isinstance(inner, MaskedDistribution):
            masks.append(inner._mask)
        inner = inner.base_dist
    reader = next((_READERS[base] for base in type(inner).__mro__ if base in _READERS), None)
    if reader is not None:
        found = reader(inner)
        # For interval censoring a pair of limits is one observation.
        summed = distribution.event_shape[: distribution.event_dim - inner.event_dim - pairs]
        plates = (*batch_shape, *summed)
        return [
            _over_plates(member, batch_shape, plates, masks)
            for member in (found if isinstance(found, list) else [found])
        ]
    names = ", ".join(sorted(family.__name__ for family in families()))
    raise ValueError(
        f"no divergence is known for {type(inner).__name__} observations: {reason(type(inner))} "
        f"(known: {names}); add one with predcp.register_quadrature or predcp.register_divergence"
    )


# Wrappers that are removed. For a censored observation, the uncensored outcome is predicted.
_WRAPPERS = (
    Independent,
    ExpandedDistribution,
    MaskedDistribution,
    *(
        getattr(dist, f"{side}CensoredDistribution")
        for side in ("Left", "Right", "Interval")
        if hasattr(dist, f"{side}CensoredDistribution")
    ),
)


def _over_plates(
    found: Member, batch_shape: tuple[int, ...], plates: tuple[int, ...], masks: list[Any]
) -> Member:
    """A factor with its coordinates broadcast to every point, and its mask."""
    class_axes = found.class_axes
    spread = {name: _spread(array, plates, class_axes) for name, array in found.coordinates.items()}
    if masks:
        kept = reduce(jnp.logical_and, map(jnp.asarray, masks))
        kept = kept.reshape(*kept.shape, *[1] * class_axes)
        kept = kept.astype(jnp.result_type(*spread.values()))
        spread[_MASK] = _spread(kept, plates, class_axes)
    return found._replace(coordinates=spread, batch_shape=batch_shape)


def _spread(array: Array, plates: tuple[int, ...], class_axes: int) -> Array:
    """A coordinate broadcast to every point (`expand` keeps one value for many points)."""
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
    log_shares: Array | None = None,
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
    - `log_shares`: logs of the weights of the draws, which add up to 1; equal weights when None. With
        `keep=1`, values include them.
    """
    values: list[Terms] = []
    slopes: list[Terms] = []
    draws = jax.tree.leaves(directions)[0].shape[0]
    log_draws = math.log(draws) if log_shares is None and not keep else 0.0
    for member, start, move, size, speed in zip(
        found, reference, directions, log_sizes, velocities
    ):
        rule = divergence.rule(member.family, member.moving)
        move, speed = _held(move, start), _held(speed, start)
        log_points = _log_units(member, start, move, per, weights)
        for sums, terms in (
            (values, rule.value(start, move, size)),
            (slopes, rule.slope(start, move, size, speed)),
        ):
            for log_weight, coefficient in terms:
                if weights is not None:
                    coefficient = coefficient * _along_points(weights, member, coefficient.ndim)
                if log_shares is not None:
                    own = log_shares.astype(coefficient.dtype)
                    own = own.reshape(-1, *[1] * (coefficient.ndim - 1))
                    # One weight for all points: terms that grow as a power, which small shares end.
                    if jnp.ndim(log_weight) == 0:
                        coefficient = coefficient * jnp.exp(own)
                    else:
                        log_weight = log_weight + own
                sums.append((log_weight - log_points, coefficient))
    log_value, log_elasticity = log_abs_sum_and_ratio(values, slopes, keep)
    return log_value - log_draws, log_elasticity


def _log_units(
    member: Member, start: Coordinates, move: Coordinates, per: Per, weights: Array | None
) -> Array | float:
    """Log of `sum_n w_n u_n` over the points that are not masked."""
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


def _moving(displacement: Coordinates) -> set[str]:
    """Names of the coordinates that may move."""
    return {name for name, array in displacement.items() if has_moved(name, known(array))}


def has_moved(name: str, gap: np.ndarray | None) -> bool:
    """Whether a coordinate may have moved; one that is a sum of others has their rounding."""
    if gap is None:
        return True
    rounding = 64.0 * np.finfo(gap.dtype).eps if name == "log_mean" else 0.0
    return bool(np.any(np.abs(gap) > rounding))


def beyond_rounding(gap: Array, start: Array) -> Array:
    """The difference from `start`, 0 where that is rounding: programs may compute one number twice."""
    allowed = 64.0 * jnp.finfo(jnp.result_type(float, gap)).eps * jnp.maximum(1.0, jnp.abs(start))
    return jnp.where(jnp.abs(gap) <= allowed, 0.0, gap)


def _held(displacement: Coordinates, start: Coordinates) -> Coordinates:
    """The displacement, 0 at masked points."""
    if _MASK not in start:
        return displacement
    return {name: array * start[_MASK] for name, array in displacement.items()}


def _along_points(weights: Array, member: Member, rank: int) -> Array:
    """Weights reshaped to the axes of points, for an array with draws before and other axes after them."""
    points = jnp.broadcast_to(weights, member.batch_shape)
    return points.reshape(*points.shape, *[1] * (rank - 1 - points.ndim))


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
DIVERGENCES = {each.name: each for each in (kl, reverse_kl, squared_hellinger, jensen_shannon)}


def register_rules(family: Any, **rules: Rule) -> None:
    """Add the rules of one family, by name of the divergence."""
    for name, rule in rules.items():
        DIVERGENCES[name].add(family, rule)
