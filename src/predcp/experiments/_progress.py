"""Show how a run is going: a live view on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, Protocol, TextIO

from predcp.experiments._cell import Cell


class Progress(Protocol):
    """The events that a runner and its engine report; by default nothing is done."""

    def start(self, total: int, finished: int, failed: int, workers: int) -> None:
        """The grid's size and what was already there."""

    def started(self, cell: Cell) -> None:
        """A cell was handed to the engine."""

    def moved(self, cells: Sequence[Cell], done: int, total: int, words: str) -> None:
        """Progress of cells that are fitted together: `done` of `total` pieces, described by `words`."""

    def ended(self, cell: Cell, failed: bool, elsewhere: bool = False) -> None:
        """A cell ended here, or in another runner."""

    def note(self, message: str) -> None:
        """Any other message."""

    def close(self) -> None:
        """The run is over."""


class Silent(Progress):
    """Shows nothing."""


class Counts:
    """Cells done, running and failed, and the time left."""

    def __init__(self, total: int, finished: int, failed: int) -> None:
        self.total, self.finished, self.failed, self.running = total, finished, failed, 0
        self._ended_here = 0
        self._began = time.monotonic()

    def start(self) -> None:
        """One more is running."""
        self.running += 1

    def end(self, failed: bool, elsewhere: bool) -> None:
        """One has ended."""
        self.failed += failed
        self.finished += not failed
        if not elsewhere:
            self.running -= 1
            self._ended_here += 1

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first cell has ended here."""
        if not self._ended_here:
            return None
        remaining = self.total - self.finished - self.failed
        return remaining * (time.monotonic() - self._began) / self._ended_here

    def __str__(self) -> str:
        left = self.seconds_left
        end = "" if left is None else f", about {duration(left)} left"
        return (
            f"{self.finished} of {self.total} done, {self.running} running, "
            f"{self.failed} failed{end}"
        )


class Lines:
    """Plain lines, at most one every two seconds besides notes; one after ten seconds of silence."""

    def __init__(
        self, stream: TextIO | None = None, every: float = 2.0, silence: float = 10.0
    ) -> None:
        """**Arguments:** where to write (default: standard error); seconds between lines; seconds
        without a line after which one says what is running."""
        self._stream = stream or sys.stderr
        self._every, self._silence = every, silence
        self._running: dict[Cell, float] = {}
        self._progress: dict[Cell, str] = {}
        self._over = threading.Event()
        self._last_line = float("-inf")
        self._last_note = ""
        self._counts = Counts(0, 0, 0)

    def start(self, total: int, finished: int, failed: int, workers: int) -> None:
        """One line about the grid."""
        self._counts = Counts(total, finished, failed)
        self._write(
            f"{total} cells, {finished} already done, {failed} failed before, "
            f"up to {workers} at a time"
        )
        self._last_line = time.monotonic()
        threading.Thread(target=self._break_silence, daemon=True).start()

    def started(self, cell: Cell) -> None:
        """Counts the cell."""
        self._counts.start()
        self._running[cell] = time.monotonic()

    def moved(self, cells: Sequence[Cell], done: int, total: int, words: str) -> None:
        """A line, if the last one is old enough."""
        self._progress[cells[0]] = describe(cells, done, total, words)
        self._write_now_and_then(f"{self._counts}; {self._progress[cells[0]]}")

    def ended(self, cell: Cell, failed: bool, elsewhere: bool = False) -> None:
        """A line, if the last one is old enough."""
        self._counts.end(failed, elsewhere)
        self._running.pop(cell, None)
        self._progress.pop(cell, None)
        self._write_now_and_then(str(self._counts))

    def note(self, message: str) -> None:
        """A line, unless it repeats the last note."""
        if message != self._last_note:
            self._last_note = message
            self._write(message)

    def close(self) -> None:
        """The final counts."""
        self._over.set()
        self._write(str(self._counts))

    def _break_silence(self) -> None:
        """Show what is running while a model compiles or does not report progress."""
        while not self._over.wait(self._silence / 10):
            first = next(iter(list(self._running.items())), None)
            if first is None or time.monotonic() - self._last_line < self._silence:
                continue
            cell, since = first
            words = self._progress.get(cell, describe([cell], 0, 0, "running"))
            took = duration(time.monotonic() - since)
            self._write_now_and_then(f"{self._counts}; {words}, for {took} so far")

    def _write_now_and_then(self, line: str) -> None:
        if time.monotonic() - self._last_line >= self._every:
            self._last_line = time.monotonic()
            self._write(line)

    def _write(self, line: str) -> None:
        print(time.strftime("%H:%M:%S"), line, file=self._stream, flush=True)


class Live:
    """A bar with counts and the running cells, redrawn in place."""

    def __init__(self, console: Any = None) -> None:
        """**Arguments:** a `rich` console (default: one on standard error)."""
        from rich.console import Console
        from rich.live import Live as RichLive

        self._counts = Counts(0, 0, 0)
        self._running: dict[Cell, float] = {}
        self._progress: dict[Cell, str] = {}
        self._last_note = ""
        self._console = console or Console(stderr=True)
        self._live = RichLive(console=self._console, get_renderable=self._view)

    def start(self, total: int, finished: int, failed: int, workers: int) -> None:
        """Open the view."""
        self._counts = Counts(total, finished, failed)
        self._live.start()

    def started(self, cell: Cell) -> None:
        """Show the cell."""
        self._counts.start()
        self._running[cell] = time.monotonic()

    def moved(self, cells: Sequence[Cell], done: int, total: int, words: str) -> None:
        """Show how far the cells are, beside the first of them."""
        self._progress[cells[0]] = describe(cells, done, total, words)

    def ended(self, cell: Cell, failed: bool, elsewhere: bool = False) -> None:
        """Count the cell."""
        self._counts.end(failed, elsewhere)
        self._running.pop(cell, None)
        self._progress.pop(cell, None)

    def note(self, message: str) -> None:
        """A line above the view, unless it repeats the last note."""
        if message != self._last_note:
            self._last_note = message
            self._console.print(message, markup=False, highlight=False)

    def close(self) -> None:
        """Leave the final state on the screen."""
        self._running.clear()
        self._live.stop()

    def _view(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        counts = self._counts
        bar = ProgressBar(total=max(counts.total, 1), completed=counts.finished + counts.failed)
        now = time.monotonic()
        running = list(self._running.items())
        # First the cells that report progress; one line for a whole batch.
        running.sort(key=lambda item: item[0] not in self._progress)
        shown = [
            Text(
                f"  {duration(now - since):>6}  {self._progress.get(cell, cell.name)}",
                style="dim",
                no_wrap=True,
            )
            for cell, since in running[:8]
        ]
        # The bar ends no line, so it comes last.
        return Group(Text(str(counts)), *shown, bar)


def choose_progress(quiet: bool = False) -> Progress:
    """The live view where standard error is a terminal, lines otherwise."""
    if quiet:
        return Silent()
    return Live() if sys.stderr.isatty() else Lines()


def describe(cells: Sequence[Cell], done: int, total: int, words: str) -> str:
    """`breast, predcp, split 3: 200 of 3000 draws`, or how many cells are fitted together."""
    first = cells[0]
    name = f"{first.data}, {first.prior}, split {first.split}"
    if len(cells) > 1:
        name = f"{first.data}, {len(cells)} fits together"
    amount = f"{done} of {total} {words}".rstrip() if total else words
    return f"{name}: {amount}"


def duration(seconds: float) -> str:
    """`12s`, `3m05s` or `2h07m`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
