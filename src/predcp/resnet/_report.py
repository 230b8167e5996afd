"""The layers of a fitted network as a table and a picture."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from predcp.resnet._layers import ALIVE, LayerFigures

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

_ALIVE_COLOUR, _DEAD_COLOUR = "#0072B2", "#BBBBBB"


@dataclass(frozen=True)
class LayerReport:
    """Which hidden layers a network uses.

    **Arguments**: `figures`, each with one number per layer, see `LayerFigures`; `notes`, lines below
    the table.
    """

    figures: LayerFigures
    notes: tuple[str, ...] = ()

    @property
    def alive(self) -> np.ndarray:
        """Whether removing a layer changes the mean prediction by more than .01 nats per point."""
        return np.asarray(self.figures.effect) > ALIVE

    @property
    def table(self) -> pandas.DataFrame:
        """One row per layer."""
        import pandas

        columns = {name: np.asarray(values) for name, values in self.figures._asdict().items()}
        index = pandas.RangeIndex(1, len(self.alive) + 1, name="layer")
        return pandas.DataFrame({**columns, "alive": self.alive}, index=index)

    def __str__(self) -> str:
        count, live = len(self.alive), int(self.alive.sum())
        title = f"{live} of {count} hidden layers above the first are alive"
        table = self.table.to_string(float_format=_number)
        return "\n".join([title, "", table, "", *self.notes]).rstrip()

    def _repr_html_(self) -> str:
        below = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return self.table.to_html(float_format=_number) + below

    def plot(self, ax: Axes | None = None) -> Axes:
        """Effect (bars), complexity and acting scale (marks) of every layer, on a log axis.

        **Arguments**: `ax`, matplotlib axes, new ones when None.
        """
        import matplotlib.pyplot as plt

        from predcp.plot import _axes

        ax = plt.subplots()[1] if ax is None else _axes(ax)
        layers = np.arange(1, len(self.alive) + 1)
        colours: list[Any] = [_ALIVE_COLOUR if live else _DEAD_COLOUR for live in self.alive]
        floor = 1e-12
        # A logarithmic axis has no zero: a shortest bar shows that the layer exists.
        ax.bar(layers, np.maximum(self.figures.effect, floor), color=colours, label="effect (nats)")
        ax.plot(
            layers,
            np.maximum(self.figures.kappa, floor),
            "o",
            color="#D55E00",
            label=r"$\kappa$ (nats)",
        )
        ax.plot(
            layers,
            np.maximum(self.figures.acting_scale, floor),
            "_",
            color="black",
            markersize=14,
            label=r"acting scale $\lambda^2 \tau$",
        )
        ax.axhline(ALIVE, color="black", linewidth=0.8, linestyle="--", label="alive above")
        ax.set(yscale="log", xlabel="layer", xticks=layers)
        ax.legend()
        return ax


def _number(value: float) -> str:
    return f"{value:.3g}"
