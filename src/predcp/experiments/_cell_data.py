"""The data of a cell: a named table, or a file pinned by its hash."""

import json
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from predcp.data import DataError, FileOptions, Split, Task, file_sha256, load_file, load_split
from predcp.experiments._cell import Cell, Setting
from predcp.experiments._result import Context

# The settings that describe a file; a cell of a named table has none of them.
FILE_SETTINGS = ("target", "sha256", *(field.name for field in fields(FileOptions)))

_KINDS: dict[Task, str] = {
    "regression": "numbers",
    "binary": "two classes",
    "multiclass": "several classes",
}


def cell_split(cell: Cell, context: Context) -> Split:
    """The train, validation and test tables of a cell."""
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
        options=_options(cell),
    )


def on_file(
    cells: Iterable[Cell],
    path: str,
    target: str | None,
    options: FileOptions | None = None,
    task: Task | None = None,
) -> list[Cell]:
    """The same grid on a file: a changed file is another data set, so its hash is a setting.

    A file that cannot be read, or whose target is not of kind `task`, is refused here and not by
    each cell.
    """
    if target is None:
        raise DataError(f"{path} is a file: name its target column with target=NAME")
    if not Path(path).is_file():
        raise DataError(f"there is no file {path}")
    table = load_file(path, target, options).table
    if task is not None and table.task != task:
        found = f"{len(table.class_names)} classes" if table.class_names else "numbers"
        raise DataError(
            f"{path}: this experiment needs {_KINDS[task]} in the target {target!r}, got {found}"
        )
    pinned: dict[str, Setting] = {"target": target, "sha256": file_sha256(Path(path))}
    return on_data(cells, path, pinned | _settings(options or FileOptions()))


def on_data(
    cells: Iterable[Cell], name: str, settings: dict[str, Setting] | None = None
) -> list[Cell]:
    """The same grid on another table."""
    moved = (
        replace(cell, data=name, settings={**cell.settings, **(settings or {})}) for cell in cells
    )
    return list(dict.fromkeys(moved))


def _settings(options: FileOptions) -> dict[str, Setting]:
    """Options that differ from the defaults, as plain values; `missing` always."""
    changed: dict[str, Any] = {
        field.name: getattr(options, field.name)
        for field in fields(options)
        if getattr(options, field.name) != field.default
    }
    if "drop" in changed:
        changed["drop"] = json.dumps(list(options.drop))
    return {"missing": options.missing} | changed


def _options(cell: Cell) -> FileOptions:
    found: dict[str, Any] = {
        field.name: cell.settings[field.name]
        for field in fields(FileOptions)
        if field.name in cell.settings
    }
    if "drop" in found:
        found["drop"] = tuple(json.loads(found["drop"]))
    return FileOptions(**found)
