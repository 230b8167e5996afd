"""The base rate: the prediction without features, to which every prior is compared."""

from collections.abc import Sequence

from predcp.experiments._cell import Cell
from predcp.experiments._cell_data import FILE_SETTINGS

BASE_RATE = "base rate"
NO_INFERENCE = "none"


def baseline_cells(cells: Sequence[Cell], model: str) -> list[Cell]:
    """One base-rate cell for every split of every file in a grid.

    **Arguments:** `model`, the name of a model that ignores the features.
    """
    made = (
        Cell(
            cell.data,
            model,
            BASE_RATE,
            NO_INFERENCE,
            cell.split,
            settings={n: value for n, value in cell.settings.items() if n in FILE_SETTINGS},
        )
        for cell in cells
    )
    return list(dict.fromkeys(made))


def is_baseline(cell: Cell) -> bool:
    """Whether a cell is a base-rate cell."""
    return (cell.prior, cell.inference) == (BASE_RATE, NO_INFERENCE)
