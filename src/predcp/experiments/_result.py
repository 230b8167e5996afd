"""Result of a model, outcome of an engine, and context of a run."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from predcp.experiments._cell import Cell


@dataclass(frozen=True)
class Result:
    """The outcome of one fit.

    **Arguments:**

    - `metrics`: part of the data (`test`, `train`, ...) to metric to value.
    - `convergence`: figures such as `rhat_max`, `divergences` (a fraction), `ess_min`.
    - `posterior`: variable to draws, `(chains, draws, ...)`; kept if the user asks for it.
    """

    metrics: Mapping[str, Mapping[str, float]]
    convergence: Mapping[str, float] = field(default_factory=dict)
    posterior: Mapping[str, np.ndarray] | None = None


@dataclass(frozen=True)
class Outcome:
    """A finished or failed execution, in plain values that travel between processes.

    **Arguments:**

    - `metrics`: `(part, metric, value)` rows; `traceback` is set where the cell failed.
    - `environment`: versions, commit and device of the process that ran it.
    - `posterior`: the bytes of a netCDF file, if kept.
    """

    seconds: float
    environment: Mapping[str, Any]
    metrics: tuple[tuple[str, str, float], ...] = ()
    convergence: Mapping[str, float] = field(default_factory=dict)
    traceback: str | None = None
    posterior: bytes | None = None

    @property
    def failed(self) -> bool:
        """Whether the cell raised."""
        return self.traceback is not None


@dataclass(frozen=True)
class Context:
    """Context of a run, the same for all its cells.

    **Arguments:**

    - `data_directory`: as in `predcp.data.data_directory`.
    - `keep_posterior`: whether to return posterior draws.
    - `checkpoints`: the folder of checkpoints of interrupted fits; None for none.
    - `deadline`: when to pause long fits, in seconds as `time.time` counts; None for never.
    - `progress(done, total, words)`: what `report` calls.
    """

    data_directory: str | None = None
    keep_posterior: bool = False
    checkpoints: str | None = None
    deadline: float | None = None
    progress: Callable[[int, int, str], None] | None = None

    def report(self, done: int, total: int, words: str | None = None) -> None:
        """Report that `done` of `total` pieces of a fit are done; call it at least every two seconds.

        **Arguments:** `words`, what the pieces are, or what happens now (`compiling`); a total of 0
        is not shown.
        """
        if self.progress is not None:
            self.progress(done, total, words or "")

    def seconds_left(self) -> float | None:
        """Seconds left for fits, at least 0; None for no limit."""
        return None if self.deadline is None else max(self.deadline - time.time(), 0.0)

    def checkpoint_file(self, cells: Sequence[Cell]) -> Path | None:
        """The checkpoint of cells that are fitted together; None for no checkpoints."""
        if self.checkpoints is None:
            return None
        return Path(self.checkpoints) / f"{cells[0].data}-{cells_name(cells)}.checkpoint"


def cells_name(cells: Sequence[Cell]) -> str:
    """A short name of cells that are fitted together, in this order."""
    return hashlib.sha256("".join(cell.key for cell in cells).encode()).hexdigest()[:16]
