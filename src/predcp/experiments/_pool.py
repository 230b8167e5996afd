"""A pool of local worker processes, each pinned to one core and one thread."""

import contextlib
import selectors
import subprocess
from collections import Counter
from dataclasses import asdict, dataclass, replace

from predcp._support.cores import available_cores
from predcp._support.environment import environment
from predcp._support.workers import start_worker
from predcp.experiments._cell import Cell
from predcp.experiments._engine import Report
from predcp.experiments._frames import message_outcome, read_message, write_message
from predcp.experiments._models import registered_models
from predcp.experiments._result import Context, Outcome

# A cell that kills its worker (usually by its memory) this many times is recorded as failed.
_ATTEMPTS = 3
# If idle workers die this often, starting more does not help.
_IDLE_DEATHS = 10
_ONE_THREAD = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    core: int
    cell: Cell | None = None


class ProcessPool:
    """Runs cells in worker processes; a worker that dies is replaced and its cell run again."""

    def __init__(
        self, context: Context, report: Report | None = None, workers: int | None = None
    ) -> None:
        """**Arguments:** `workers` defaults to the cores this process may use."""
        # A function cannot be sent to another process; messages about progress can.
        self._context, self._report = replace(context, progress=None), report
        self._cores = available_cores()
        count = len(self._cores) if workers is None else workers
        if count < 1:
            raise ValueError(f"workers must be at least 1, got {count}")
        self._selector = selectors.DefaultSelector()
        self._deaths: Counter[Cell] = Counter()
        self._idle_deaths = 0
        self._workers = [self._start(self._cores[i % len(self._cores)]) for i in range(count)]

    @property
    def capacity(self) -> int:
        """One cell per worker."""
        return len(self._workers)

    @property
    def process_ids(self) -> list[int]:
        """The process ids of the workers."""
        return [worker.process.pid for worker in self._workers]

    def submit(self, cell: Cell) -> None:
        """Give the cell to an idle worker."""
        worker = next(worker for worker in self._workers if worker.cell is None)
        worker.cell = cell
        self._send(worker)

    def collect(self, timeout: float) -> list[tuple[Cell, Outcome]]:
        """Outcomes of the workers that answered or died within `timeout` seconds."""
        ended = []
        for key, _ in self._selector.select(timeout):
            worker: _Worker = key.data
            stream = worker.process.stdout
            message = None if stream is None else read_message(stream)
            if message is None:
                ended += self._bury(worker)
            elif "progress" in message[0]:
                if self._report is not None and worker.cell is not None:
                    self._report([worker.cell], *message[0]["progress"])
            elif worker.cell is not None:
                ended.append((worker.cell, message_outcome(*message)))
                worker.cell = None
        return ended

    def close(self) -> None:
        """Kill the workers."""
        for worker in self._workers:
            self._stop(worker)
        self._selector.close()

    def _start(self, core: int) -> _Worker:
        process = start_worker("predcp.experiments._worker", core, environment=_ONE_THREAD)
        worker = _Worker(process, core)
        if process.stdout is not None:
            self._selector.register(process.stdout, selectors.EVENT_READ, worker)
        return worker

    def _send(self, worker: _Worker) -> None:
        if worker.process.stdin is None or worker.cell is None:
            return
        request = {
            "cell": worker.cell.to_json(),
            "context": asdict(self._context),
            "models": registered_models(),
        }
        try:
            write_message(worker.process.stdin, request)
        except BrokenPipeError:
            # The worker is dead; `collect` sees its closed output, removes it and tries again.
            return

    def _bury(self, worker: _Worker) -> list[tuple[Cell, Outcome]]:
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Its output is closed, so it is ending: wait for its own exit code, which gives the reason.
            worker.process.wait(1)
        self._stop(worker)
        cell, code = worker.cell, worker.process.returncode
        heir = self._start(worker.core)
        self._workers[self._workers.index(worker)] = heir
        if cell is None:
            self._idle_deaths += 1
            if self._idle_deaths > _IDLE_DEATHS:
                raise RuntimeError(f"worker processes keep ending before any cell (code {code})")
            return []
        self._deaths[cell] += 1
        if self._deaths[cell] < _ATTEMPTS:
            heir.cell = cell
            self._send(heir)
            return []
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        message = (
            f"the worker process ended ({reason}) each of the {_ATTEMPTS} times it ran this cell; "
            "if that is signal 9, the machine probably ran out of memory: use fewer --workers"
        )
        return [(cell, Outcome(0.0, environment(), traceback=message))]

    def _stop(self, worker: _Worker) -> None:
        process = worker.process
        if process.stdout is not None:
            self._selector.unregister(process.stdout)
            process.stdout.close()
        process.kill()
        process.wait()
        if process.stdin is not None:
            # Drop unsent bytes for a dead worker.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
