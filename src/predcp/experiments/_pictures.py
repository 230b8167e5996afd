"""A report's plots: means beside the paper's, and paired differences."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from predcp.experiments._document import Picture
from predcp.experiments._paper import PaperFigure
from predcp.experiments._statistics import Pair, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# More lines than this on one plot cannot be read.
_MOST_LINES = 40


def mean_picture(
    metric: str, rows: Sequence[Row], paper: dict[tuple[str, str, str, str], PaperFigure]
) -> Picture:
    """Means with standard errors, and the paper's figures as hollow markers."""
    shown = list(rows[:_MOST_LINES])
    figure, axes = _figure(len(shown))
    for height, row in enumerate(reversed(shown)):
        axes.errorbar(row.mean, height, xerr=row.se or 0, fmt="o", color="C0", capsize=3)
        printed = paper.get((row.data, row.prior, row.inference, metric))
        if printed is not None:
            axes.plot(printed.mean, height, "s", markerfacecolor="none", color="C1")
    labels = [f"{row.data}  {row.prior}  {row.inference}" for row in reversed(shown)]
    axes.set_yticks(range(len(shown)), labels)
    axes.set_xlabel(f"{metric}: ours (filled, standard error), the paper's (square)")
    return Picture(f"{metric}.png", f"{metric} by data, prior and inference", _png(figure))


def pair_picture(metric: str, pairs: Sequence[Pair]) -> Picture:
    """Paired differences with standard errors; to the right the first prior is better."""
    shown = list(pairs[:_MOST_LINES])
    figure, axes = _figure(len(shown))
    for height, pair in enumerate(reversed(shown)):
        error = pair.se or 0
        axes.errorbar(pair.difference, height, xerr=error, fmt="o", color="C0", capsize=3)
    labels = [
        f"{pair.data}  {pair.first} - {pair.second}  {pair.inference}" for pair in reversed(shown)
    ]
    axes.set_yticks(range(len(shown)), labels)
    axes.axvline(0, color="0.6", linewidth=1)
    axes.set_xlabel(f"paired difference in {metric}, better to the right")
    return Picture(f"{metric}-paired.png", f"paired differences in {metric}", _png(figure))


def _figure(lines: int) -> tuple[Figure, Axes]:
    # Without pyplot: no global state, and a third of its import time.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1.2 + 0.28 * lines), layout="constrained")
    return figure, figure.subplots()


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    # Without the version of matplotlib inside, equal results give equal files.
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    return buffer.getvalue()
