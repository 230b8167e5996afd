"""Plots of a report: means beside published ones, and paired differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from predcp._support.png import png
from predcp.experiments._document import Picture
from predcp.experiments._experiments import Published
from predcp.experiments._metrics import metric_title
from predcp.experiments._statistics import Pair, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A plot with more lines cannot be read.
_MOST_LINES = 30
_WIDTH_INCHES, _LINE_INCHES, _MARGIN_INCHES = 8.0, 0.26, 0.7


def mean_picture(
    metric: str, rows: Sequence[Row], published: Published, name: Callable[[str], str] = str
) -> Picture:
    """Means with standard errors, and published figures, where there are any, as hollow squares.

    **Arguments:** `name` turns the name of a prior or an inference into words.
    """
    shown = rows[:_MOST_LINES]
    printed = [published.get((row.data, row.prior, row.inference, metric)) for row in shown]
    squares = " and published (squares)" if any(printed) else ""
    content = _chart(
        [f"{row.data}  {name(row.prior)}  {name(row.inference)}" for row in shown],
        [row.mean for row in shown],
        [row.se or 0.0 for row in shown],
        [math.nan if figure is None else figure.mean for figure in printed],
        f"{metric_title(metric)}: ours (dots, standard errors){squares}",
    )
    title = f"{metric_title(metric)} by data, prior and inference"
    return Picture(f"{metric}.png", title, content)


def pair_picture(metric: str, pairs: Sequence[Pair], name: Callable[[str], str] = str) -> Picture:
    """Paired differences with standard errors; to the right the first prior is better."""
    shown = pairs[:_MOST_LINES]
    content = _chart(
        [
            f"{pair.data}  {name(pair.first)} - {name(pair.second)}  {name(pair.inference)}"
            for pair in shown
        ],
        [pair.difference for pair in shown],
        [pair.se or 0.0 for pair in shown],
        [],
        f"paired difference in {metric_title(metric)}, better to the right",
        zero=True,
    )
    return Picture(f"{metric}-paired.png", f"paired differences in {metric_title(metric)}", content)


def _chart(
    labels: Sequence[str],
    values: Sequence[float],
    errors: Sequence[float],
    squares: Sequence[float],
    caption: str,
    zero: bool = False,
) -> bytes:
    # Not pyplot, which has global state and is slow to import.
    from matplotlib.figure import Figure

    height = _MARGIN_INCHES + _LINE_INCHES * max(len(labels), 2)
    figure = Figure(figsize=(_WIDTH_INCHES, height))
    # Estimate the room for labels from their length; measuring would draw everything twice.
    left = min(0.08 + 0.0095 * max(map(len, labels)), 0.6)
    bottom = (_MARGIN_INCHES - 0.1) / height
    axes: Axes = figure.add_axes((left, bottom, 0.97 - left, 1 - bottom - 0.1 / height))
    heights = range(len(labels), 0, -1)
    if zero:
        axes.axvline(0, color="0.6", linewidth=1)
    axes.errorbar(values, heights, xerr=errors, fmt="o", color="C0", capsize=3)
    if squares:
        axes.plot(squares, heights, "s", markerfacecolor="none", color="C1")
    axes.set_yticks(heights, labels)
    axes.set_ylim(0.3, len(labels) + 0.7)
    axes.set_xlabel(caption)
    return png(figure)
