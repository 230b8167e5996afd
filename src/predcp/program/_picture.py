"""The picture of an audit: where the present prior of each scale puts the predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from predcp.program._responses import RESPONSES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from predcp.program._audit import Audit, ScaleAudit

_FILL, _LINE, _ALARM, _NOTE = "#4c72b0", "#222222", "#c44e52", "#555555"
_BINS = 40
# Ends of the histograms as powers of ten; the first and last bars hold everything beyond.
_NATS = (-5.0, 5.0)
_RATIOS, _NOISE = (0.0, 6.0), (-3.0, 4.0)
_FIRST = ("rate_ratio", "odds_ratio", "noise_ratio")
_THRESHOLDS = (0.1, 1.0, 10.0)


def draw_audit(audit: Audit) -> Figure:
    """One row per scale: the effect in units of the response (left), the divergence (right)."""
    from matplotlib.figure import Figure

    count = len(audit.scales)
    figure = Figure(figsize=(10.0, 0.8 + 2.6 * count), layout="constrained")
    figure.suptitle("What the present priors say about predictions", x=0.01, ha="left")
    panels = figure.subplots(count, 2, squeeze=False)
    for row, each in zip(panels, audit.scales):
        row[0].set_title(f"{each.scale} ~ {each.prior}", loc="left", fontweight="bold")
        _draw_response(row[0], each)
        _draw_divergence(row[1], each)
        for panel in row:
            panel.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_bars(panel: Any, powers: np.ndarray, ends: tuple[float, float], step: int) -> float:
    """A histogram over powers of ten, in percent; returns the share beyond its end."""
    beyond = float(np.mean(powers > ends[1]))
    shares = np.full(powers.size, 100.0 / powers.size)
    _, _, bars = panel.hist(np.clip(powers, *ends), _BINS, range=ends, color=_FILL, weights=shares)
    if beyond > 0.0:
        bars[-1].set_facecolor(_ALARM)
    ticks = np.arange(ends[0], ends[1] + 0.5, step)
    panel.set_xticks(ticks, [_power_of_ten(tick) for tick in ticks])
    panel.set_xlim(ends[0], ends[1] + 0.01)
    panel.set_ylabel("% of the prior")
    # Room for words above the bars.
    panel.set_ylim(0.0, 1.25 * panel.get_ylim()[1])
    return beyond


def _draw_divergence(panel: Any, each: ScaleAudit) -> None:
    powers = each.draws["log_kappa"] / np.log(10.0)
    _draw_bars(panel, powers, _NATS, 1)
    cuts = np.log10(_THRESHOLDS)
    for cut in cuts:
        panel.axvline(cut, color=_LINE, linewidth=0.8, linestyle=":")
    edges = [-np.inf, *cuts, np.inf]
    middles = [(_NATS[0] + cuts[0]) / 2, *(cuts[:-1] + cuts[1:]) / 2, (cuts[-1] + _NATS[1]) / 2]
    for low, high, middle in zip(edges, edges[1:], middles):
        share = np.mean((powers > low) & (powers <= high))
        panel.annotate(
            f"{share:.0%}", (middle, 0.98), xycoords=("data", "axes fraction"), ha="center", va="top",
            color=_NOTE, fontsize=9,
        )  # fmt: skip
    if np.isfinite(each.supremum):
        panel.axvline(np.log10(each.supremum), color=_ALARM, linewidth=1.2)
        panel.annotate(
            f"saturated at about {each.supremum:.2g}", (np.log10(each.supremum), 0.86),
            xycoords=("data", "axes fraction"), xytext=(4, 0), textcoords="offset points",
            color=_ALARM, fontsize=9, va="top",
        )  # fmt: skip
    panel.set_xlabel("mean divergence of predictions (nats)")


def _draw_response(panel: Any, each: ScaleAudit) -> None:
    name = next((name for name in _FIRST if name in each.responses), None)
    if name is None:
        panel.axis("off")
        return
    ends = _NOISE if name == "noise_ratio" else _RATIOS
    with np.errstate(divide="ignore"):
        powers = np.log10(np.asarray(each.draws[name], np.float64))
    beyond = _draw_bars(panel, powers, ends, 1)
    middle = each.responses[name][1]
    at = float(np.clip(np.log10(max(middle, 1e-30)), *ends))
    panel.axvline(at, color=_LINE, linewidth=1.2)
    right = at < np.mean(ends)
    panel.annotate(
        f"median {middle:.3g}", (at, 0.98), xycoords=("data", "axes fraction"),
        xytext=(4 if right else -4, 0), textcoords="offset points", va="top",
        ha="left" if right else "right", fontsize=9, color=_LINE,
    )  # fmt: skip
    if beyond >= 0.005:
        panel.annotate(
            f"{beyond:.0%} beyond", (ends[1], 0.86), xycoords=("data", "axes fraction"), ha="right",
            va="top", color=_ALARM, fontsize=9,
        )  # fmt: skip
    panel.set_xlabel(RESPONSES[name].words)


def _power_of_ten(power: float) -> str:
    return f"{10.0**power:,g}" if abs(power) <= 3 else f"$10^{{{power:.0f}}}$"
