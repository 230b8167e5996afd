"""What a model hands back, and what an engine makes of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


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
    """What a cell may need besides itself, the same for every cell of a run.

    **Arguments:** `data_directory` as in `predcp.data.data_directory`; `keep_posterior` asks
    the model for its draws; `note` tells the user how a long fit is going, where a model runs in
    the process that has the user's attention.
    """

    data_directory: str | None = None
    keep_posterior: bool = False
    note: Callable[[str], None] | None = None
