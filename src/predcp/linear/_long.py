"""Tables of many rows for Laplace's method: their approximation, and its error."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from predcp.linear._coefficient_prior import GlobalLocalPrior, Setting
from predcp.linear._condensed import Observed, Quadratic, Table, condense
from predcp.linear._target import Target

# Tables with fewer rows, or with few rows per column, are used as they are.
MANY_ROWS = 5_000
_ROWS_PER_COLUMN = 50
# Error of the quadratic at the mode, in nats, above which it is made again there.
_CLOSE = 0.01
# Error of the quadratic at draws, in nats, above which all rows are used if there are not too many.
MOST_ERROR = 0.5
_AFFORDABLE = 100_000
_ROUNDS = 5
# Number of parts of the map's rows; their differences give its error.
_PARTS = 16


@dataclass
class Long:
    """A table of many rows.

    **Arguments:** `target` with the rows that the prior's divergence is a mean over; `whole`, the
    arrays of all rows; `rounds`, how often the likelihood was expanded; `deadline`, see `Table`.
    """

    target: Target
    whole: tuple[Any, ...]
    family: Any
    rounds: int = 0
    deadline: float = math.inf
    _table: Table | None = field(default=None, repr=False)
    _quadratic: Quadratic | None = field(default=None, repr=False)

    @property
    def observed(self) -> Observed:
        """Rows that replace all rows."""
        return self._known[1].observed

    @property
    def affordable(self) -> bool:
        """Whether all rows can be used as they are, at some cost."""
        return len(self.whole[0]) <= _AFFORDABLE

    @property
    def _known(self) -> tuple[Table, Quadratic]:
        if self._table is None or self._quadratic is None:
            raise RuntimeError("read the table first")
        return self._table, self._quadratic

    def read(self, intercept: bool) -> None:
        """Read the table for the first time."""
        x, y, *weights = self.whole
        given = weights[0] if weights else None
        self._table = Table(self.family, x, y, given, intercept, self.deadline)
        self._quadratic, self.rounds = condense(self._table), 1

    def moved(self, centre: np.ndarray) -> bool:
        """Whether the likelihood had to be expanded again, around the most probable coefficients."""
        table, quadratic = self._known
        if self.family == "normal" or self.rounds >= _ROUNDS:
            return False
        try:
            new = condense(table, centre)
        except TimeoutError:
            # What is known will do; its error is measured if there is time for that.
            return False
        if abs(new.value - float(quadratic.at(centre))) < _CLOSE:
            return False
        self._quadratic, self.rounds = new, self.rounds + 1
        return True

    def errors(self, coefficients: np.ndarray, values: dict[str, Any]) -> dict[str, float]:
        """Errors of the quadratic at draws, and of the divergence over some of the rows.

        NaN where there was no time left to read the rows once more.

        **Arguments:** `coefficients`, draws `(draws, P)`; `values`, all that is kept of the draws.
        """
        table, quadratic = self._known
        found = {"rows": float(len(table.x)), "rounds": float(self.rounds)}
        if self.family != "normal":
            found["expansion_error"] = math.nan
            with suppress(TimeoutError):
                left_out = table.log_likelihoods(coefficients) - quadratic.at(coefficients)
                found["expansion_error"] = float(np.std(left_out))
        rows = len(self.target.data[0])
        error = None
        if rows < len(table.x) and time.monotonic() < self.deadline:
            error = self._map_error(values)
        if error is not None:
            found["map_rows"] = float(rows)
            found["map_error"] = error * float(np.sqrt(1.0 - rows / len(table.x)))
        return found

    def _map_error(self, values: dict[str, Any]) -> float | None:
        """Standard error of log kappa at typical scales, from parts of its rows; None for no map."""
        prior: Any = self.target.options.get("prior")
        if not isinstance(prior, GlobalLocalPrior) or "lambda" not in values:
            return None
        local = jnp.asarray(np.median(values["lambda"][0], axis=0))
        log_tau = jnp.asarray(np.median(values["log_tau"][0]))
        noise = float(np.median(values["sigma"][0])) if "sigma" in values else 1.0
        x = np.asarray(self.target.data[0], np.float64)
        size = len(x) // _PARTS
        kappas = []
        for part in range(_PARTS):
            block = jnp.asarray(x[part * size : (part + 1) * size])
            complexity = getattr(
                prior.log_scale(Setting(block, self.family, 1, noise), local), "complexity", None
            )
            if complexity is None:
                return None
            kappas.append(float(complexity(jnp.exp(log_tau))))
        return float(np.std(kappas, ddof=1) / np.sqrt(_PARTS) / np.mean(kappas))


def long_of(
    target: Target,
    data: tuple[Any, ...],
    map_rows: int | None,
    seed: int,
    deadline: float = math.inf,
) -> Long | None:
    """A table of many rows that can be read; None if the table is used as it is.

    **Arguments:** `data`, the arrays of one problem; `map_rows`, see `Laplace`; `seed`, which rows;
    `deadline`, see `Table`.
    """
    prior = target.options.get("prior")
    if target.family is None:
        return None
    rows, columns = np.shape(data[0])
    if rows < max(MANY_ROWS, _ROWS_PER_COLUMN * (columns + 1)):
        return None
    whole = tuple(map(np.asarray, data))
    part = whole
    if map_rows is not None and map_rows < rows and getattr(prior, "averages_rows", False):
        # In random order, so that any part of them is a sample.
        chosen = np.random.default_rng(seed).choice(rows, map_rows, replace=False)
        part = tuple(array[chosen] for array in whole)
    return Long(replace(target, data=part, problems=None), whole, target.family, deadline=deadline)
