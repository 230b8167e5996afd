"""The one picture of a comparison: how far each model is behind the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from predcp._support.png import png
from predcp.comparison._statistics import FEWEST_FOLDS
from predcp.experiments import Picture

if TYPE_CHECKING:
    from predcp.comparison._comparison import Comparison

_TIED, _WORSE = "#0072B2", "#999999"


def picture(comparison: Comparison) -> list[Picture]:
    """Differences from the best model with 95% intervals; empty where there are too few folds."""
    if len(comparison.scores) < 2 or comparison.folds_done < FEWEST_FOLDS:
        return []
    from matplotlib.figure import Figure
    from scipy.stats import t

    best, *others = comparison.scores
    figure = Figure(figsize=(8.0, 1.3 + 0.36 * (1 + len(others))), layout="constrained")
    axes = figure.subplots()
    axes.axvline(0.0, color="0.7", linewidth=1.0)
    axes.plot([0.0], [0], "o", color=_TIED)
    for height, model in enumerate(others, 1):
        pair = comparison.difference(model, best)
        colour = _WORSE if model in comparison.worse else _TIED
        width = float(t.ppf(0.975, pair.degrees)) * pair.error
        axes.errorbar(pair.mean, height, xerr=width, fmt="o", color=colour, capsize=3)
    names = [comparison.words[model] for model in comparison.scores]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("log score per row minus that of the first (right is better), 95% intervals")
    axes.set_title("Blue: nothing separates it from the best. Grey: clearly worse.", fontsize=10)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return [Picture("comparison.png", "log scores of the models beside the best", png(figure))]
