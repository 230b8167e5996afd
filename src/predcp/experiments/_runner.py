"""Run a grid: claim, execute, publish, until every cell is finished or failed."""

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from predcp.experiments._cell import Cell
from predcp.experiments._claim import Claim
from predcp.experiments._engine import Engine
from predcp.experiments._interrupts import interrupts_wait
from predcp.experiments._progress import Progress
from predcp.experiments._result import Outcome
from predcp.experiments._store import Store

# Seconds to wait for outcomes before checking the cells of other runners again.
_PATIENCE = 0.2


@dataclass(frozen=True)
class Tally:
    """The counts of a run; `failed` includes cells that failed before and were not run again.

    If a time limit ended the run, the numbers add up to less than `total`.
    """

    total: int
    already_finished: int
    finished: int
    failed: int


class Runner:
    """Runs the cells of one experiment on one engine, together with any other runner."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        progress: Progress,
        rerun: str | None = None,
        until: float = float("inf"),
    ) -> None:
        """**Arguments:** `rerun` is the command that, with `--cell KEY`, runs one cell again;
        `until`, when to end the run, in the time of `time.monotonic`.
        """
        self._store, self._engine, self._progress = store, engine, progress
        self._rerun, self._until = rerun, until
        self._claims: dict[Cell, Claim] = {}

    def run(self, cells: Iterable[Cell], retry_failed: bool = False) -> Tally:
        """Finish the grid; an interruption leaves finished cells in place and no claims."""
        grid = list(dict.fromkeys(cells))
        statuses = {cell: self._store.status(cell) for cell in grid}
        for cell, status in statuses.items():
            if status == "corrupt":
                self._progress.note(f"{cell.name} is damaged and will be run again")
        done = {"finished"} if retry_failed else {"finished", "failed"}
        pending = deque(cell for cell in grid if statuses[cell] not in done)
        already = sum(status == "finished" for status in statuses.values())
        left_failed = sum(status == "failed" for status in statuses.values())
        failed = 0 if retry_failed else left_failed
        self._progress.start(len(grid), already, failed, self._engine.capacity)
        finished = 0
        try:
            for outcome_failed in self._drain(pending, retry_failed):
                finished, failed = finished + (not outcome_failed), failed + outcome_failed
        finally:
            with interrupts_wait():
                self._engine.close()
                for claim in self._claims.values():
                    claim.release()
                self._claims.clear()
                self._store.sweep()
                self._progress.close()
        return Tally(len(grid), already, finished, failed)

    def _drain(self, pending: deque[Cell], retry_failed: bool) -> Iterable[bool]:
        # Cells that another runner holds: checked again when there is nothing else to do.
        elsewhere: deque[Cell] = deque()
        retried = set(pending) if retry_failed else set()
        while (pending or self._claims or elsewhere) and time.monotonic() < self._until:
            while pending and len(self._claims) < self._engine.capacity:
                cell = pending.popleft()
                if not self._claim(cell):
                    elsewhere.append(cell)
                    continue
                # Another runner may have finished it between the first check and the claim.
                status = self._store.status(cell)
                if status == "finished" or (status == "failed" and cell not in retried):
                    self._release(cell)
                    self._progress.ended(cell, status == "failed", elsewhere=True)
                    yield status == "failed"
                    continue
                self._progress.started(cell)
                self._engine.submit(cell)
            if self._claims:
                for cell, outcome in self._engine.collect(_PATIENCE):
                    self._publish(cell, outcome)
                    yield outcome.failed
            elif elsewhere:
                who = self._store.holder(elsewhere[0])
                self._progress.note(f"waiting for {len(elsewhere)} cells of {who}")
                time.sleep(_PATIENCE)
            if not pending:
                # A cell that another runner retried in vain is not retried again.
                retried -= set(elsewhere)
                pending, elsewhere = elsewhere, deque()

    def _claim(self, cell: Cell) -> bool:
        # Take and record the claim without interruption, so that it is always released.
        with interrupts_wait():
            claim = self._store.claim(cell)
            if claim is not None:
                self._claims[cell] = claim
        return claim is not None

    def _release(self, cell: Cell) -> None:
        with interrupts_wait():
            self._claims.pop(cell).release()

    def _publish(self, cell: Cell, outcome: Outcome) -> None:
        try:
            self._store.publish(self._claims[cell], cell, outcome, self._rerun_of(cell))
        finally:
            self._release(cell)
        self._progress.ended(cell, outcome.failed)
        if outcome.traceback is not None:
            last_line = outcome.traceback.strip().splitlines()[-1]
            self._progress.note(f"failed: {cell.name}: {last_line}")

    def _rerun_of(self, cell: Cell) -> str:
        if self._rerun is not None:
            return f"{self._rerun} --cell {cell.key[:12]}"
        return f"predcp.experiments.execute(predcp.experiments.Cell(**{cell.to_json()!r}))"
