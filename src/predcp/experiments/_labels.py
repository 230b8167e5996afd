"""Names of priors that distinguish all fits."""

from collections import defaultdict
from collections.abc import Sequence

from predcp.experiments._cell import Cell


def prior_labels(cells: Sequence[Cell]) -> dict[Cell, str]:
    """Each cell's prior; where one data x prior x inference has several models or settings, with
    what sets them apart: `predcp[width=50]`."""
    groups: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.data, cell.prior, cell.inference].append(cell)
    labels = {}
    for group in groups.values():
        described = {cell: _description(cell) for cell in group}
        names = sorted({name for values in described.values() for name in values})
        telling = [
            name for name in names if len({values.get(name) for values in described.values()}) > 1
        ]
        for cell, values in described.items():
            variant = ",".join(f"{name}={values.get(name, 'none')}" for name in telling)
            labels[cell] = f"{cell.prior}[{variant}]" if variant else cell.prior
    return labels


def _description(cell: Cell) -> dict[str, str]:
    values = {
        name: str(value)
        for name, value in cell.settings.items()
        if name not in ("target", "sha256")
    }
    return {"model": cell.model, **values}
