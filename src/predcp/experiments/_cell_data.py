"""The data a cell asks for: a named table, or a file pinned by its hash."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from predcp.data import DataError, Split, checked_missing, file_sha256, load_split
from predcp.experiments._cell import Cell
from predcp.experiments._result import Context


def cell_split(cell: Cell, context: Context) -> Split:
    """The cell's train, validation and test tables.

    The settings `target`, `missing` and `sha256` describe a file; named tables have none.
    """
    settings = cell.settings
    pinned = settings.get("sha256")
    if pinned is not None and file_sha256(Path(cell.data)) != pinned:
        raise DataError(f"{cell.data} has changed since the grid was listed; start the run again")
    target = settings.get("target")
    return load_split(
        cell.data,
        cell.split,
        context.data_directory,
        target=None if target is None else str(target),
        missing=checked_missing(str(settings.get("missing", "refuse"))),
    )


def on_file(
    cells: Iterable[Cell], path: str, target: str | None, missing: str = "refuse"
) -> list[Cell]:
    """The same grid on a file: a changed file is another data set, so its hash is a setting."""
    if target is None:
        raise DataError(f"{path} is a file: name its target column (target=..., or --target)")
    if not Path(path).is_file():
        raise DataError(f"there is no file {path}")
    pinned = {"target": target, "missing": missing, "sha256": file_sha256(Path(path))}
    return on_data(cells, path, pinned)


def on_data(cells: Iterable[Cell], name: str, settings: dict[str, str] | None = None) -> list[Cell]:
    """The same grid on another table."""
    moved = (
        replace(cell, data=name, settings={**cell.settings, **(settings or {})}) for cell in cells
    )
    return list(dict.fromkeys(moved))
