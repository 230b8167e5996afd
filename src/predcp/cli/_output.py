"""Print rows as JSON lines, CSV or a table."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Columns of the formats for scripts that are too wide for a terminal.
_TOO_WIDE = ("device", "settings", "key")
FORMATS = ("table", "json", "csv")


def note_foreign_files(path: Path) -> None:
    """Say on standard error which files of a store a command leaves out."""
    from predcp import experiments

    for name in experiments.foreign_files(path):
        note = "left out: it holds no cells (`predcp store pack` did not write it)"
        print(f"predcp: {path / name} is {note}", file=sys.stderr)


def print_json_lines(rows: Sequence[Any]) -> None:
    """One JSON document per line."""
    for row in rows:
        print(json.dumps(row))


def print_rows(rows: list[dict[str, Any]], output_format: str) -> None:
    """Rows with the same fields, in one of `FORMATS`."""
    if output_format == "json":
        print_json_lines(rows)
    elif output_format == "csv":
        import csv

        writer = csv.DictWriter(sys.stdout, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
    else:
        print_table(rows)


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Rows as an aligned table, without columns that are empty everywhere."""
    from rich.console import Console
    from rich.table import Table

    columns = [
        name
        for name in (rows[0] if rows else ())
        if name not in _TOO_WIDE and any(row[name] is not None for row in rows)
    ]
    grid = Table(*columns)
    for row in rows:
        grid.add_row(*(_shown(row[name]) for name in columns))
    # A pipe has no width of its own.
    Console(width=None if sys.stdout.isatty() else 160).print(grid)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
