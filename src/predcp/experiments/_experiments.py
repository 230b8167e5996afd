"""Experiments by name: grids of cells, published figures and notes."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from predcp.data import Task
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
    - `file_task`: the kind of target that a user's file must have; None for any.
    """

    cells: Callable[[], list[Cell]]
    published: Callable[[], Published] = dict
    notes: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    file_settings: Mapping[str, Setting] = field(default_factory=dict)
    baseline: str | None = None
    file_task: Task | None = None

    def name(self, label: str) -> str:
        """A prior or an inference in words, with the settings of a variant: `PredCP [width=50]`."""
        prior, bracket, variant = label.partition("[")
        known = self.names.get(prior, prior)
        return f"{known} [{variant}" if bracket else known


_REGISTERED: dict[str, Experiment] = {}


def register_experiment(name: str, experiment: Experiment) -> None:
    """Register an experiment by name, for `experiment_cells`, reports and the command line."""
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


def with_network(name: str, network: str) -> str:
    """The experiment that runs another network, registered as NAME-NETWORK."""
    found = [
        own
        for other, experiment in _REGISTERED.items()
        if other.startswith(f"{name}-")
        and (own := other.removeprefix(f"{name}-"))
        in {cell.settings.get("network") for cell in experiment.cells()}
    ]
    if network not in found:
        raise SelectionError(
            f"{name} has no network {network!r}; there are: {', '.join(found) or 'none but its own'}"
        )
    return f"{name}-{network}"


def experiment_cells(name: str) -> tuple[str, list[Cell]]:
    """The folder name and the cells of a registered experiment or of `"module:function"`."""
    folder, experiment = find_experiment(name)
    cells = list(experiment.cells())
    if not cells or not all(isinstance(cell, Cell) for cell in cells):
        raise SelectionError(f"{name} must return a list of predcp.experiments.Cell")
    return folder, cells
