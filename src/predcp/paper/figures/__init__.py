"""Every figure of the paper and its appendix, made with the public API of predcp.

`FIGURES` holds them by name; `predcp figures` writes them. A figure is a function that computes named
arrays and a function that draws them, so that the numbers can be had without the picture.
"""

from predcp.paper.figures import (
    _coefficient,
    _depth,
    _design,
    _functions,
    _lambda,
    _linear,
    _predictive,
    _shrinkage,
    _softmax,
)
from predcp.paper.figures._figure import Data, PaperFigure
from predcp.paper.figures._write import render, write

FIGURES: dict[str, PaperFigure] = {
    figure.name: figure
    for figure in (
        _linear.FIGURE,
        _predictive.FIGURE,
        _depth.JOINT,
        _depth.FUNCTIONS,
        _lambda.FIGURE,
        _shrinkage.FIGURE,
        _design.FIGURE,
        _coefficient.FIGURE,
        _softmax.FIGURE,
        _functions.FIGURE,
    )
}


def select(names: list[str]) -> list[PaperFigure]:
    """The figures of these names; all of them for none.

    **Arguments**: names, as in `FIGURES`.
    """
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        raise ValueError(f"no figure is called {unknown[0]!r}; there are: {', '.join(FIGURES)}")
    return [FIGURES[name] for name in names] if names else list(FIGURES.values())


__all__ = ["FIGURES", "Data", "PaperFigure", "render", "select", "write"]
