"""Divergences of univariate families without a closed form, by quadrature.

With densities p of the model and q of the reference and t = log q / p, every divergence is the
integral of a non-negative function of p and q, and so `E_p g + E_q g` with that function divided by
p + q. The nodes are quantiles of both, so that they follow the two wherever these go; counts are summed
and angles integrated over the circle. Derivatives are taken of the densities at fixed nodes.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
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

# Each divergence's share of one outcome: its form for t near 0, whose derivatives exist at 0, and that
# for any other t; whether the divergence is bounded.
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


def _held_exp(x: Array) -> Array:
    """`exp(x)`, held where a log density would have no digits left."""
    most = -0.7 * math.log(float(jnp.finfo(x.dtype).eps))
    return jnp.exp(jnp.clip(x, -most, most))


# A coordinate's prefix, the coordinate of a parameter, and the way back; which one by constraint.
_ITSELF = ("", lambda x: x, lambda x: x)
_LOGIT = ("logit_", lambda x: jnp.log(x) - jnp.log1p(-x), sigmoid)
_READ: list[tuple[Any, tuple[str, Callable[[Array], Array], Callable[[Array], Array]]]] = [
    (constraints.real, _ITSELF),
    (constraints.circular, _ITSELF),
    (constraints.nonnegative_integer, _ITSELF),
    (constraints.positive_integer, _ITSELF),
    (constraints.positive, ("log_", jnp.log, _held_exp)),
    (constraints.unit_interval, _LOGIT),
    (constraints.open_interval(0.0, 1.0), _LOGIT),
]


def register_quadrature(
    distribution: type[dist.Distribution],
    counts: int | None = None,
    fixed: Sequence[str] = (),
    nodes: int = 161,
) -> None:
    """Teach all four divergences a univariate family of NumPyro distributions, by quadrature.

    `predcp.diagnose` reports the error: what halving the number of nodes changes.

    **Arguments**
    - `distribution`: a NumPyro class with a log density and, unless it is a count or an angle,
        quantiles (`icdf`). Its parameters must be real, positive, probabilities or whole numbers.
    - `counts`: for a count, the largest one that is summed.
    - `fixed`: parameters that must not move; whole numbers never may.
    - `nodes`: how many quantiles of either distribution are taken, an odd number.
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
        found = next((read for known, read in _READ if _same(known, constraint)), None)
        if found is None:
            raise ValueError(
                f"parameter {name} of {distribution.__name__} is {constraint}: quadrature needs real "
                "numbers, positive ones, probabilities or whole numbers; write the divergence with "
                "predcp.register_divergence"
            )
        readers[name] = found
        if getattr(constraint, "is_discrete", False) is True:
            whole.append(name)
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
        else around(2 * nodes // share)
        if circular
        else quantiles((nodes - 1) // share + 1)
        for share in (1, 2)
    }
    _add_rules(distribution, build, places, moving, held, 2 * nodes if counts is None else counts)


def _add_rules(
    family: Any,
    build: Build,
    places: dict[int, Places],
    moving: tuple[str, ...],
    fixed: tuple[str, ...],
    size: int,
) -> None:
    for divergence, near, far, bounded in _PARTS:
        whole, half = (
            closed_form(_formula(build, found, near, far), moving, bounded, fixed=fixed, nodes=size)
            for found in places.values()
        )
        divergence.add(family, whole._replace(coarse=half))


TRUNCATED = (
    dist.LeftTruncatedDistribution,
    dist.RightTruncatedDistribution,
    dist.TwoSidedTruncatedDistribution,
)


@register_reader(*TRUNCATED)
def _read_truncated(truncated: Any) -> Member:
    """A distribution with a location and a scale between limits that do not move."""
    base = truncated.base_dist
    limits = [name for name in ("low", "high") if name in vars(truncated)]
    names = [*(["df"] if hasattr(base, "df") else []), *limits]
    held = [getattr(base if name == "df" else truncated, name) for name in names]
    loc, scale, *rest = alike(base.loc, base.scale, *held)
    coordinates = {"loc": loc, "log_scale": jnp.log(scale), **dict(zip(names, rest))}
    return Member(_truncated(type(truncated), type(base)), coordinates, truncated.batch_shape, 0)


@cache
def _truncated(kind: type, base: type) -> type:
    """The family of one kind of truncation of one distribution, whose rules this adds."""
    family = type(f"{kind.__name__.removesuffix('Distribution')}{base.__name__}", (), {})
    fixed = [name for name in ("low", "high") if name in kind.arg_constraints]
    shape = ["df"] if "df" in base.arg_constraints else []

    def build(found: Coordinates) -> dist.Distribution:
        loose = {name: found[name] for name in shape}
        inner = base(loc=found["loc"], scale=jnp.exp(found["log_scale"]), **loose)
        return kind(inner, **{name: found[name] for name in fixed}, validate_args=False)

    places = {1: quantiles(161), 2: quantiles(81)}
    _add_rules(family, build, places, ("loc", "log_scale"), (*shape, *fixed), 322)
    return family


def _same(known: Any, constraint: Any) -> bool:
    return constraint is known or (type(constraint) is type(known) and constraint == known)


def _formula(build: Build, places: Places, near: Callable, far: Callable):
    def formula(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
        moved = {
            name: array + displacement[name] if name in displacement else array
            for name, array in reference.items()
        }
        shape = jnp.broadcast_shapes(*(jnp.shape(array) for array in moved.values()))
        pair = [
            {name: jnp.broadcast_to(array, shape) for name, array in each.items()}
            for each in (moved, reference)
        ]
        nodes, weight, relative = places(*(build(jax.lax.stop_gradient(each)) for each in pair))
        nodes = jax.lax.stop_gradient(nodes)
        log_p, log_q = (build(each).log_prob(nodes) for each in pair)
        # Where neither has mass, or a quantile has left floating point, there is nothing to compare.
        empty = ~(jnp.isfinite(log_p) & jnp.isfinite(log_q))
        log_p, log_q = jnp.where(empty, 0.0, log_p), jnp.where(empty, 0.0, log_q)
        t = log_q - log_p
        if relative:
            log_both = jax.lax.stop_gradient(jnp.logaddexp(log_p, log_q))
            log_p, log_q = log_p - log_both, log_q - log_both
        small = jnp.abs(t) < 0.5
        close = near(log_p, log_q, jnp.where(small, t, 0.0))
        apart = far(log_p, log_q, jnp.where(small, 1.0, t))
        share = jnp.where(empty, 0.0, jnp.where(small, close, apart))
        total = jnp.sum(weight * share, axis=0)
        return [(jnp.zeros_like(total), total)]

    return formula


for _family in (
    dist.AsymmetricLaplace,
    dist.AsymmetricLaplaceQuantile,
    dist.Gompertz,
    dist.Logistic,
    dist.SoftLaplace,
    dist.VonMises,
):
    register_quadrature(_family)
