"""Make a figure: a matplotlib figure from its data, and its files."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from predcp.paper.figures._figure import Data, PaperFigure
from predcp.paper.figures._style import RC


def render(figure: PaperFigure, data: Data | None = None, points: int | None = None) -> Figure:
    """The picture.

    **Arguments**: the figure; its data, computed when None; points per curve, its own when None.
    """
    data = figure.data(points or figure.points) if data is None else data
    with matplotlib.rc_context(RC):
        canvas = Figure(figsize=figure.size)
        FigureCanvasAgg(canvas)
        axes = canvas.subplots(*figure.panels, squeeze=False)
        figure.draw(axes, data)
        # Positions are settled here, under our style.
        canvas.draw_without_rendering()
    return canvas


def write(
    figure: PaperFigure,
    folder: str | Path,
    points: int | None = None,
    keep_data: bool = False,
) -> list[Path]:
    """Save NAME.pdf, NAME.png, NAME.md (the caption) and, if asked, NAME.npz (the numbers).

    **Arguments**: the figure, the folder (made if need be), points per curve, whether to keep the numbers.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data = figure.data(points or figure.points)
    paths = [folder / f"{figure.name}.{ending}" for ending in ("pdf", "png", "md")]
    with matplotlib.rc_context(RC):
        canvas = render(figure, data)
        # Without the time of day the same numbers give the same bytes.
        canvas.savefig(paths[0], metadata={"CreationDate": None})
        canvas.savefig(paths[1], metadata={"Software": None})
    heading = f"# {figure.paper}: {figure.title}\n\n![{figure.title}]({figure.name}.png)\n\n"
    paths[2].write_text(heading + figure.caption(data), encoding="utf-8")
    if keep_data:
        paths.append(folder / f"{figure.name}.npz")
        np.savez(paths[-1], allow_pickle=False, **data)
    return paths
