"""A normal distribution at the mode of any smooth function, in few or many dimensions."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

# Value and gradient of minus a log density.
Potential = Callable[[np.ndarray], tuple[Any, Any]]

# Up to this number of coordinates the whole Hessian is computed; above it, the main directions.
_DENSE = 256
_DIRECTIONS = 100
# Step of the gradient's finite difference: well above rounding, with an error of about 1e-5.
_STEP = float(np.finfo(np.float64).eps) ** (1 / 3)
# In these coordinates priors have a width of about 1, so no direction is wider than 4.
_SMALLEST_CURVATURE = 1.0 / 16.0
_LONGEST_SEARCH = 2000
_RESTARTS = 20
# Relative error of differences of gradients.
_NOISE = 1e-7


class NoMode(ValueError):
    """The density has no finite value to start from."""


@dataclass(frozen=True)
class Gaussian:
    """`N(mode, H^-1)` with `H = c^2 (I + Q diag(e - 1) Q^T)`.

    **Arguments**
    - `mode`: `(dim,)`; `scale`: c, the root of the usual curvature.
    - `directions`, `eigenvalues`: Q `(dim, k)` with orthonormal columns, and e `(k,)`.
    - `evaluations`: gradients it took; `slope`: the gradient's norm at the mode in units of H.
    """

    mode: np.ndarray
    scale: float
    directions: np.ndarray
    eigenvalues: np.ndarray
    evaluations: int
    slope: float

    def transform(self, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Standard normal rows `(draws, dim)` to draws, and the log density of each."""
        inside = noise @ self.directions
        stretched = inside * (self.eigenvalues**-0.5 - 1.0)
        draws = self.mode + (noise + stretched @ self.directions.T) / self.scale
        half_log_determinant = 0.5 * float(np.log(self.eigenvalues).sum())
        constant = noise.shape[1] * (math.log(self.scale) - 0.5 * math.log(2.0 * math.pi))
        return draws, half_log_determinant + constant - 0.5 * (noise**2).sum(axis=1)


class _OutOfTime(Exception):
    """The deadline has passed."""


def normal_at_mode(potential: Potential, start: np.ndarray, deadline: float = math.inf) -> Gaussian:
    """Climb to the mode from `start` `(dim,)` and look at the curvature there.

    Every eigenvalue of the curvature that is too small, or negative at a mode that is none, is
    raised, so that the answer is always a distribution.

    **Arguments**: `deadline`, on `time.monotonic()`; the answer is then a standard normal around the
    best position found, whose `slope` says how far from the mode it is.
    """
    if start.size == 0:
        return Gaussian(start, 1.0, np.zeros((0, 0)), np.zeros(0), 0, 0.0)
    count = 0
    best: list[Any] = [math.inf, start, np.zeros_like(start)]

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal count
        if count and time.monotonic() >= deadline:
            raise _OutOfTime
        count += 1
        try:
            value, slope = potential(theta)
        except np.linalg.LinAlgError:
            return math.inf, np.zeros_like(theta)
        value, slope = float(value), np.asarray(slope, np.float64)
        if not (math.isfinite(value) and np.isfinite(slope).all()):
            # The line search steps back from such a point.
            return math.inf, np.zeros_like(theta)
        if value < best[0]:
            best[:] = value, theta.copy(), slope
        return value, slope

    if not math.isfinite(evaluate(start)[0]):
        raise NoMode(
            "the posterior has no finite density where the search for its mode starts; check that "
            "the prior is proper and the data have no extreme values"
        )
    try:
        found = _searched(evaluate, start)
    except _OutOfTime:
        _, mode, slope = best
        nowhere = np.zeros((start.size, 0))
        return Gaussian(mode, 1.0, nowhere, np.zeros(0), count, float(np.linalg.norm(slope)))
    return replace(found, evaluations=count)


def _searched(evaluate: Potential, start: np.ndarray) -> Gaussian:
    """The normal at the mode, without a count of evaluations."""
    from scipy.optimize import minimize

    options = {"maxiter": _LONGEST_SEARCH, "maxfun": 2 * _LONGEST_SEARCH, "ftol": 0, "gtol": 1e-6}
    mode, before = start, math.inf
    for _ in range(_RESTARTS):
        found = minimize(evaluate, mode, jac=True, method="L-BFGS-B", options=options)
        mode = np.asarray(found.x)
        # An overflow ends a search early; the next one starts with short steps.
        if np.abs(found.jac).max() <= options["gtol"] or not found.fun < before:
            break
        before = float(found.fun)

    at_mode = evaluate(mode)[1]

    def along(direction: np.ndarray) -> np.ndarray:
        """The curvature times a direction of length 1."""
        step = _STEP * max(1.0, float(np.abs(mode).max()))
        return (evaluate(mode + step * direction)[1] - at_mode) / step

    if start.size <= _DENSE:
        matrix = np.stack([along(row) for row in np.eye(start.size)])
        eigenvalues, directions = np.linalg.eigh(0.5 * (matrix + matrix.T))
        typical = 1.0
    else:
        eigenvalues, directions, typical = _lanczos(along, start.size)
    typical = max(typical, _SMALLEST_CURVATURE)
    eigenvalues = np.maximum(eigenvalues, _SMALLEST_CURVATURE) / typical
    scale = math.sqrt(typical)
    slope = at_mode / scale
    inside = directions.T @ slope
    newton = slope @ slope + (inside**2 * (1.0 / eigenvalues - 1.0)).sum()
    return Gaussian(mode, scale, directions, eigenvalues, 0, math.sqrt(max(float(newton), 0.0)))


def _lanczos(
    along: Callable[[np.ndarray], np.ndarray], size: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Directions of unusual curvature, the curvatures there, and the usual one.

    In a model with many coordinates most are determined by the prior alone and have its curvature.
    """
    basis = np.zeros((_DIRECTIONS, size))
    vector = np.random.default_rng(1).standard_normal(size)
    projected = np.zeros((_DIRECTIONS, _DIRECTIONS))
    for k in range(_DIRECTIONS):
        before = float(np.linalg.norm(vector))
        # Twice, because of rounding.
        for _ in range(2):
            vector = vector - basis[:k].T @ (basis[:k] @ vector)
        length = float(np.linalg.norm(vector))
        if length <= _NOISE * before:
            basis, projected = basis[:k], projected[:k, :k]
            break
        basis[k] = vector / length
        vector = along(basis[k])
        projected[k, : k + 1] = projected[: k + 1, k] = basis[: k + 1] @ vector
    eigenvalues, rotation = np.linalg.eigh(projected)
    # Squares of the first row are the shares of the spectrum that each value stands for.
    share = np.cumsum(rotation[0] ** 2)
    typical = float(eigenvalues[np.searchsorted(share, 0.5)])
    return eigenvalues, basis.T @ rotation, typical
