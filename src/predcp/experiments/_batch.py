"""Cells of one group in one program: what a GPU wants."""

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import cast

from predcp.experiments._cell import Cell
from predcp.experiments._environment import environment
from predcp.experiments._execute import execute, outcome
from predcp.experiments._models import resolve_model
from predcp.experiments._result import Context, Outcome, Result

RunMany = Callable[[Sequence[Cell], Context], list[Result]]
# Enough to hold any group; what is held is claimed, and lost together if the process dies.
_CAPACITY = 1000


class Batch:
    """Runs cells that differ in their split alone together, one group after another.

    A model offers it by a function `run_many(cells, context)` beside its `run`; cells of a model
    without one run one by one. A model whose cells share a program by another rule says so by a function
    `group(cell)`: cells with an equal answer are run together.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
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
        name = _group(self._waiting[0])
        cells = [cell for cell in self._waiting if _group(cell) == name]
        self._waiting = [cell for cell in self._waiting if _group(cell) != name]
        return list(zip(cells, execute_many(cells, self._context)))

    def close(self) -> None:
        """Forget the waiting cells."""
        self._waiting.clear()


def execute_many(cells: Sequence[Cell], context: Context) -> list[Outcome]:
    """Outcomes of cells that differ in their split alone; each has an equal share of the time."""
    run_many = _run_many(cells[0].model)
    if run_many is None:
        return [execute(cell, context) for cell in cells]
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


def _group(cell: Cell) -> tuple[object, ...]:
    own = getattr(sys.modules[resolve_model(cell.model).__module__], "group", None)
    if own is not None:
        return ("own", *own(cell))
    values = cell.to_json()
    return tuple(
        tuple(sorted(value.items())) if isinstance(value, dict) else value
        for name, value in sorted(values.items())
        if name != "split"
    )


def _run_many(model: str) -> RunMany | None:
    module = sys.modules[resolve_model(model).__module__]
    return cast("RunMany | None", getattr(module, "run_many", None))
