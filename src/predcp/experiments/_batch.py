"""Run the cells of one group in one program, for a GPU."""

import time
import traceback
from collections.abc import Hashable, Sequence

from predcp._support.environment import environment
from predcp.experiments._cell import Cell
from predcp.experiments._engine import Report, reporting
from predcp.experiments._execute import execute, outcome
from predcp.experiments._models import resolve_model
from predcp.experiments._result import Context, Outcome

# Large enough for any group; held cells are claimed, and all are lost if the process dies.
_CAPACITY = 2000


class Batch:
    """Runs the cells of a group in one program, one group after another.

    For a model with `run_many`, `group_of` says which cells may share a program; cells of other models
    run one by one.
    """

    def __init__(
        self, context: Context, report: Report | None = None, together: int | None = None
    ) -> None:
        """**Arguments:** `together`, the most cells in one program (default: the model's own)."""
        if together is not None and together < 1:
            raise ValueError(f"together must be at least 1, got {together}")
        self._context, self._report, self._together = context, report, together
        self._waiting: list[Cell] = []

    @property
    def capacity(self) -> int:
        """All cells of a grid."""
        return _CAPACITY

    def submit(self, cell: Cell) -> None:
        """Keep the cell until its group is collected."""
        self._waiting.append(cell)

    def collect(self, timeout: float) -> list[tuple[Cell, Outcome]]:
        """Run the first group; a program cannot be cut short by `timeout`."""
        if not self._waiting:
            return []
        first = self._waiting[0]
        name, limit = _group(first), self._together or resolve_model(first.model).together
        cells = [cell for cell in self._waiting if _group(cell) == name][:limit]
        chosen = set(cells)
        self._waiting = [cell for cell in self._waiting if cell not in chosen]
        return list(zip(cells, execute_many(cells, self._context, self._report)))

    def close(self) -> None:
        """Forget the waiting cells."""
        self._waiting.clear()


def execute_many(
    cells: Sequence[Cell], context: Context, report: Report | None = None
) -> list[Outcome]:
    """Outcomes of the cells of one group; each has an equal share of the time."""
    run_many = resolve_model(cells[0].model).run_many
    if run_many is None:
        return [execute(cell, reporting(context, [cell], report)) for cell in cells]
    context = reporting(context, cells, report)
    started = time.perf_counter()
    try:
        results = run_many(cells, context)
        share = (time.perf_counter() - started) / len(cells)
        return [outcome(result, context, share) for result in results]
    except KeyboardInterrupt:
        raise
    except BaseException:
        share = (time.perf_counter() - started) / len(cells)
        failed = Outcome(share, environment(), traceback=traceback.format_exc())
        return [failed for _ in cells]


def _group(cell: Cell) -> Hashable:
    return cell.model, resolve_model(cell.model).group_of(cell)
