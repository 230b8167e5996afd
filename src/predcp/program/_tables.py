"""The map of a scale as a table, so that a new statement needs no run of the program.

A table holds `log D` and the displacement of the predictions at nodes of `log tau`, for each of the
draws of the rest over which `with_complexity` solves a statement. The prior that a statement gives is
then a mean over those draws, and takes milliseconds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from predcp._divergence_priors import DivergencePrior
from predcp._divergences import kl
from predcp.program._complexity import ProgramComplexity, program_map
from predcp.program._increasing import require_increasing
from predcp.program._options import refuse_ambiguous_options
from predcp.program._predictors import LOG_ODDS
from predcp.program._responses import RESPONSES, displacement, kinds_of, log_odds_change
from predcp.program._statements import Tail, fitting, solve_tail
from predcp.program._structure import ProgramStructure, as_names
from predcp.program._swap import rest_draws

_NODES = 91
# In units of log tau: the range of the search for the centre, the half-width around it.
_SEARCH = (-45.0, 45.0)
_BELOW, _ABOVE = 8.0, 10.0
_BATCH = 4
# Logarithms beyond this are treated as infinite.
_FAR = 1e4


@dataclass(frozen=True, eq=False)
class ScaleTable:
    """The maps of one scale, one for each draw of the rest.

    - `scale`, `site`, `index`: label, name of the site, and entry of a site with several scales.
    - `log_tau`: nodes.
    - `log_kappa`, `elasticity`: log divergence and its derivative at the nodes, by draw.
    - `log_supremum`: log of the largest divergence, by draw.
    - `log_displacement`: by kind of predictor, log displacement at the nodes, by draw.
    """

    scale: str
    site: str
    index: tuple[int, ...]
    log_tau: Float[np.ndarray, " nodes"]
    log_kappa: Float[np.ndarray, "draws nodes"]
    elasticity: Float[np.ndarray, "draws nodes"]
    log_supremum: Float[np.ndarray, " draws"]
    log_displacement: dict[str, Float[np.ndarray, "draws nodes"]]

    @property
    def quantities(self) -> list[str]:
        """The quantities in which a statement about this scale can be made, as `tail` names them."""
        return fitting(set(self.log_displacement))

    def solve(self, statement: Tail) -> DivergencePrior:
        """The pi that satisfies a statement, as `with_complexity` finds it."""
        at = self.log_kappa_at(statement.quantity, [statement.upper])[:, 0]
        return solve_tail(statement, at, self.log_supremum)

    def log_kappa_at(
        self, quantity: str, values: Sequence[Any]
    ) -> Float[np.ndarray, "draws values"]:
        """Log divergence where a quantity has these values, for each draw of the rest.

        **Arguments**: `quantity`, as `tail` names it; `values`, numbers, or pairs for
        `probability_change`.
        """
        draws = self.log_kappa.shape[0]
        if quantity == "probability_change":
            size = np.array([log_odds_change(*pair) for pair in values])
            return self._forward(self._backward(LOG_ODDS, size))
        sizes = np.asarray(values, np.float64)
        if quantity in RESPONSES:
            response = RESPONSES[quantity]
            with np.errstate(divide="ignore"):
                sizes = np.asarray(response.to_displacement(sizes))
            return self._forward(self._backward(response.kind, sizes))
        log_sizes = np.tile(_log(sizes), (draws, 1))
        return log_sizes if quantity == "divergence" else self._forward(log_sizes)

    def share_below(
        self, pi: DivergencePrior, quantity: str, values: Sequence[Any]
    ) -> Float[np.ndarray, " values"]:
        """P(quantity <= value) under the prior that pi gives, on average over the rest."""
        found = _mean_cdf(pi, self.log_kappa_at(quantity, values), self.log_supremum)
        return np.asarray(found, np.float64)

    def _forward(self, log_tau: Float[np.ndarray, "draws n"]) -> Float[np.ndarray, "draws n"]:
        """`log D`: cubic between the nodes, a power law beyond them."""
        first, width = self.log_tau[0], self.log_tau[1] - self.log_tau[0]
        inside = np.clip(log_tau, first, self.log_tau[-1])
        position = (inside - first) / width
        left = np.clip(position.astype(int), 0, self.log_tau.size - 2)
        t = position - left
        low, high, slope, after = (
            np.take_along_axis(values, left + step, axis=1)
            for values, step in (
                (self.log_kappa, 0), (self.log_kappa, 1), (self.elasticity, 0), (self.elasticity, 1)
            )
        )  # fmt: skip
        rise = high - low
        bend = (1.0 - t) * (width * slope - rise) + t * (rise - width * after)
        beyond = np.where(log_tau > inside, after, slope) * (log_tau - inside)
        found = low + t * rise + t * (1.0 - t) * bend + beyond
        return np.minimum(found, self.log_supremum[:, None])

    def _backward(self, kind: str, sizes: Float[np.ndarray, " n"]) -> Float[np.ndarray, "draws n"]:
        """The `log tau` at which a displacement has these sizes: linear between nodes and beyond."""
        wanted = _log(sizes)
        rows = []
        for known in self.log_displacement[kind]:
            known = np.maximum.accumulate(known)
            width = self.log_tau[1] - self.log_tau[0]
            ends = (known[1] - known[0]) / width, (known[-1] - known[-2]) / width
            below, above = (1.0 / max(slope, 1e-3) for slope in ends)
            rows.append(
                np.interp(wanted, known, self.log_tau)
                + below * np.minimum(wanted - known[0], 0.0)
                + above * np.maximum(wanted - known[-1], 0.0)
            )
        return np.clip(np.array(rows), -_FAR, _FAR)


@refuse_ambiguous_options
def scale_tables(
    model: Callable[..., Any],
    site: str,
    /,
    *args: Any,
    observed: Sequence[str] = (),
    noise_draws: int = 16,
    **kwargs: Any,
) -> tuple[ScaleTable, ...]:
    """Tabulate the map of a scale of a program: one table for each entry of the site.

    The maps are those of `with_complexity(model, {site: ...})` with its default options: the rest is
    drawn from the prior, and the other entries of a site with several scales are 0.

    **Arguments**: `model`, `args`, `kwargs`, a program and its arguments; `site`, name of a positive
    latent site; `observed`, sites to predict without data; `noise_draws`, how many each map has.
    """
    structure = ProgramStructure(model, args, kwargs)
    observed = as_names(observed)
    sites = structure.around(site, observed)
    key = jax.random.key(0)
    rest = rest_draws(structure, sites.rest, (), key)
    tables = []
    for index in np.ndindex(structure.sites[site].shape):
        build = partial(
            program_map, structure, sites, index=index or None, noise_draws=noise_draws, key=key,
            method="auto", divergence=kl,
        )  # fmt: skip
        first = build(jax.tree.map(lambda leaf: leaf[0], rest))
        require_increasing(first)
        label = f"{site}[{','.join(map(str, index))}]" if index else site
        tables.append(ScaleTable(label, site, index, *_tabulate(build, rest, kinds_of(first))))
    return tuple(tables)


def _tabulate(
    build: Callable[[dict[str, Array]], ProgramComplexity],
    rest: dict[str, Array],
    kinds: set[str],
) -> tuple[Any, ...]:
    """Nodes and the values there, around the scale at which predictions begin to move."""
    used = sorted({each.kind for each in RESPONSES.values()} & kinds)

    def one(values: dict[str, Array], grid: Array) -> Any:
        single = build(values)
        log_kappa, log_elasticity = single.log_value_and_elasticity(grid)
        moved = {name: jax.lax.map(partial(displacement, single, kind=name), grid) for name in used}
        return log_kappa, jnp.exp(log_elasticity), single.log_supremum(grid[0]), moved

    @jax.jit
    def every(grid: Array) -> Any:
        if not rest:
            return jax.tree.map(lambda leaf: leaf[None], one({}, grid))
        return jax.lax.map(lambda values: one(values, grid), rest, batch_size=_BATCH)

    def evaluate(nodes: np.ndarray) -> Any:
        return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), every(jnp.asarray(nodes)))

    search = np.linspace(*_SEARCH, _NODES)
    log_kappa, _, log_supremum, _ = evaluate(search)
    finite = np.where(np.isfinite(log_kappa), log_kappa, np.inf)
    start = min(np.log(0.1), float(np.median(log_supremum)) - np.log(4.0))
    centre = search[int(np.argmax(np.median(finite, axis=0) >= start))]
    nodes = centre + np.linspace(-_BELOW, _ABOVE, _NODES)
    log_kappa, elasticity, log_supremum, moved = evaluate(nodes)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = {name: np.log(values) for name, values in moved.items()}
    # The table ends where a draw leaves floating point; power laws continue it.
    usable = np.all([np.isfinite(v).all(0) for v in (log_kappa, elasticity, *moved.values())], 0)
    middle = int(np.argmin(np.abs(nodes - centre)))
    gaps = np.flatnonzero(~usable)
    low = max([0, *(gaps[gaps < middle] + 1)])
    high = min([_NODES, *gaps[gaps >= middle]])
    if high - low < 2:
        raise ValueError("the divergence of the predictions is not finite at any scale")
    kept = slice(low, high)
    return (
        nodes[kept],
        log_kappa[:, kept],
        elasticity[:, kept],
        log_supremum,
        {name: values[:, kept] for name, values in moved.items()},
    )


@jax.jit
def _mean_cdf(pi: DivergencePrior, log_kappa: Array, log_supremum: Array) -> Array:
    """Mean over the draws of the cdf of pi, truncated at the supremum of each draw."""
    log_cdf = pi.log_cdf_log(log_kappa) - pi.log_cdf_log(log_supremum)[:, None]
    return jnp.mean(jnp.exp(jnp.minimum(log_cdf, 0.0)), axis=0)


def _log(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.clip(np.log(values), -_FAR, _FAR)
