"""Condense many rows: the log likelihood of a linear predictor as a quadratic of its coefficients.

This is exact for a normal outcome. For a logistic outcome with many rows it is nearly exact where the
posterior is; the error is measured at draws. Either is then written as (columns + 1) rows with the same
likelihood. The table is read in blocks, a few times in all.
"""

import functools
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular

from predcp._support.cores import available_cores
from predcp.linear._likelihood import LOG_TWO_PI, Family, Likelihood

# Rows in memory in double precision at a time, for each thread.
_BLOCK = 2**15
# Number of rows that the first steps of Newton's method use.
_FIRST_ROWS = 2**15
_NEWTON_STEPS = 50
_LAST_STEP = 1e-6
# Precision of a normal prior that keeps the first point of separated classes finite.
_WEAK = 1e-2
_NOT_READ = (
    "the limit on time (max_seconds) was over before the rows were read; allow more time, or use "
    "inference='auto', which always answers"
)


class Observed(NamedTuple):
    """Rows that replace all rows: a normal outcome with noise 1, or with the model's noise.

    **Arguments:** `offset`, the rest of the log likelihood.
    """

    family: Family
    design: Float[np.ndarray, "few columns"]
    outcomes: Float[np.ndarray, " few"]
    weights: Float[np.ndarray, " few"]
    offset: float = 0.0

    def likelihood(self, noise: float) -> Likelihood:
        """Of a predictor at these rows."""
        return Likelihood(self.family, self.outcomes, self.weights, noise)


@dataclass(frozen=True)
class Table:
    """Rows in memory, read block by block.

    **Arguments:** `x` `(N, D)`, `y` `(N,)`, `weights` `(N,)` or None; `intercept`, whether a column of
    ones comes last; `deadline`, on `time.monotonic()`, after which reading ends with a TimeoutError.
    """

    family: Family
    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    intercept: bool
    deadline: float = math.inf

    @property
    def columns(self) -> int:
        """Number of coefficients, the intercept's included."""
        return self.x.shape[1] + self.intercept

    def part(self, rows: Any) -> "Table":
        """The same table with these rows only."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, x=self.x[rows], y=self.y[rows], weights=weights)

    def blocks(self) -> Iterator["Table"]:
        """The rows in pieces."""
        for first in range(0, len(self.x), _BLOCK):
            yield self.part(slice(first, first + _BLOCK))

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Design with the intercept's column, outcomes and weights, in double precision."""
        design = np.ones((len(self.x), self.columns))
        design[:, : self.x.shape[1]] = self.x
        weights = np.ones(len(design)) if self.weights is None else self.weights
        return design, np.asarray(self.y, np.float64), np.asarray(weights, np.float64)

    def log_likelihoods(self, coefficients: np.ndarray) -> np.ndarray:
        """Of a logistic outcome for each row of coefficients `(draws, D)`."""

        def one(block: Table) -> tuple[np.ndarray]:
            design, y, weights = block.arrays()
            eta = design @ coefficients.T
            signed = np.where(y[:, None] > 0.0, eta, -eta)
            return (weights @ -np.logaddexp(0.0, -signed),)

        return _summed(self, one)[0]


def condense(table: Table, centre: np.ndarray | None = None) -> "Quadratic":
    """The quadratic that replaces the log likelihood of a table.

    **Arguments:** `centre`, coefficients `(D,)` around which a logistic likelihood is expanded; its
    most probable ones under a wide prior if None.
    """
    if table.family == "normal":
        return _normal(table)
    return _expanded(table, _most_probable(table) if centre is None else centre)


@dataclass(frozen=True)
class Quadratic:
    """`value + g.d - d.H d / 2` with `d` the distance from `centre`; `observed` has the same likelihood."""

    centre: np.ndarray
    value: float
    gradient: np.ndarray
    curvature: np.ndarray
    observed: Observed

    def at(self, coefficients: np.ndarray) -> np.ndarray:
        """The values at coefficients `(..., D)`."""
        d = coefficients - self.centre
        return self.value + d @ self.gradient - 0.5 * np.sum(d * (d @ self.curvature), axis=-1)


def _normal(table: Table) -> Quadratic:
    def one(block: Table) -> tuple[np.ndarray, ...]:
        design, y, weights = block.arrays()
        weighed = design * weights[:, None]
        return weighed.T @ design, weighed.T @ y, weights @ y**2, weights.sum()

    gram, score, squares, total = _summed(table, one)
    root, outcomes = _root(gram, score)
    rest = max(float(squares - outcomes @ outcomes), 0.0)
    # One more row, of zeros, carries the rest of the squares and of the weights.
    columns = len(score)
    spare = float(total) - columns
    design = np.concatenate([root.T, np.zeros((1, columns))])
    observed = Observed(
        "normal",
        design,
        np.append(outcomes, np.sqrt(rest / spare)),
        np.append(np.ones(columns), spare),
    )
    return Quadratic(np.zeros(columns), -0.5 * float(squares), score, gram, observed)


def _expanded(table: Table, centre: np.ndarray) -> Quadratic:
    value, gradient, curvature = _summed(table, functools.partial(_logistic, centre))
    root, outcomes = _root(curvature, curvature @ centre + gradient)
    moved = solve_triangular(root, gradient, lower=True)
    offset = float(value) + 0.5 * float(moved @ moved) + 0.5 * len(centre) * LOG_TWO_PI
    observed = Observed("normal", root.T, outcomes, np.ones(len(centre)), offset)
    return Quadratic(centre, float(value), gradient, curvature, observed)


def _root(curvature: np.ndarray, pull: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A Cholesky factor L, and `L^-1 pull`."""
    size = np.sqrt(np.diagonal(curvature))
    size = np.where(size > 0.0, size, 1.0)
    scaled = curvature / size / size[:, None]
    try:
        root = np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        # Duplicate columns; the prior separates them.
        scaled[np.diag_indices(len(scaled))] += 1e-10
        root = np.linalg.cholesky(scaled)
    root = root * size[:, None]
    return root, solve_triangular(root, pull, lower=True)


def _logistic(coefficients: np.ndarray, block: Table) -> tuple[Any, np.ndarray, np.ndarray]:
    """Log likelihood, gradient and minus the second derivative."""
    design, y, weights = block.arrays()
    eta = design @ coefficients
    signed = np.where(y > 0.0, eta, -eta)
    value = weights @ -np.logaddexp(0.0, -signed)
    p = 1.0 / (1.0 + np.exp(-np.abs(eta)))
    above = np.where(eta >= 0.0, p, 1.0 - p)
    gradient = design.T @ (weights * ((y > 0.0) - above))
    curved = design * np.sqrt(weights * p * (1.0 - p))[:, None]
    return value, gradient, curved.T @ curved


def _most_probable(table: Table) -> np.ndarray:
    """The mode under a wide prior, by Newton's method on a part of the rows, then on all."""
    coefficients = np.zeros(table.columns)
    if len(table.x) > 2 * _FIRST_ROWS:
        rows = np.random.default_rng(0).choice(len(table.x), _FIRST_ROWS, replace=False)
        coefficients = _newton(table.part(np.sort(rows)), coefficients)
    return _newton(table, coefficients)


def _newton(table: Table, coefficients: np.ndarray) -> np.ndarray:
    def look(point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        value, gradient, curvature = _summed(table, functools.partial(_logistic, point))
        curvature[np.diag_indices(len(point))] += _WEAK
        return (
            float(value) - 0.5 * _WEAK * float(point @ point),
            gradient - _WEAK * point,
            curvature,
        )

    value, gradient, curvature = look(coefficients)
    for _ in range(_NEWTON_STEPS):
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < _LAST_STEP:
            break
        found = look(coefficients + step)
        while not found[0] > value and gradient @ step > _LAST_STEP:
            step = 0.5 * step
            found = look(coefficients + step)
        coefficients = coefficients + step
        value, gradient, curvature = found
    return coefficients


def _summed(table: Table, one: Callable[[Table], tuple[Any, ...]]) -> list[Any]:
    """Sums over the blocks, each worked on by one thread."""

    def in_time(block: Table) -> tuple[Any, ...]:
        if time.monotonic() > table.deadline:
            raise TimeoutError(_NOT_READ)
        return one(block)

    with ThreadPoolExecutor(len(available_cores())) as workers:
        totals: list[Any] | None = None
        for found in workers.map(in_time, table.blocks()):
            totals = list(found) if totals is None else [a + b for a, b in zip(totals, found)]
    if totals is None:
        raise ValueError("the table has no rows")
    return totals
