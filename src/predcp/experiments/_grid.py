"""The cells a user asked for: a declared or importable experiment, on chosen data."""

import importlib
from collections.abc import Sequence
from fnmatch import fnmatchcase

from predcp.data import is_file_name, table_names
from predcp.experiments._cell import Cell
from predcp.experiments._cell_data import on_data, on_file
from predcp.experiments._select import SelectionError
from predcp.experiments.tables import EXPERIMENTS


def experiment_cells(name: str) -> tuple[str, list[Cell]]:
    """The folder name and the cells of a declared experiment or of `"module:function"`."""
    if name in EXPERIMENTS:
        return name, EXPERIMENTS[name]()
    module_name, separator, function_name = name.partition(":")
    if not separator:
        raise SelectionError(
            f"no experiment is called {name!r}; there are: {', '.join(EXPERIMENTS)}; or give "
            "'module:function'"
        )
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise SelectionError(f"cannot find the experiment {name!r}: {error}") from error
    cells = list(function())
    if not cells or not all(isinstance(cell, Cell) for cell in cells):
        raise SelectionError(f"{name} must return a list of predcp.experiments.Cell")
    return function_name, cells


def place_on_data(
    cells: Sequence[Cell], data: Sequence[str], target: str | None, missing: str = "refuse"
) -> list[Cell]:
    """The grid on each named data set: a declared one or pattern, another table, or a file."""
    if not data:
        return list(cells)
    declared = list(dict.fromkeys(cell.data for cell in cells))
    # Settings may depend on the data set; another one gets those of the last declared.
    pattern_cells = [cell for cell in cells if cell.data == declared[-1]]
    chosen: list[Cell] = []
    for name in data:
        if is_file_name(name):
            chosen += on_file(pattern_cells, name, target, missing)
        elif any(fnmatchcase(known, name) for known in declared):
            chosen += [cell for cell in cells if fnmatchcase(cell.data, name)]
        elif name in table_names():
            chosen += on_data(pattern_cells, name)
        else:
            known = ", ".join(dict.fromkeys([*declared, *table_names()]))
            raise SelectionError(
                f"no data set is called {name!r}; there are: {known}; or a .csv or .parquet file"
            )
    return list(dict.fromkeys(chosen))
