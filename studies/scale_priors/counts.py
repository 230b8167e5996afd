"""Counts with one factor: the intercept on adaptive nodes, effects by the trapezoidal rule."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jaxtyping import Array

from studies.scale_priors.designs import Design
from studies.scale_priors.group_sums import (
    LINKS,
    Integrated,
    effect_mode,
    integrated,
    log_constant,
    normalised,
)
from studies.scale_priors.tables import (
    ONE_SCALE,
    Limits,
    Rows,
    Table,
    base_edges,
    below_normal,
    closed,
    midpoints,
    spread,
)

LIMITS = Limits(3e-3, 30.0)
# Standard deviation of the normal prior of the intercept.
INTERCEPT_SCALE = {"poisson": 5.0, "binomial": 3.0}
NODES = 25
# How far nodes of the intercept reach, in standard deviations: at first, and once these are known.
_FIRST, _REACH = 8.0, 5.5
_COARSE = 24


class Groups(eqx.Module):
    """A design of counts with one factor: which group each row is in, and exposures of the groups."""

    members: Any  # indicators, (N, G)
    exposures: Any  # (G,)
    family: str = eqx.field(static=True)
    # Groups with the same sum and exposure share an integral: at most so many kinds, None for G.
    kinds: int | None = eqx.field(static=True, default=None)


class Kinds(NamedTuple):
    """Groups that differ: sums, exposures and numbers of groups (U,), and the kind of each group (G,)."""

    totals: Array
    exposures: Array
    counts: Array
    of_group: Array


def grouped(design: Design) -> Groups:
    """The groups of a design."""
    return Groups(design.z[0], design.z[0].T @ design.trials, design.family)


def with_kinds(made: Groups, outcomes: np.ndarray) -> Groups:
    """The groups with the number of kinds that suffices for all these outcomes, (S, N)."""
    codes = _codes(np.asarray(outcomes) @ np.asarray(made.members), np.asarray(made.exposures))
    most = max(len(np.unique(row)) for row in codes)
    # In steps, so that few programs are compiled.
    step = -(-codes.shape[1] // 8)
    return Groups(made.members, made.exposures, made.family, -(-most // step) * step)


def _codes(totals: Any, exposures: Any) -> Any:
    """A number for each sum and exposure; exposures are whole numbers."""
    return totals * (1.0 + exposures.max()) + exposures


def _kinds(made: Groups, totals: Array) -> Kinds:
    exposures = jnp.asarray(made.exposures)
    size = totals.size
    if made.kinds is None or made.kinds >= size:
        return Kinds(totals, exposures, jnp.ones(size), jnp.arange(size))
    _, first, of_group, counts = jnp.unique(
        _codes(totals, exposures),
        return_index=True,
        return_inverse=True,
        return_counts=True,
        size=made.kinds,
    )
    return Kinds(totals[first], exposures[first], counts.astype(float), of_group)


def _mode_of_intercept(family: str, own: Kinds, tau: Array) -> tuple[Array, Array]:
    """Joint mode of intercept and effects, and the Laplace standard deviation of the intercept."""
    link, scale = LINKS[family], INTERCEPT_SCALE[family]
    variance = tau[:, None] ** 2

    def curvature(middle: Array, u: Array) -> Array:
        h = own.exposures * link.curvature(middle[:, None] + u)
        return (own.counts * h / (1.0 + variance * h)).sum(-1) + scale**-2

    def step(_: int, middle: Array) -> Array:
        u = effect_mode(family, own.totals, own.exposures, middle[:, None], variance)
        left = own.totals - own.exposures * link.mean(middle[:, None] + u)
        gradient = (own.counts * left).sum(-1) - middle / scale**2
        return middle + jnp.clip(gradient / curvature(middle, u), -1.5, 1.5)

    place, information = link.guess(own.counts @ own.totals, own.counts @ own.exposures)
    start = place * information / (information + scale**-2)
    middle = jax.lax.fori_loop(0, 12, step, jnp.full(tau.shape, start))
    u = effect_mode(family, own.totals, own.exposures, middle[:, None], variance)
    return middle, curvature(middle, u) ** -0.5


def _at_nodes(
    family: str, own: Kinds, tau: Array, centre: Array, deviation: Array, reach: float
) -> tuple[Array, Array, Integrated]:
    """Intercepts (C, K), log likelihood with weights (C, K) and effects of every kind (C, K, U)."""
    steps = jnp.linspace(-reach, reach, NODES)
    middle = centre[:, None] + deviation[:, None] * steps

    def one(cell: tuple[Array, Array]) -> Integrated:
        """One cell at a time: its arrays stay in the cache."""
        at, scale = cell
        return integrated(family, own.totals, own.exposures, at[:, None], scale**2)

    found = jax.lax.map(one, (middle, tau))
    prior = -0.5 * (middle / INTERCEPT_SCALE[family]) ** 2
    log_step = jnp.log(deviation * (steps[1] - steps[0]))[:, None]
    return middle, found.log_value @ own.counts + prior + log_step, found


def counts_table(made: Groups, y: Array, truth: Array, rows: Rows) -> Table:
    """The table of one set of outcomes; arguments as those of `gaussian_table`."""
    totals = y @ made.members
    own = _kinds(made, totals)
    coarse = jnp.geomspace(LIMITS.lowest / 2.0, 1.2 * LIMITS.highest, _COARSE)
    centre, deviation = _mode_of_intercept(made.family, own, coarse)
    middle, log_like, _ = _at_nodes(made.family, own, coarse, centre, deviation, _FIRST)
    weight = normalised(log_like, -1)
    centre = (weight * middle).sum(-1)
    deviation = jnp.sqrt((weight * (middle - centre[:, None]) ** 2).sum(-1))
    marginal = logsumexp(log_like, -1)
    inner = jnp.asarray(base_edges(LIMITS, 1.0, ONE_SCALE[0]))
    first_look = jnp.interp(jnp.log(midpoints(inner)), jnp.log(coarse), marginal)
    inner = spread(inner, first_look, 1.0, ONE_SCALE[1])
    tau = midpoints(inner)
    log_tau, log_coarse = jnp.log(tau), jnp.log(coarse)
    middle, log_like, found = _at_nodes(
        made.family,
        own,
        tau,
        jnp.interp(log_tau, log_coarse, centre),
        jnp.exp(jnp.interp(log_tau, log_coarse, jnp.log(deviation))),
        _REACH,
    )
    found = Integrated(*(each[..., own.of_group] for each in found))
    known = rows.group >= 0
    place = jnp.maximum(rows.group, 0)
    total = jnp.where(known, totals[place], 0.0) + rows.y
    exposure = jnp.where(known, jnp.asarray(made.exposures)[place], 0.0) + rows.trials
    both = integrated(made.family, total, exposure, middle[..., None], tau[:, None, None] ** 2)
    log_density = log_constant(made.family, rows.y, rows.trials) + both.log_value
    log_density -= jnp.where(known, found.log_value[..., place], 0.0)
    return Table(
        (closed(inner),),
        log_like,
        found.mean,
        found.variance,
        below_skewed(truth, found.mean, found.variance, found.skewness),
        log_density,
        {"intercept": middle},
    )


def below_skewed(truth: Any, mean: Array, variance: Array, skewness: Array) -> Array:
    """Probability of being below the truth, with the first term of Edgeworth's series."""
    z = (truth - mean) / jnp.sqrt(variance)
    density = jnp.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    normal = below_normal(truth, mean, variance)
    return jnp.clip(normal - density * skewness * (z**2 - 1.0) / 6.0, 0.0, 1.0)
