"""Run an experiment from Python: the same grid, store and engines as the command line's."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from predcp.experiments._batch import Batch
from predcp.experiments._cell import Cell
from predcp.experiments._engine import Engine, InProcess
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
    data_directory: str | None = None,
    keep_posterior: bool = False,
    retry_failed: bool = False,
    progress: Progress | None = None,
    rerun: str | None = None,
) -> Tally:
    """Finish every cell of a grid; finished cells are never run again.

    **Arguments:**

    - `experiment`: the name of its folder in `store`.
    - `engine`: this `process`, a `pool` of local ones, a `batch` (all splits of a fit in one
        program, for a GPU), or a `ray` cluster at `address`.
    - `workers`: of the pool (default: one a core); `gpus`: of a cell on the cluster.
    - `retry_failed`: also run cells that failed before.
    - `rerun`: the command that runs one cell again, for the records.
    """
    grid = list(cells)
    if not grid:
        raise ValueError(f"the experiment {experiment!r} lists no cells")
    # A model that is not there is one error now, not one in every cell.
    for model in sorted({cell.model for cell in grid}):
        resolve_model(model)
    chosen_store = Store(Path(store), experiment)
    shown = progress or Silent()
    # A function that writes here cannot travel to another process.
    here = engine_name(engine) in ("process", "batch")
    context = Context(data_directory, keep_posterior, shown.note if here else None)
    chosen_engine = make_engine(engine_name(engine), context, workers, address, gpus)
    return Runner(chosen_store, chosen_engine, shown, rerun).run(grid, retry_failed)


def engine_name(name: str) -> EngineName:
    """`name` if an engine is called so, else an error that lists them."""
    for known in ENGINES:
        if name == known:
            return known
    raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {name!r}")


def make_engine(
    name: EngineName,
    context: Context,
    workers: int | None = None,
    address: str | None = None,
    gpus: float = 0.0,
) -> Engine:
    """The engine of that name."""
    if name == "process":
        return InProcess(context)
    if name == "pool":
        return ProcessPool(context, workers)
    if name == "batch":
        return Batch(context)
    return RayEngine(context, address, gpus=gpus)
