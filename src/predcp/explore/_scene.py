"""Contents of the screen for given choices: charts, words and code."""

from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

import predcp
from predcp.explore._choices import Choices
from predcp.explore._code import code
from predcp.explore._curves import Curves, curves, line_slopes
from predcp.explore._network import network_scene
from predcp.explore._pi import divergence_prior
from predcp.explore._picture import charts, function_grid
from predcp.explore._regression import Predictors, bounded, predictors
from predcp.explore._table import Table, mean_table, shifted, unit_table
from predcp.explore._upload import Design
from predcp.explore._words import words


@dataclass(frozen=True)
class Scene:
    """Everything that the page shows.

    **Arguments**
    - `charts`: the six charts, one SVG each.
    - `headline`, `sentences`: the summary.
    - `code`: a NumPyro program.
    - `layers`: names and curves of each scale shown.
    """

    charts: list[str]
    headline: str
    sentences: list[str]
    code: str
    layers: list[tuple[str, Curves]]


def scene(choices: Choices) -> Scene:
    """Charts, words and code of the chosen prior.

    **Arguments**: `choices`. A choice that makes no prior raises a ValueError with the reason.
    """
    divergence: predcp.Divergence = getattr(predcp, choices.divergence)
    if choices.model == "network":
        pi = divergence_prior(choices, float(unit_table(False, divergence).log_supremum))
        layers, functions = _network(choices, pi, divergence)
    else:
        logistic = choices.model == "logistic"
        table, spread = _table(choices.design, choices.rows, choices.columns, logistic, divergence)
        pi = divergence_prior(choices, float(table.log_supremum))
        layers, functions = _regression(choices, pi, table, spread)
    said = words(choices, pi, layers)
    drawn = charts(choices, pi, layers, functions)
    return Scene(drawn, said.headline, said.sentences, code(choices), layers)


def _network(
    choices: Choices, pi: predcp.DivergencePrior, divergence: predcp.Divergence
) -> tuple[list[tuple[str, Curves]], np.ndarray]:
    found = network_scene(pi, choices.depth, divergence)
    cut = bounded(False, choices.divergence)
    layers = [("layer 1", _curves(pi, found.first, cut, choices.log_axes))]
    if choices.depth > 1:
        last = _curves(pi, found.last, cut, choices.log_axes)
        layers.append((f"layer {choices.depth}", last))
    return layers, np.asarray(found.functions)


def _regression(
    choices: Choices, pi: predcp.DivergencePrior, table: Table, spread: float
) -> tuple[list[tuple[str, Curves]], np.ndarray]:
    logistic = choices.model == "logistic"
    if not logistic:
        table = shifted(table, jnp.asarray(2.0 * np.log(choices.noise)))
    found = _curves(pi, table, bounded(logistic, choices.divergence), choices.log_axes)
    with np.errstate(over="ignore"):
        slopes = np.sqrt(found.lines_tau) * line_slopes() * spread
        lines = slopes[:, None] * function_grid(choices)
        functions = 1.0 / (1.0 + np.exp(-lines)) if logistic else lines
    return [("this prior", found)], functions


def _curves(pi: predcp.DivergencePrior, table: Table, cut: bool, log_axes: bool) -> Curves:
    """The curves, as NumPy arrays."""
    return jax.tree.map(np.asarray, curves(pi, table, cut, log_axes))


@lru_cache(maxsize=64)
def _table(
    design: Design | None, rows: int, columns: int, logistic: bool, divergence: predcp.Divergence
) -> tuple[Table, float]:
    """The table at unit noise and the spread of the design; cached, because most moves change only pi."""
    model = "logistic" if logistic else "linear"
    at: Predictors = predictors(Choices(model, rows=rows, columns=columns, design=design))
    unit = unit_table(logistic, divergence)
    return mean_table(unit, jnp.asarray(at.values)), at.spread
