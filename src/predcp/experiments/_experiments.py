"""Experiments by name: grids of cells, and what is known about them."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from predcp.experiments._cell import Cell, Setting
from predcp.experiments._select import SelectionError


@dataclass(frozen=True)
class PublishedFigure:
    """A published mean and the error printed with it."""

    mean: float
    error: float


# By data set, prior, inference and metric.
Published = Mapping[tuple[str, str, str, str], PublishedFigure]


@dataclass(frozen=True)
class Experiment:
    """A declared experiment.

    **Arguments:**

    - `cells()`: the grid.
    - `published()`: figures to show beside ours; `notes`: how to read them.
    - `names`: priors and inferences in words, for reports.
    - `file_settings`: settings of cells that are moved to a user's file.
    - `baseline`: the model that makes a report's base-rate row on a user's file; None for no row.
    """

    cells: Callable[[], list[Cell]]
    published: Callable[[], Published] = dict
    notes: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    file_settings: Mapping[str, Setting] = field(default_factory=dict)
    baseline: str | None = None

    def name(self, label: str) -> str:
        """A prior or an inference in words; what sets variants apart stays: `PredCP [width=50]`."""
        prior, bracket, variant = label.partition("[")
        known = self.names.get(prior, prior)
        return f"{known} [{variant}" if bracket else known


_REGISTERED: dict[str, Experiment] = {}


def register_experiment(name: str, experiment: Experiment) -> None:
    """Let `experiment_cells`, reports and the command line know an experiment by name."""
    _REGISTERED[name] = experiment


def registered_experiments() -> Mapping[str, Experiment]:
    """The registered experiments by name."""
    return dict(_REGISTERED)


def find_experiment(name: str) -> tuple[str, Experiment]:
    """The folder name and the experiment of a registered name or of `"module:function"`."""
    if name in _REGISTERED:
        return name, _REGISTERED[name]
    module_name, separator, function_name = name.partition(":")
    if not separator:
        raise SelectionError(
            f"no experiment is called {name!r}; there are: {', '.join(_REGISTERED) or 'none'}; or "
            "give 'module:function'"
        )
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise SelectionError(f"cannot find the experiment {name!r}: {error}") from error
    return function_name, Experiment(function)


def experiment_cells(name: str) -> tuple[str, list[Cell]]:
    """The folder name and the cells of a registered experiment or of `"module:function"`."""
    folder, experiment = find_experiment(name)
    cells = list(experiment.cells())
    if not cells or not all(isinstance(cell, Cell) for cell in cells):
        raise SelectionError(f"{name} must return a list of predcp.experiments.Cell")
    return folder, cells
