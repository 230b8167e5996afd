"""Run an experiment from Python: the same grid, store and engines as the command line's."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from predcp.experiments._batch import Batch
from predcp.experiments._cell import Cell
from predcp.experiments._engine import Engine, InProcess, Report
from predcp.experiments._models import resolve_model
from predcp.experiments._pool import ProcessPool
from predcp.experiments._progress import Progress, Silent
from predcp.experiments._ray_engine import RayEngine
from predcp.experiments._result import Context
from predcp.experiments._runner import Runner, Tally
from predcp.experiments._store import DEFAULT_STORE, Store

EngineName = Literal["process", "pool", "batch", "ray"]
ENGINES: tuple[EngineName, ...] = ("process", "pool", "batch", "ray")


def run(
    experiment: str,
    cells: Iterable[Cell],
    store: str | os.PathLike[str] = DEFAULT_STORE,
    engine: EngineName = "process",
    workers: int | None = None,
    address: str | None = None,
    gpus: float = 0.0,
    together: int | None = None,
    data_directory: str | None = None,
    keep_posterior: bool = False,
    checkpoints: str | os.PathLike[str] | None = None,
    seconds: float | None = None,
    stop_after: float | None = None,
    retry_failed: bool = False,
    progress: Progress | None = None,
    rerun: str | None = None,
) -> Tally:
    """Finish every cell of a grid; finished cells are never run again.

    **Arguments:**

    - `experiment`: the name of its folder in `store`.
    - `engine`: this `process`, a `pool` of local ones, a `batch` (all splits of a fit in one
        program, for a GPU), or a `ray` cluster at `address`.
    - `workers`: of the pool (default: one per core); `gpus`: of a cell on the cluster; `together`:
        the most cells in one program of a batch (default: the model's own).
    - `checkpoints`: the folder of checkpoints of interrupted long fits (default: none are kept).
    - `seconds`: after which long fits pause as if interrupted (default: never).
    - `stop_after`: seconds after which the run ends (default: never). A pool or a cluster then stops
        its running cells; this process first finishes its present one.
    - `retry_failed`: also run cells that failed before.
    - `rerun`: the command that runs one cell again, for the records.
    """
    grid, began = list(cells), time.monotonic()
    if not grid:
        raise ValueError(f"the experiment {experiment!r} lists no cells")
    # Report a missing model once now, not in every cell.
    for model in sorted({cell.model for cell in grid}):
        resolve_model(model)
    chosen_store = Store(Path(store), experiment)
    shown = progress or Silent()
    context = Context(
        data_directory,
        keep_posterior,
        None if checkpoints is None else str(checkpoints),
        None if seconds is None else time.time() + seconds,
    )
    chosen_engine = make_engine(
        engine_name(engine), context, shown.moved, workers, address, gpus, together
    )
    until = float("inf") if stop_after is None else began + stop_after
    return Runner(chosen_store, chosen_engine, shown, rerun, until).run(grid, retry_failed)


def engine_name(name: str) -> EngineName:
    """`name` if an engine is called so, else an error that lists them."""
    for known in ENGINES:
        if name == known:
            return known
    raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {name!r}")


def make_engine(
    name: EngineName,
    context: Context,
    report: Report | None = None,
    workers: int | None = None,
    address: str | None = None,
    gpus: float = 0.0,
    together: int | None = None,
) -> Engine:
    """The engine of that name; arguments as in `run`, `report` is called with cells' progress."""
    if name == "process":
        return InProcess(context, report)
    if name == "pool":
        return ProcessPool(context, report, workers)
    if name == "batch":
        return Batch(context, report, together)
    return RayEngine(context, report, address, gpus=gpus)
