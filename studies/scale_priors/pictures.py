"""Pictures of the page, from the store."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from predcp._support.png import png
from studies.scale_priors.compare import COUNTS, paired
from studies.scale_priors.designs import NAMES, SCALES
from studies.scale_priors.priors import OTHERS, OURS
from studies.scale_priors.situations import SITUATIONS
from studies.scale_priors.store import cells, part, simulated

FOLDER = Path(__file__).parents[2] / "docs" / "images"
COLOURS = {
    "predcp-gamma": "#D55E00",
    "predcp-log-cauchy": "#0072B2",
    "ecp-gamma": "#E69F00",
    "ecp-log-cauchy": "#56B4E9",
    "predcp-gamma-per": "#D55E00",
    "predcp-log-cauchy-per": "#0072B2",
}
GREY = "#8a8a8a"
# Difference in per cent at which the map's colours end.
_MOST = 15.0


def _bare(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)


def _label(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.annotate(
        text, (x, y), (6, 0), textcoords="offset points", va="center", color=colour, fontsize=8
    )


def _apart(values: list[float], least: float, low: float = 0.0, high: float = 100.0) -> list[float]:
    """Places of labels close to their values, at least so far apart, within bounds."""
    order = np.argsort(values, kind="stable")
    placed = np.asarray(values, float)[order]
    for _ in range(500):
        for i, j in pairwise(range(len(placed))):
            short = least - (placed[j] - placed[i])
            if short > 0.0:
                placed[i] -= 0.5 * short
                placed[j] += 0.5 * short
        placed = np.clip(placed, low, high)
    found = np.empty_like(placed)
    found[order] = placed
    return list(found)


def drift() -> Figure:
    """Prior probability of more than half a nat against the base rate."""
    figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    frame = part("drift")
    chosen = [*OTHERS, *OURS]
    lines = [frame[frame["prior"] == name].sort_values("rate") for name in chosen]
    ends = _apart([100.0 * line["probability"].iloc[-1] for line in lines], 4.5)
    for name, line, end in zip(chosen, lines, ends):
        colour, ours = COLOURS.get(name, GREY), name in OURS
        style = {"color": colour, "lw": 2.5 if ours else 1.2, "marker": "o", "ms": 4 if ours else 3}
        if name == "predcp-gamma":
            # On top of predcp-log-cauchy, which has the same probability.
            style |= {"ls": (0, (2, 2)), "lw": 2.0}
        order = 2 if not ours else 4 if name == "predcp-gamma" else 3
        axes.plot(line["rate"], 100.0 * line["probability"], zorder=order, **style)
        _label(axes, 100.0, end, name, colour)
    axes.set_xscale("log")
    axes.set_xlabel("base rate: events per row where the group effect is 0")
    axes.set_ylabel("prior probability, %")
    axes.set_title(
        "How likely is an effect of more than half a nat, before any data?", loc="left", fontsize=11
    )
    axes.set_ylim(-2, 102)
    axes.set_xlim(0.007, 1500)
    axes.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    axes.minorticks_off()
    _bare(axes)
    return figure


def where(other: str = "half-t") -> Figure:
    """Effect error of the sentence against one default, cell by cell."""
    shown = ("predcp-gamma", "predcp-log-cauchy")
    figure, panels = plt.subplots(1, 2, figsize=(8.6, 7.0), layout="constrained", sharey=True)
    designs = [name for name in NAMES if any(name == d for d, _ in cells())]
    base = simulated()["effect_error"]
    image = None
    for axes, ours in zip(panels, shown):
        values = np.full((len(designs), len(SCALES)), np.nan)
        for design, scale in cells():
            place = designs.index(design), SCALES.index(scale)
            found = paired(design, scale, ours, other, "effect_error")
            values[place] = 100.0 * found.mean / base[design, scale, other]
            sure = abs(found.ratio) > COUNTS
            axes.text(
                place[1],
                place[0],
                f"{values[place]:+.0f}" if abs(values[place]) >= 0.5 else "0",
                ha="center",
                va="center",
                fontsize=8,
                fontweight="bold" if sure else "normal",
                color="white" if abs(values[place]) > 0.7 * _MOST else "#222222",
            )
        image = axes.imshow(values, cmap="PuOr_r", vmin=-_MOST, vmax=_MOST, aspect="auto")
        axes.set_xticks(range(len(SCALES)), SCALES)
        axes.set_yticks(range(len(designs)), designs)
        axes.set_title(ours, color=COLOURS[ours], fontsize=11)
        axes.set_xlabel("true scale")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    assert image is not None
    bar = figure.colorbar(image, ax=panels, shrink=0.5, extend="both")
    bar.set_label(f"error of effects against {other}, %\n(purple: smaller; bold: beyond 2 errors)")
    return figure


def trade() -> Figure:
    """False claims where there is nothing against coverage where the scale is large."""
    frame = simulated()
    names = [name for name in (*OTHERS, *OURS)]
    figure, panels = plt.subplots(1, 2, figsize=(8.6, 4.2), layout="constrained", sharey=True)
    situations = (("all designs", NAMES), ("3 to 8 studies", SITUATIONS["3 to 8 studies"]))
    for axes, (title, designs) in zip(panels, situations):
        kept = [d for d in designs if (d, "none") in cells() and (d, "large") in cells()]
        false = [100.0 * np.mean([frame.loc[(d, "none", n), "claim"] for d in kept]) for n in names]
        covered = [
            100.0 * np.mean([frame.loc[(d, "large", n), "covered"] for d in kept]) for n in names
        ]
        ends = _apart(covered, 5.0, 2.0, 108.0)
        # All labels to the right of all points but the farthest.
        at = 0.35 * max(false)
        for name, x, y, end in zip(names, false, covered, ends):
            colour = COLOURS.get(name, GREY)
            axes.plot(x, y, "o", color=colour, ms=8 if name in OURS else 6, zorder=3)
            place = at if x < at else x + 0.04 * max(false)
            line = {"arrowstyle": "-", "color": colour, "lw": 0.6, "relpos": (0.0, 0.5)}
            axes.annotate(
                name, (x, y), (place, end), color=colour, fontsize=8, va="center", arrowprops=line
            )
        axes.axhline(90.0, color="#cccccc", lw=1, zorder=0)
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel("claims of variance where there is none, %")
        axes.set_xlim(-0.04 * max(false), 1.45 * max(false))
        axes.set_ylim(0.0, 112.0)
        # The room beyond is for labels: there are no such shares.
        axes.set_xticks([tick for tick in axes.get_xticks() if 0.0 <= tick <= 100.0])
        axes.set_yticks(range(0, 101, 20))
        _bare(axes)
    panels[0].set_ylabel("90% intervals that contain a large scale, %")
    return figure


def precise() -> Figure:
    """Coverage of the large scale where data are precise."""
    frame = simulated()
    wanted = ("schools-8", "schools-8-precise", "ticks-10", "ticks-100")
    designs = [name for name in wanted if (name, "large") in cells()]
    names = ["half-t", *OURS, "predcp-gamma-per", "predcp-log-cauchy-per"]
    figure, panels = plt.subplots(
        1, len(designs), figsize=(8.6, 3.2), layout="constrained", sharey=True, squeeze=False
    )
    for axes, design in zip(panels[0], designs):
        for row, name in enumerate(reversed(names)):
            found = frame.loc[(design, "large", name)]
            colour = COLOURS.get(name, GREY)
            hollow = {"mfc": "white"} if name.endswith("per") else {}
            mean, error = 100.0 * found["covered"], 200.0 * found["covered_error"]
            axes.errorbar(mean, row, xerr=error, fmt="o", color=colour, ms=7, **hollow)
        axes.axvline(90.0, color="#cccccc", lw=1, zorder=0)
        axes.set_xlim(-5, 105)
        axes.set_title(design, loc="left", fontsize=10)
        axes.set_yticks(range(len(names)), list(reversed(names)))
        axes.set_xlabel("coverage, %")
        _bare(axes)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "scale-priors-drift": drift,
    "scale-priors-where": where,
    "scale-priors-trade": trade,
    "scale-priors-precise": precise,
}


def draw() -> None:
    """Write every picture."""
    for name, picture in PICTURES.items():
        figure = picture()
        path = FOLDER / f"{name}.png"
        if name == "scale-priors-where":
            # A palette would leave too few colours for the map.
            figure.savefig(path, dpi=120, metadata={"Software": None})
        else:
            path.write_bytes(png(figure, dpi=150))
        plt.close(figure)
