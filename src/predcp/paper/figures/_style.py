"""One style for every figure: small serif-free type, thin axes, colours the colour-blind can tell apart."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb

RC: Any = {
    "font.size": 8.0,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 8.0,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.4,
    "figure.constrained_layout.use": True,
    # Text in a PDF stays text, and PNGs are sharp on paper.
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
}
HORSESHOE: dict[str, Any] = {
    "color": "black",
    "linestyle": "--",
    "linewidth": 1.1,
    "label": "horseshoe",
}
NOTE = "#555555"


def shades(colour: str, count: int) -> list[str]:
    """From a light to a dark tone of one colour.

    **Arguments**: the colour, and how many.
    """
    tones = []
    for step in range(count):
        t = step / max(1, count - 1)
        # Half-way to white at first, and more than half-way to black at last.
        target, weight = (1.0, 0.6 * (1.0 - 2.0 * t)) if t < 0.5 else (0.0, 0.65 * (2.0 * t - 1.0))
        red, green, blue = ((1.0 - weight) * c + weight * target for c in to_rgb(colour))
        tones.append(to_hex((red, green, blue)))
    return tones


def panel(ax: Axes, letter: str, title: str, xlabel: str, ylabel: str, **limits: Any) -> None:
    """Title, labels and limits of one panel.

    **Arguments**: the axes, the panel's letter ("" for none), its words, and any of `Axes.set`'s.
    """
    ax.set(title=f"({letter}) {title}" if letter else title, xlabel=xlabel, ylabel=ylabel, **limits)
