"""Models for the tests: importable from worker processes and other runners."""

import hashlib
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from predcp.experiments import Cell, Context, Result


def score(cell: Cell) -> float:
    """A number that depends on the whole cell."""
    return int(hashlib.sha256(cell.key.encode()).hexdigest()[:8], 16) / 2**32


def quick(cell: Cell, context: Context) -> Result:
    """A few milliseconds of nothing, then metrics that depend on the cell."""
    time.sleep(float(cell.settings.get("sleep") or 0.0))
    log = cell.settings.get("log")
    if log is not None:
        with open(str(log), "a") as file:
            file.write(f"{cell.key}\n")
    return Result({"test": {"log_likelihood": -score(cell), "rmse": score(cell)}})


def failing(cell: Cell, context: Context) -> Result:
    """Fails on odd splits until the file named in the settings exists."""
    if cell.split % 2 and not Path(str(cell.settings["cure"])).exists():
        raise RuntimeError(f"split {cell.split} is odd")
    return quick(cell, context)


def deadly(cell: Cell, context: Context) -> Result:
    """Kills its own process on split 1, as the kernel does when memory runs out."""
    if cell.split == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return quick(cell, context)


def talkative(cell: Cell, context: Context) -> Result:
    """Prints, from Python and from below it."""
    print("a model prints")
    os.write(sys.stdout.fileno(), b"and so does its library\n")
    return quick(cell, context)


def placed(cell: Cell, context: Context) -> Result:
    """How many cores and threads the process may use."""
    return Result(
        {
            "test": {
                "cores": float(len(os.sched_getaffinity(0))),
                "threads": float(os.environ.get("OMP_NUM_THREADS", "0")),
                "process": float(os.getpid()),
            }
        }
    )


def sampled(cell: Cell, context: Context) -> Result:
    """Convergence figures and draws, as from a sampler; split 1 has not converged."""
    stuck = cell.split == 1
    draws = np.random.default_rng(cell.seed).normal(size=(2, 50, 3))
    return Result(
        {"test": {"log_likelihood": -score(cell)}},
        convergence={
            "rhat_max": 1.4 if stuck else 1.003,
            "divergences": 0.02 if stuck else 0.0,
            "ess_min": 400.0,
        },
        posterior={"beta": draws},
    )


def reporting(cell: Cell, context: Context) -> Result:
    """Forty steps, each reported."""
    for step in range(40):
        context.report(step, 40, "steps")
        time.sleep(float(cell.settings["sleep"]) / 40)
    return quick(Cell("nothing", "quick", "plain", "exact"), context)


def not_a_result(cell: Cell, context: Context) -> Result:
    """A mistake in a user's model."""
    return {"rmse": 1.0}  # type: ignore[return-value]


def cells(
    model: str = "quick", count: int = 6, prior: str = "plain", **settings: str | int | float | None
) -> list[Cell]:
    """A grid over splits of one of the models above."""
    return [
        Cell("nothing", f"cell_models:{model}", prior, "exact", split, settings=settings)
        for split in range(count)
    ]


def grid() -> list[Cell]:
    """An experiment for the command line: `cell_models:grid`."""
    return cells("quick", 4)


def failing_grid() -> list[Cell]:
    """An experiment in which two cells of four fail."""
    return cells("failing", 4, cure="cure.txt")


def slow_grid() -> list[Cell]:
    """An experiment that lasts long enough to be interrupted."""
    return cells("quick", 400, sleep=0.05)


def score_of_nothing() -> list[int]:
    """Not an experiment: it lists no cells."""
    return [1, 2]
