"""A figure of the paper: its numbers, how they are drawn, and what its caption says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Data = dict[str, np.ndarray]


@dataclass(frozen=True)
class PaperFigure:
    """One figure, as a function that computes and a function that draws.

    **Arguments**
    - `name`: on the command line and of its files.
    - `paper`: where it is in the paper.
    - `title`: one line for lists.
    - `panels`: rows and columns of axes.
    - `size`: width and height in inches.
    - `data`: from a number of points a curve to named arrays.
    - `draw`: from axes, an array of shape `panels`, and the data, to a picture.
    - `caption`: from the data to Markdown: what to see, what we chose, where the paper is wrong.
    - `points`: how many the finished figure has.
    """

    name: str
    paper: str
    title: str
    panels: tuple[int, int]
    size: tuple[float, float]
    data: Callable[[int], Data]
    draw: Callable[[Any, Data], None]
    caption: Callable[[Data], str]
    points: int = 400


def peak(
    density: Callable[[np.ndarray], Any], low: float, high: float, rounds: int = 8
) -> tuple[float, float]:
    """Where a curve is highest inside an interval, and how high, by ever finer grids.

    **Arguments**: the curve, the interval in which it has one maximum, and how often to refine.
    """
    at = height = np.nan
    for _ in range(rounds):
        grid = np.linspace(low, high, 41)
        values = np.asarray(density(grid))
        best = int(np.argmax(values))
        at, height = float(grid[best]), float(values[best])
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 40)]
    return at, height
