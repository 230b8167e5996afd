"""Choose part of a grid."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from predcp.experiments._baseline import is_baseline
from predcp.experiments._cell import Cell


class SelectionError(ValueError):
    """Nothing in the grid matches; the message lists the possible values."""


def parse_numbers(text: str, option: str) -> list[int]:
    """`5` is the first five; `0,3` and `2-4` (inclusive) are those numbers."""
    try:
        if "," not in text and "-" not in text:
            numbers = list(range(int(text)))
        else:
            numbers = []
            for piece in text.split(","):
                first, _, last = piece.partition("-")
                numbers += range(int(first), int(last or first) + 1)
    except ValueError:
        numbers = []
    if not numbers:
        raise SelectionError(f"{option} must be like 5, 0,3 or 2-4, got {text!r}")
    return sorted(set(numbers))


def select(
    cells: Sequence[Cell],
    data: Sequence[str] = (),
    prior: Sequence[str] = (),
    inference: Sequence[str] = (),
    splits: str | None = None,
    seeds: str | None = None,
    keys: Sequence[str] = (),
) -> list[Cell]:
    """The cells whose fields match every given choice.

    **Arguments:**

    - `data`, `prior`, `inference`: names, or patterns such as `fc100*`; base-rate cells stay,
        whatever the prior and inference.
    - `splits`: numbers the grid declares; `seeds`: numbers that replace the declared ones.
    - `keys`: the beginnings of cells' keys.
    """
    chosen = list(cells)
    for field, patterns in (("data", data), ("prior", prior), ("inference", inference)):
        if patterns:
            chosen = _matching(chosen, field, patterns)
    if splits is not None:
        wanted = parse_numbers(splits, "splits")
        declared = sorted({cell.split for cell in chosen})
        if not set(wanted) <= set(declared):
            raise SelectionError(
                f"splits go from {declared[0]} to {declared[-1]} here, got {splits!r}"
            )
        chosen = [cell for cell in chosen if cell.split in wanted]
    if seeds is not None:
        numbers = parse_numbers(seeds, "seeds")
        expanded = (
            cell if is_baseline(cell) else replace(cell, seed=seed)
            for cell in chosen
            for seed in numbers
        )
        chosen = list(dict.fromkeys(expanded))
    if keys:
        chosen = [cell for cell in chosen if cell.key.startswith(tuple(keys))]
        if not chosen:
            raise SelectionError(f"no cell's key begins with {' or '.join(keys)}")
    return chosen


def _matching(cells: list[Cell], field: str, patterns: Sequence[str]) -> list[Cell]:
    kept = {cell for cell in cells if field != "data" and is_baseline(cell)}
    present = sorted({getattr(cell, field) for cell in cells if cell not in kept})
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in present):
            raise SelectionError(
                f"no {field} is called {pattern!r} here; there are: {', '.join(present)}"
            )
    return [
        cell
        for cell in cells
        if cell in kept or any(fnmatchcase(getattr(cell, field), pattern) for pattern in patterns)
    ]
