"""The picture of an audit: where the present prior of each scale puts the predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from predcp.program._responses import RESPONSES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from predcp.program._audit import Audit, ScaleAudit

_FILL, _LINE, _ALARM = "#4c72b0", "#222222", "#c44e52"
_BINS = 40
# Histograms end here, in powers of ten; what lies beyond is in the last bar.
_NATS = (-6.0, 6.0)
_FIRST = ("rate_ratio", "odds_ratio", "noise_ratio")


def draw_audit(audit: Audit) -> Figure:
    """One row for each scale: the divergence on the left, the effect in your units on the right."""
    from matplotlib.figure import Figure

    count = len(audit.scales)
    figure = Figure(figsize=(9.0, 1.0 + 2.3 * count), layout="constrained")
    panels = figure.subplots(count, 2, squeeze=False)
    for row, each in zip(panels, audit.scales):
        _draw_divergence(row[0], each)
        _draw_response(row[1], each)
    return figure


def _draw_divergence(panel: Any, each: ScaleAudit) -> None:
    values = np.clip(each.draws["log_kappa"] / np.log(10.0), *_NATS)
    panel.hist(
        values, _BINS, range=_NATS, color=_FILL, weights=np.full(values.size, 1.0 / values.size)
    )
    for nats in (0.1, 1.0, 10.0):
        panel.axvline(np.log10(nats), color=_LINE, linewidth=0.8, linestyle=":")
    if np.isfinite(each.supremum):
        panel.axvline(np.log10(each.supremum), color=_ALARM, linewidth=1.2)
        panel.annotate(
            "saturated", (np.log10(each.supremum), 0.95), xycoords=("data", "axes fraction"),
            xytext=(3, 0), textcoords="offset points", color=_ALARM, fontsize=8, va="top",
        )  # fmt: skip
    ticks = [-6, -4, -2, -1, 0, 1, 2, 4, 6]
    panel.set_xticks(
        ticks, [f"$10^{{{tick}}}$" if abs(tick) > 1 else f"{10.0**tick:g}" for tick in ticks]
    )
    panel.set_xlabel("nats that a prediction moves, on average")
    panel.set_ylabel("share of the prior")
    panel.set_title(f"{each.scale} ~ {each.prior}", loc="left", fontsize=10)


def _draw_response(panel: Any, each: ScaleAudit) -> None:
    name = next((name for name in _FIRST if name in each.responses), None)
    if name is None:
        panel.axis("off")
        return
    values = np.asarray(each.draws[name], np.float64)
    # Ratios start at 1; nobody means more than a million.
    low, high = (0.0, 6.0) if name != "noise_ratio" else (-3.0, 4.0)
    with np.errstate(divide="ignore"):
        shown = np.clip(np.log10(values), low, high)
    panel.hist(
        shown, _BINS, range=(low, high), color=_FILL, weights=np.full(shown.size, 1 / shown.size)
    )
    ticks = np.arange(low, high + 0.5)
    panel.set_xticks(
        ticks, [f"{10.0**tick:g}" if abs(tick) < 4 else f"$10^{{{tick:.0f}}}$" for tick in ticks]
    )
    panel.set_xlabel(RESPONSES[name].words)
    middle = each.responses[name][1]
    panel.axvline(np.clip(np.log10(max(middle, 1e-30)), low, high), color=_LINE, linewidth=1.2)
    panel.set_title(f"median {middle:.3g}", loc="left", fontsize=10)
