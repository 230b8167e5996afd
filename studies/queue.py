"""What is still to run on a device, the most valuable first: `python -m studies.queue`.

    python -m studies.queue --work WORK --seconds 540 --output OUT            # as often as there is time
    python -m studies.queue --work WORK --restore OUT --seconds 540 --output NEW   # on a fresh machine

Each call takes the jobs in the order of `QUEUE`, several side by side, and leaves out cells that are
stored in the repository or in WORK. Fits that are not done when the time is up pause at a checkpoint.
OUT then holds stores, logs and the checkpoints that are small enough to travel. `--list` only counts
cells. To keep what came back, unpack the store of an experiment, copy the new cells into it, and pack it:

    predcp store unpack NAME && cp -rn WORK/results/NAME results/ && predcp store pack NAME
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from predcp.experiments import Cell, Store
from predcp.paper import EXPERIMENTS
from studies.device import pack

_ROOT = Path(__file__).parent.parent
# Seconds that a job needs at least, and that a paused one has to write its checkpoint.
_LEAST, _GRACE = 45.0, 30.0
# What comes back from a device in one file.
_LARGEST = 15 * 2**20


class Job(NamedTuple):
    """Cells of one experiment that run in one process, and the minutes that they should take."""

    name: str
    experiment: str
    chosen: Callable[[Cell], bool]
    minutes: float
    # Programs on the CPU of the device machine, 0 for one on the device.
    workers: int = 0

    def cells(self) -> list[Cell]:
        """The cells, in the order of their grid."""
        return [cell for cell in EXPERIMENTS[self.experiment]() if self.chosen(cell)]


def _runs(data: str, seeds: Sequence[int] = range(5)) -> Callable[[Cell], bool]:
    return lambda cell: cell.data == data and cell.seed in seeds


def _layers(data: str, depths: Sequence[int], splits: Sequence[int]) -> Callable[[Cell], bool]:
    return lambda cell: (
        cell.data == data and cell.settings["layers"] in depths and cell.split in splits
    )


_POOLED, _FIRST, _SECOND = "table3-pooled", range(10), range(10, 20)
_SMALL = (2, 5, 10, 25)
# Minutes are of one H200 beside five other programs, from the measured cost of a step or an iteration.
QUEUE: tuple[Job, ...] = (
    Job("classes", "shift-classes", lambda cell: True, 3),
    Job("nuts", "shift-nuts", lambda cell: cell.inference == "nuts", 18, workers=8),
    Job("nuts-variational", "shift-nuts", lambda cell: cell.inference == "vi", 1),
    Job("pooled-5", _POOLED, _runs("fc100-5shot"), 6),
    Job("class-5", _POOLED, _runs("cifar100-by-class-5shot"), 8),
    Job("depth-boston-50", "depth", _layers("boston", (50,), range(20)), 6),
    Job("depth-concrete-50", "depth", _layers("concrete", (50,), range(20)), 11),
    Job("omniglot-long", "table3-pooled-long", lambda cell: True, 14),
    Job("pooled-1", _POOLED, _runs("fc100-1shot"), 4),
    Job("class-1", _POOLED, _runs("cifar100-by-class-1shot"), 3),
    Job("depth-yacht-100", "depth", _layers("yacht", (100,), _SECOND), 7),
    Job("depth-energy-50", "depth", _layers("energy", (50,), _SECOND), 9),
    Job("depth-yacht", "depth", _layers("yacht", _SMALL, _SECOND), 3),
    Job("depth-energy", "depth", _layers("energy", _SMALL, _SECOND), 7),
    Job("depth-boston", "depth", _layers("boston", _SMALL, _SECOND), 5),
    Job("depth-concrete", "depth", _layers("concrete", _SMALL, _SECOND), 9),
    Job("depth-boston-100", "depth", _layers("boston", (100,), range(20)), 11),
    Job("omniglot", _POOLED, _runs("omniglot-1shot", range(3)), 6),
    Job("depth-concrete-100", "depth", _layers("concrete", (100,), _FIRST), 21),
    Job("depth-energy-100", "depth", _layers("energy", (100,), _FIRST), 16),
    Job("depth-yacht-50", "depth", _layers("yacht", (50,), range(20)), 3),
)


def missing(job: Job, stores: Sequence[Path]) -> list[Cell]:
    """Cells that no store has finished."""
    found = [Store(path, job.experiment) for path in stores]
    return [cell for cell in job.cells() if not any(s.status(cell) == "finished" for s in found)]


def command(job: Job, cells: Sequence[Cell], work: Path, seconds: float) -> list[str]:
    """The command that runs these cells of a job and pauses in time."""
    keys = [word for cell in cells for word in ("--cell", cell.key[:12])]
    places = ["--store", str(work / "results"), "--checkpoints", str(work / "checkpoints")]
    options = ["--engine", "batch", "--together", "200"]
    if job.workers:
        options = ["--engine", "pool", "--workers", str(job.workers)]
    options += ["--quiet", "--seconds", f"{seconds:.0f}"]
    return [sys.executable, "-m", "predcp", "run", job.experiment, *keys, *options, *places]


def run(
    queue: Sequence[Job], stored: Path, work: Path, seconds: float, side: int
) -> dict[str, int]:
    """Run jobs in order, at most `side` at a time; returns how many cells of each are still missing."""
    until = time.monotonic() + seconds
    stores = (stored, work / "results")
    (work / "logs").mkdir(parents=True, exist_ok=True)
    waiting, running = list(queue), dict[str, subprocess.Popen[bytes]]()
    while waiting or running:
        left = until - time.monotonic()
        running = {name: process for name, process in running.items() if process.poll() is None}
        if left < -_GRACE:
            for process in running.values():
                process.send_signal(signal.SIGTERM)
                process.wait(_GRACE)
            break
        if left < _LEAST:
            waiting.clear()
        while waiting and len(running) < side:
            job = waiting.pop(0)
            cells = missing(job, stores)
            if cells:
                print(f"{seconds - left:.0f} s: {job.name}, {len(cells)} cells", flush=True)
                running[job.name] = _begun(job, command(job, cells, work, left), work)
        time.sleep(0.2)
    return {job.name: len(missing(job, stores)) for job in queue}


def _begun(job: Job, words: Sequence[str], work: Path) -> "subprocess.Popen[bytes]":
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT)]),
        # Programs share the memory of the device, and what they compiled.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_COMPILATION_CACHE_DIR": str(work / "compiled"),
    }
    if job.workers:
        environment |= {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1"}
    with (work / "logs" / f"{job.name}.log").open("ab") as log:
        return subprocess.Popen(
            words, cwd=_ROOT, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )


def restore(packed: Path, work: Path) -> None:
    """Unpack what an earlier call packed."""
    for path in sorted(packed.glob("*.tar.gz")):
        with tarfile.open(path) as archive:
            archive.extractall(work, filter="data")


def bring_back(work: Path, output: Path) -> None:
    """Pack stores and logs, and the smallest checkpoints as long as they fit."""
    output.mkdir(parents=True, exist_ok=True)
    for name in ("results", "logs"):
        pack(output / f"{name}.tar.gz", [work / name])
    kept, size = work / "kept" / "checkpoints", 0
    shutil.rmtree(kept, ignore_errors=True)
    files = [path for path in (work / "checkpoints").rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda each: each.stat().st_size):
        size += path.stat().st_size
        if size > _LARGEST:
            print(f"left behind: {path.name} and larger ones")
            break
        place = kept / path.relative_to(work / "checkpoints")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)
    pack(output / "checkpoints.tar.gz", [kept])


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--side", type=int, default=6, help="programs side by side")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--restore", type=Path, help="what an earlier call packed")
    parser.add_argument("--jobs", nargs="+", choices=[job.name for job in QUEUE])
    parser.add_argument("--list", action="store_true", help="only count what is missing")
    options = parser.parse_args()
    work, stored = options.work.resolve(), _ROOT / "results"
    if options.restore:
        restore(options.restore, work)
    queue = [job for job in QUEUE if options.jobs is None or job.name in options.jobs]
    if options.list:
        left = {job.name: len(missing(job, (stored, work / "results"))) for job in queue}
    else:
        left = run(queue, stored, work, options.seconds, options.side)
        bring_back(work, options.output or work / "packed")
    for job in queue:
        print(f"{job.name:20} {left[job.name]:5} of {len(job.cells()):5} cells missing")


if __name__ == "__main__":
    main()
