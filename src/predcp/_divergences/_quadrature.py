"""Divergences of families without a closed form, by quadrature or by fixed Monte Carlo.

With densities p of the model and q of the reference and t = log q / p, every divergence is the
integral of a non-negative function of p and q, and so `E_p g + E_q g` with that function divided by
p + q. The nodes are quantiles of both distributions, so they move with them; counts are summed, and angles
integrated over the circle. Derivatives are taken of the densities at fixed nodes. Where there are no
quantiles, the nodes are draws of both.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.nn import sigmoid
from jaxtyping import Array
from numpyro.distributions import constraints

from predcp._divergences import _bernoulli as coins
from predcp._divergences._closed_form import closed_form
from predcp._divergences._divergence import (
    Coordinates,
    Divergence,
    Member,
    alike,
    jensen_shannon,
    kl,
    register_family,
    register_reader,
    reverse_kl,
    squared_hellinger,
)
from predcp._numerics.quadrature_nodes import Places, around, counted, quantiles
from predcp._numerics.special import Terms, expm1_minus, fair_coin_divergence

Build = Callable[[Coordinates], dist.Distribution]

# Each divergence's integrand: the form for t near 0 (smooth at 0), the form for other t, and whether
# the divergence is bounded.
_PARTS: list[tuple[Divergence, Callable, Callable, bool]] = [
    (kl, lambda a, b, t: jnp.exp(a) * expm1_minus(t), coins.kl_part, False),
    (reverse_kl, lambda a, b, t: jnp.exp(b) * expm1_minus(-t), coins.reversed_kl_part, False),
    (
        squared_hellinger,
        lambda a, b, t: 0.5 * jnp.exp(a) * jnp.expm1(0.5 * t) ** 2,
        coins.hellinger_part,
        True,
    ),
    (
        jensen_shannon,
        lambda a, b, t: 0.5 * (jnp.exp(a) + jnp.exp(b)) * fair_coin_divergence(t),
        coins.jensen_shannon_part,
        True,
    ),
]


def held_exp(x: Array) -> Array:
    """`exp(x)` with x clipped to the range in which a log density has digits."""
    most = -0.7 * math.log(float(jnp.finfo(x.dtype).eps))
    return jnp.exp(jnp.clip(x, -most, most))


# By constraint of a parameter: the prefix of its coordinate, the function to it, the inverse.
_ITSELF = ("", lambda x: x, lambda x: x)
_LOGIT = ("logit_", lambda x: jnp.log(x) - jnp.log1p(-x), sigmoid)
READ: list[tuple[Any, tuple[str, Callable[[Array], Array], Callable[[Array], Array]]]] = [
    (constraints.real, _ITSELF),
    (constraints.circular, _ITSELF),
    (constraints.nonnegative_integer, _ITSELF),
    (constraints.positive_integer, _ITSELF),
    (constraints.positive, ("log_", jnp.log, held_exp)),
    (constraints.unit_interval, _LOGIT),
    (constraints.open_interval(0.0, 1.0), _LOGIT),
]


def register_quadrature(
    distribution: type[dist.Distribution],
    counts: int | None = None,
    fixed: Sequence[str] = (),
    nodes: int = 161,
    corner: str | None = None,
) -> None:
    """Teach all four divergences a univariate family of NumPyro distributions, by quadrature.

    `predcp.diagnose` reports the error, the change with half the nodes.

    **Arguments**
    - `distribution`: a NumPyro class with a log density and, unless it is a count or an angle,
        quantiles (`icdf`). Its parameters must be real, positive, probabilities or whole numbers.
    - `corner`: the parameter at which the log density has a corner, as `loc` of a Laplace.
    - `counts`: for a count, the largest one that is summed.
    - `fixed`: parameters that must not move; whole numbers never may.
    - `nodes`: how many quantiles are taken of each of the two distributions, an odd number.
    """
    if not (isinstance(distribution, type) and issubclass(distribution, dist.Distribution)):
        raise ValueError(f"distribution must be a NumPyro class, got {distribution!r}")
    if nodes < 5 or nodes % 2 == 0:
        raise ValueError(f"nodes must be an odd number of at least 5, got {nodes}")
    if counts is not None and counts < 1:
        raise ValueError(f"counts must be at least 1, got {counts}")
    support = distribution.support
    circular = support is constraints.circular
    discrete = getattr(support, "is_discrete", False) is True or counts is not None
    if discrete and counts is None:
        raise ValueError(f"{distribution.__name__} is a count: say up to which one with counts=")
    if not (discrete or circular) and distribution.icdf is dist.Distribution.icdf:
        raise ValueError(
            f"{distribution.__name__} has no quantiles (icdf) in NumPyro: write its divergence with "
            "predcp.register_divergence"
        )
    readers, whole = {}, []
    for name, constraint in distribution.arg_constraints.items():
        found = next((read for known, read in READ if same(known, constraint)), None)
        if found is None:
            raise ValueError(
                f"parameter {name} of {distribution.__name__} is {constraint}: quadrature needs real "
                "numbers, positive ones, probabilities or whole numbers; write the divergence with "
                "predcp.register_divergence"
            )
        readers[name] = found
        if getattr(constraint, "is_discrete", False) is True:
            whole.append(name)
    if corner is not None and corner not in readers:
        raise ValueError(f"corner is {corner!r}, but the parameters are {list(readers)}")
    unknown = set(fixed) - set(readers)
    if unknown:
        raise ValueError(f"fixed names {sorted(unknown)}, but the parameters are {list(readers)}")

    def coordinates(made: Any) -> Coordinates:
        values = alike(*(getattr(made, name) for name in readers))
        return {
            prefix + name: read(value)
            for (name, (prefix, read, _)), value in zip(readers.items(), values)
        }

    def build(found: Coordinates) -> dist.Distribution:
        given = {name: back(found[prefix + name]) for name, (prefix, _, back) in readers.items()}
        return distribution(**given, validate_args=False)

    register_family(distribution, distribution)(coordinates)
    held = tuple(readers[name][0] + name for name in (*fixed, *whole))
    moving = tuple(p + name for name, (p, _, _) in readers.items() if p + name not in held)
    places = {
        share: counted(counts // share)
        if counts is not None
        else around(nodes // share)
        if circular
        else quantiles((nodes - 1) // share + 1, attrgetter(corner) if corner else None)
        for share in (1, 2)
    }
    size = 2 * nodes if counts is None else counts
    angles = tuple(
        readers[name][0] + name
        for name, constraint in distribution.arg_constraints.items()
        if circular and constraint in (constraints.real, constraints.circular)
    )
    add_rules(distribution, build, places, moving, held, size, angles=angles)


def add_rules(
    family: Any,
    build: Build,
    places: dict[int, Places],
    moving: tuple[str, ...],
    fixed: tuple[str, ...],
    size: int,
    event_axes: int = 0,
    angles: tuple[str, ...] = (),
) -> None:
    """Add the rules of a family whose divergences are sums over nodes.

    **Arguments**: the family; coordinates to a distribution; by share (1, and 2 for half), the nodes;
    names of the coordinates that move and of those that must not; the number of nodes; 1 for draws of
    events, whose coordinates have one more axis; names of coordinates that go round a circle.
    """
    follow = places[1].follow
    for divergence, near, far, bounded in _PARTS:
        whole, half = (
            closed_form(
                _formula(build, found, near, far, event_axes, follow),
                moving,
                bounded,
                event_axes=event_axes,
                fixed=fixed,
                nodes=size,
                near_formula=_formula(build, found, near, far, event_axes),
                # Up to there the second derivative is used, with nodes that stay.
                near=1e-3 if follow else 0.2,
                length=_length(build, found, event_axes),
            )
            for found in places.values()
        )
        divergence.add(family, whole._replace(coarse=half, angles=angles))


TRUNCATED = (
    dist.LeftTruncatedDistribution,
    dist.RightTruncatedDistribution,
    dist.TwoSidedTruncatedDistribution,
    *(
        getattr(dist, f"{side}TruncatedGamma")
        for side in ("Left", "Right", "TwoSided")
        if hasattr(dist, f"{side}TruncatedGamma")
    ),
)


@register_reader(*TRUNCATED)
def _read_truncated(truncated: Any) -> Member:
    """A distribution with a location and a scale, or a gamma, between limits that do not move."""
    base = truncated.base_dist
    if hasattr(base, "df") and find_spec("tensorflow_probability") is None:
        raise ValueError("truncated StudentT observations need tensorflow_probability: install it")
    limits = [name for name in ("low", "high") if name in vars(truncated)]
    names = [*(["df"] if hasattr(base, "df") else []), *limits]
    held = [getattr(base if name == "df" else truncated, name) for name in names]
    first, second, *rest = alike(*(getattr(base, name) for name in _own(type(base))), *held)
    first = first if hasattr(base, "loc") else jnp.log(first)
    pair = zip(_coordinates_of_own(type(base)), (first, jnp.log(second)))
    coordinates = {**dict(pair), **dict(zip(names, rest))}
    return Member(_truncated(type(truncated), type(base)), coordinates, truncated.batch_shape, 0)


def _own(base: type) -> tuple[str, str]:
    """The parameters of the distribution that is truncated."""
    return ("concentration", "rate") if issubclass(base, dist.Gamma) else ("loc", "scale")


def _coordinates_of_own(base: type) -> tuple[str, ...]:
    return tuple(name if name == "loc" else f"log_{name}" for name in _own(base))


@cache
def _truncated(kind: type, base: type) -> type:
    """The family of one kind of truncation of one distribution; adds its rules."""
    family = type(f"{kind.__name__.removesuffix('Distribution')}{base.__name__}", (), {})
    fixed = [name for name in ("low", "high") if name in kind.arg_constraints]
    shape = ["df"] if "df" in base.arg_constraints else []

    def build(found: Coordinates) -> dist.Distribution:
        own = {
            name: found[at] if at == name else held_exp(found[at])
            for name, at in zip(_own(base), _coordinates_of_own(base))
        }
        inner = base(**own, **{name: found[name] for name in shape if name == "df"})
        return kind(inner, **{name: found[name] for name in fixed}, validate_args=False)

    moving = _coordinates_of_own(base)
    if moving[0] != "loc":
        # JAX has only the first derivative of an incomplete gamma function in its shape.
        moving, shape = moving[1:], ["log_concentration"]
    smooth = base is not dist.Laplace
    places = {
        share: quantiles(160 // share + 1, None if smooth else attrgetter("base_dist.loc"))
        for share in (1, 2)
    }
    add_rules(family, build, places, moving, (*shape, *fixed), 322)
    return family


def same(known: Any, constraint: Any) -> bool:
    return constraint is known or (type(constraint) is type(known) and constraint == known)


def _points(coordinates: Coordinates, event_axes: int) -> tuple[int, ...]:
    shapes = (jnp.shape(array) for array in coordinates.values())
    return jnp.broadcast_shapes(*(shape[: len(shape) - event_axes] for shape in shapes))


def _spread(coordinates: Coordinates, points: tuple[int, ...], event_axes: int) -> Coordinates:
    return {
        name: jnp.broadcast_to(array, (*points, *array.shape[array.ndim - event_axes :]))
        for name, array in coordinates.items()
    }


def _length(build: Build, places: Places, event_axes: int):
    """The length of a direction: the root of its Fisher information, or its largest coordinate."""

    def length(reference: Coordinates, direction: Coordinates) -> Array:
        points = _points({**reference, **direction}, event_axes)
        start, move = (_spread(each, points, event_axes) for each in (reference, direction))
        nodes, weight, relative = places(*[build(start)] * 2)
        moving = {name: start[name] for name in move}
        log_q, score = jax.jvp(
            lambda found: build(start | found).log_prob(nodes), (moving,), (move,)
        )
        chance = jnp.where(relative, 0.5, jnp.exp(log_q)) * weight
        known = jnp.isfinite(chance) & jnp.isfinite(score)
        information = jnp.sum(jnp.where(known, chance * score**2, 0.0), axis=0)
        axes = tuple(range(-event_axes, 0))
        moves = [jnp.max(jnp.abs(array), axis=axes) for array in move.values()]
        return jnp.stack([jnp.sqrt(information), *moves]).max(0)

    return length


def _formula(
    build: Build,
    places: Places,
    near: Callable,
    far: Callable,
    event_axes: int = 0,
    follow: bool = False,
):
    """The formula of one divergence; `follow`: derivatives are also taken of the nodes."""
    hold = (lambda found: found) if follow else jax.lax.stop_gradient

    def formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
        moved = {
            name: array + displacement[name] if name in displacement else array
            for name, array in reference.items()
        }
        points = _points(moved, event_axes)
        pair = [_spread(each, points, event_axes) for each in (moved, reference)]
        nodes, weight, relative = places(*(build(hold(each)) for each in pair))
        nodes = hold(nodes)
        log_p, log_q = (build(each).log_prob(nodes) for each in pair)
        # Skip nodes where neither has mass or a quantile is outside floating point.
        empty = ~(jnp.isfinite(log_p) & jnp.isfinite(log_q))
        log_p, log_q = jnp.where(empty, 0.0, log_p), jnp.where(empty, 0.0, log_q)
        t = log_q - log_p
        if relative:
            log_both = hold(jnp.logaddexp(log_p, log_q))
            log_p, log_q = log_p - log_both, log_q - log_both
        small = jnp.abs(t) < 0.5
        close = near(log_p, log_q, jnp.where(small, t, 0.0))
        apart = far(log_p, log_q, jnp.where(small, 1.0, t))
        share = jnp.where(empty, 0.0, jnp.where(small, close, apart))
        total = jnp.sum(weight * share, axis=0)
        return [(jnp.zeros_like(total), total)]

    return formula


for _family in (dist.Gompertz, dist.Logistic, dist.SoftLaplace, dist.VonMises):
    register_quadrature(_family)
for _family in (dist.AsymmetricLaplace, dist.AsymmetricLaplaceQuantile):
    register_quadrature(_family, corner="loc")
if hasattr(dist, "Dagum"):
    register_quadrature(dist.Dagum)
