"""Engines that run cells: the protocol, and the simplest engine."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from predcp.experiments._cell import Cell
from predcp.experiments._execute import execute
from predcp.experiments._result import Context, Outcome

# Called with running cells and their progress: `done` of `total` pieces, and what they are.
Report = Callable[[Sequence[Cell], int, int, str], None]


def reporting(context: Context, cells: Sequence[Cell], report: Report | None) -> Context:
    """The context of running cells: the progress of their fit goes to `report`."""
    if report is None:
        return context
    return replace(context, progress=lambda *progress: report(cells, *progress))


class Engine(Protocol):
    """Runs cells and returns outcomes; it does not know the store."""

    @property
    def capacity(self) -> int:
        """How many cells to hold at once."""
        ...

    def submit(self, cell: Cell) -> None:
        """Accept a cell; called while fewer than `capacity` are held."""
        ...

    def collect(self, timeout: float) -> list[tuple[Cell, Outcome]]:
        """Cells that ended; waits at most `timeout` seconds for the first."""
        ...

    def close(self) -> None:
        """Stop at once; cells in flight are lost."""
        ...


class InProcess:
    """One cell after another in this process."""

    def __init__(self, context: Context, report: Report | None = None) -> None:
        self._context, self._report = context, report
        self._waiting: deque[Cell] = deque()

    @property
    def capacity(self) -> int:
        """One cell at a time."""
        return 1

    def submit(self, cell: Cell) -> None:
        """Keep the cell until it is collected."""
        self._waiting.append(cell)

    def collect(self, timeout: float) -> list[tuple[Cell, Outcome]]:
        """Run the waiting cells; a cell in this process cannot be cut short by `timeout`."""
        ended = [
            (cell, execute(cell, reporting(self._context, [cell], self._report)))
            for cell in self._waiting
        ]
        self._waiting.clear()
        return ended

    def close(self) -> None:
        """Forget the waiting cells."""
        self._waiting.clear()
