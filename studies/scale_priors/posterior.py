"""All priors of a design on one table: cell probabilities, posteriors and their scores."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jaxtyping import Array

from studies.scale_priors.counts import counts_table, grouped
from studies.scale_priors.designs import Design
from studies.scale_priors.gaussian import gaussian_table, rotated
from studies.scale_priors.laplace import laplace_table, working
from studies.scale_priors.priors import (
    FIXED,
    OTHERS,
    OURS,
    PER,
    Pi,
    fixed,
    log_mass,
    log_mass_of_kappa,
    log_share_mass,
    spread_of,
)
from studies.scale_priors.sentence import Divergence, joint, per, pi_of, predictive
from studies.scale_priors.tables import Rows, Table

SCORES = (
    "covered",
    "log_width",
    "scale_error",
    "scale_bias",
    "effect_coverage",
    "effect_sd",
    "effect_error",
    "new_score",
    "claim",
)
_TABLES: dict[str, tuple[Callable[..., Any], Callable[..., Table]]] = {
    "gaussian": (rotated, gaussian_table),
    "counts": (grouped, counts_table),
    "laplace": (working, laplace_table),
}


class Complexity(eqx.Module):
    """A divergence, by its name in the study, and the place of pi on it."""

    kind: str = eqx.field(static=True)
    family: str = eqx.field(static=True)
    place: Any

    def pi(self) -> Pi:
        """The prior on the divergence."""
        return Pi(self.family, self.place)


class Study(eqx.Module):
    """A design made ready: what its table is made from, and its priors. Arrays are leaves."""

    data: Any
    divergences: dict[str, Divergence]
    complexities: dict[str, Complexity]
    sizes: Any  # mean squared length of a row of each factor, (F,)
    noise_variance: Any  # mean of the known ones, 1 otherwise
    family: str = eqx.field(static=True)
    method: str = eqx.field(static=True)
    unit: float = eqx.field(static=True)

    @property
    def priors(self) -> tuple[str, ...]:
        """Names of the priors, in the order of the results."""
        return (*OTHERS, *self.complexities)

    def table(self, y: Array, truth: Array, rows: Rows) -> Table:
        """The table of one set of outcomes."""
        return _TABLES[self.method][1](self.data, y, truth, rows)


def ready(design: Design) -> Study:
    """Build what every simulation of a design shares."""
    divergences = {"predcp": predictive(design), "ecp": joint(design)}
    kinds = {name: name.split("-")[0] for name in OURS}
    if design.per is not None:
        divergences["per"] = per(design)
        kinds |= dict.fromkeys(PER, "per")
    complexities = {}
    for name, kind in kinds.items():
        family = "gamma" if "gamma" in name else "log-cauchy"
        place = pi_of(family, divergences[kind].log_suprema()).place
        complexities[name] = Complexity(kind, family, np.asarray(place))
    known = np.mean(design.noise**2) if design.noise_known else 1.0
    made = Study(
        _TABLES[design.method][0](design),
        divergences,
        complexities,
        np.array([(z**2).sum(1).mean() for z in design.z]),
        np.asarray(known),
        design.family,
        design.method,
        design.unit,
    )
    return jax.tree.map(jnp.asarray, made)


def _at_edges(table: Table, scale: int) -> tuple[Array, Array]:
    """Lower and upper edges of the cells of a scale, shaped to broadcast against the table."""
    shape = [1] * table.log_like.ndim
    shape[scale] = -1
    edges = table.edges[scale]
    return edges[:-1].reshape(shape), edges[1:].reshape(shape)


def _log_kappas(made: Divergence, table: Table, scale: int, edges: Array) -> Array:
    """Log divergence at edges: minus infinity at 0 and infinity at infinity."""
    inside = (edges > 0.0) & jnp.isfinite(edges)
    log_tau = jnp.log(jnp.where(inside, edges, 1.0))
    found = made.log_kappa(scale, log_tau, table.rest)
    return jnp.where(inside, found, jnp.where(edges > 0.0, jnp.inf, -jnp.inf))


def _noise_variance(made: Study, rest: dict[str, Array]) -> Array:
    """What R2-D2 takes for the variance of the noise, at each node."""
    if made.method == "gaussian":
        return made.noise_variance * jnp.exp(2.0 * rest["log_noise"])
    counts = made.method == "counts"
    middle = rest["intercept"] if counts else rest["predictors"][..., 0, :].mean(-1)
    if made.family == "poisson":
        return jnp.exp(-middle)
    return 2.0 + jnp.exp(middle) + jnp.exp(-middle)


def log_priors(made: Study, table: Table, y: Array) -> Array:
    """Log probabilities of the cells under every prior, (P, n_1, ..., n_F, K)."""
    found = []
    scales = range(len(table.edges))
    edges = [_at_edges(table, scale) for scale in scales]
    for name in FIXED:
        prior = fixed(name, **spread_of(made.family, y))
        found.append(sum(log_mass(prior, *edges[scale]) for scale in scales))
    variance = _noise_variance(made, table.rest)
    lows, highs = (
        [edges[scale][side] ** 2 * made.sizes[scale] / variance for scale in scales]
        for side in (0, 1)
    )
    found.append(log_share_mass(lows, highs))
    kappas = {
        (kind, scale): (
            *(_log_kappas(each, table, scale, edge) for edge in edges[scale]),
            each.log_supremum(scale, table.rest),
        )
        for kind, each in made.divergences.items()
        for scale in scales
    }
    for each in made.complexities.values():
        found.append(
            sum(log_mass_of_kappa(each.pi(), *kappas[each.kind, scale]) for scale in scales)
        )
    return jnp.stack([jnp.broadcast_to(each, table.log_like.shape) for each in found])


def posterior(made: Study, table: Table, y: Array) -> Array:
    """Posterior probabilities of the nodes under every prior, (P, n_1, ..., n_F, K)."""
    log_post = table.log_like + log_priors(made, table, y)
    axes = tuple(range(1, log_post.ndim))
    return jnp.exp(log_post - logsumexp(log_post, axes, keepdims=True))


def marginal(weights: Array) -> Array:
    """Posterior probabilities of the cells of the scored scale, (P, n_F)."""
    scored = weights.ndim - 2
    return weights.sum(tuple(a for a in range(1, weights.ndim) if a != scored))


def quantile(cells: Array, edges: Array, q: float) -> Array:
    """Quantile of the scale; linear in tau in the first cell, in log tau in the others."""
    below = jnp.concatenate([jnp.zeros(1), jnp.cumsum(cells)])
    place = jnp.clip(jnp.searchsorted(below, q) - 1, 0, cells.size - 1)
    part = jnp.clip((q - below[place]) / jnp.maximum(cells[place], 1e-300), 0.0, 1.0)
    low, high = edges[place], edges[place + 1]
    inner = jnp.exp((1.0 - part) * jnp.log(low) + part * jnp.log(high))
    return jnp.where(place == 0, part * high, jnp.where(jnp.isinf(high), low, inner))


def log_row_densities(weights: Array, log_density: Array) -> Array:
    """Log posterior predictive density of the rows, (P, T)."""
    flat = log_density.reshape(-1, log_density.shape[-1])
    peak = flat.max(0)
    mixed = weights.reshape(weights.shape[0], -1) @ jnp.exp(flat - peak)
    return jnp.log(jnp.maximum(mixed, 1e-300)) + peak


def scores(made: Study, y: Array, truth: Array, tau: Array, rows: Rows) -> Array:
    """Every score of every prior on one simulation, (P, number of scores), in the order of `SCORES`.

    **Arguments**: `y`, (N,); `truth`, scored effects, (E,); `tau`, true scale; `rows`, of new groups.
    """
    unit = made.unit
    table = made.table(y, truth, rows)
    weights = posterior(made, table, y)
    count = weights.shape[0]
    cells, edges = marginal(weights), table.edges[-1]
    low, middle, high = (
        jax.vmap(lambda c, q=q: quantile(c, edges, q))(cells) for q in (0.05, 0.5, 0.95)
    )
    log_width = jnp.log(jnp.maximum(high, edges[1])) - jnp.log(jnp.maximum(low, edges[1]))
    mark = 0.1 * unit
    bias = jnp.log(middle + mark) - jnp.log(tau + mark)
    below_mark = jax.vmap(lambda c: cdf(c, edges, mark))(cells)
    flat = weights.reshape(count, -1)

    def average(values: Array) -> Array:
        return flat @ values.reshape(flat.shape[1], -1)

    mean = average(table.mean)
    # About the mean of the first prior: squares of outcomes far from 0 would cancel.
    centred = table.mean - mean[0]
    second = average(centred**2 + table.variance)
    variance = jnp.maximum(second - (mean - mean[0]) ** 2, 0.0)
    below = average(table.below)
    inside = (below > 0.05) & (below < 0.95)
    return jnp.stack(
        [
            jnp.where(tau > 0.0, (low <= tau) & (tau <= high), jnp.nan),
            log_width,
            jnp.abs(bias),
            bias,
            inside.mean(-1),
            jnp.sqrt(variance).mean(-1) / unit,
            jnp.sqrt(((mean - truth) ** 2).mean(-1)) / unit,
            log_row_densities(weights, table.log_density).mean(-1),
            below_mark < 0.05,
        ],
        -1,
    )


def cdf(cells: Array, edges: Array, at: Any) -> Array:
    """Posterior probability below a value, by the interpolation of `quantile`."""
    below = jnp.concatenate([jnp.zeros(1), jnp.cumsum(cells)])
    place = jnp.searchsorted(edges, at) - 1
    low, high = edges[place], edges[place + 1]
    inner = (jnp.log(at) - jnp.log(low)) / (jnp.log(high) - jnp.log(low))
    return below[place] + cells[place] * jnp.where(place == 0, at / high, inner)
