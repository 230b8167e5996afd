"""A pair of histograms on the same axes: the present prior, and the one of the sentence."""

from collections.abc import Callable

import numpy as np

from predcp.explore._sentence import Unit
from predcp.explore._svg import GREY, INK, Panel

BINS = 36
_PRESENT, _YOURS = "#7b8794", "#D55E00"
# Decades of the present prior that an axis shows beyond the range of the stated prior.
_DECADES_BELOW, _DECADES_ABOVE, _RATIO_DECADES = 4.0, 4.0, 1.5


def pair_of_charts(
    unit: Unit,
    present: np.ndarray,
    shares: Callable[[np.ndarray], np.ndarray],
    quantiles: np.ndarray,
    stated: float | None,
    prior: str,
    low: float,
) -> list[str]:
    """Two charts as SVG.

    **Arguments**
    - `unit`: of the axis.
    - `present`: draws of the quantity under the present prior.
    - `shares`: from edges of bars to the shares of the sentence's prior.
    - `quantiles`: of the sentence's prior, for a logarithmic axis.
    - `stated`: the upper value of the sentence, if it is in this unit.
    - `prior`: the present prior in words.
    - `low`: the left end of an axis that the unit leaves open.
    """
    if unit.log:
        edges = _decades(unit, present, quantiles)
    else:
        edges = np.linspace(low if unit.low is None else unit.low, unit.high or 1.0, BINS + 1)
    inside = np.clip(present, edges[0], edges[-1])
    counts = np.histogram(inside, edges)[0] / max(inside.size, 1)
    yours = shares(edges)
    top = 1.08 * float(max(counts.max(), yours.max()))
    charts = []
    for title, heights, colour, other in (
        (f"Present: {prior}", counts, _PRESENT, None),
        ("Yours", yours, _YOURS, counts),
    ):
        panel = Panel(
            title, unit.axis, "share of the prior", (edges[0], edges[-1]), (0.0, top), xlog=unit.log
        )
        panel.bars(edges, heights, colour)
        if other is not None:
            panel.bars(edges, other, GREY, outline=True)
        if stated is not None:
            panel.line([stated, stated], [0.0, top], INK, label="your value", dash="5 4", width=1.4)
        charts.append(panel.render())
    return charts


def _decades(unit: Unit, present: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Edges of equal ratio over whole decades that hold nearly all of both priors."""
    with np.errstate(divide="ignore"):
        drawn = np.log10(
            np.clip(np.quantile(present, [0.02, 0.5, 0.98], method="nearest"), 1e-30, 1e30)
        )
        solved = np.log10(np.clip(quantiles, 1e-30, 1e30))
    if unit.low is not None:
        high = min(max(drawn[2], solved[2]), solved[2] + _RATIO_DECADES)
        return np.logspace(np.log10(unit.low), max(np.ceil(high), 1.0), BINS + 1)
    low = max(min(drawn[0], solved[0]), solved[1] - _DECADES_BELOW)
    high = min(max(drawn[2], solved[2]), solved[1] + _DECADES_ABOVE)
    low, high = np.floor(low), np.ceil(high)
    return np.logspace(low, max(high, low + 1.0), BINS + 1)
