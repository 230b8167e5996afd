"""Move a grid of cells to other data."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from predcp.data import FileOptions, Task, is_file_name, table_names
from predcp.experiments._baseline import baseline_cells
from predcp.experiments._cell import Cell, Setting
from predcp.experiments._cell_data import on_data, on_file
from predcp.experiments._select import SelectionError


def place_on_data(
    cells: Sequence[Cell],
    data: Sequence[str],
    target: str | None,
    options: FileOptions | None = None,
    file_settings: Mapping[str, Setting] | None = None,
    baseline: str | None = None,
    file_task: Task | None = None,
) -> list[Cell]:
    """The grid on each named data set: a declared one or pattern, another table, or a file.

    **Arguments:** `target` and `options` of a file; `file_settings`, `baseline` and
    `file_task` as in `Experiment`.
    """
    if not data:
        return list(cells)
    declared = list(dict.fromkeys(cell.data for cell in cells))
    # Settings may depend on the data set; another one gets those of the last declared.
    pattern_cells = [cell for cell in cells if cell.data == declared[-1]]
    chosen: list[Cell] = []
    for name in data:
        if is_file_name(name):
            moved = on_file(pattern_cells, name, target, options, file_task)
            if baseline is not None:
                chosen += baseline_cells(moved, baseline)
            extra = dict(file_settings or {})
            chosen += [replace(cell, settings={**cell.settings, **extra}) for cell in moved]
        elif any(fnmatchcase(known, name) for known in declared):
            chosen += [cell for cell in cells if fnmatchcase(cell.data, name)]
        elif name in table_names():
            chosen += on_data(pattern_cells, name)
        else:
            known = ", ".join(dict.fromkeys([*declared, *table_names()]))
            raise SelectionError(
                f"no data set is called {name!r}; there are: {known}; or a .csv, .tsv or .parquet file"
            )
    return list(dict.fromkeys(chosen))
