"""A normal distribution at the mode of any smooth function, in few or many dimensions."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# Value and gradient of minus a log density.
Potential = Callable[[np.ndarray], tuple[Any, Any]]

# Up to so many coordinates every second derivative is found; beyond, the directions that matter.
_DENSE = 256
_DIRECTIONS = 100
# Of the gradient's difference: well above rounding, and its error of the first order is still 1e-5.
_STEP = float(np.finfo(np.float64).eps) ** (1 / 3)
# Coordinates are such that priors have a width of about 1: no direction is wider than 4.
_SMALLEST_CURVATURE = 1.0 / 16.0
_LONGEST_SEARCH = 2000
_RESTARTS = 20
# Of differences of gradients, relative.
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


def normal_at_mode(potential: Potential, start: np.ndarray) -> Gaussian:
    """Climb to the mode from `start` `(dim,)` and look at the curvature there.

    Every eigenvalue of the curvature that is too small, or negative at a mode that is none, is
    raised, so that the answer is always a distribution.
    """
    from scipy.optimize import minimize

    if start.size == 0:
        return Gaussian(start, 1.0, np.zeros((0, 0)), np.zeros(0), 0, 0.0)
    count = 0

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal count
        count += 1
        try:
            value, slope = potential(theta)
        except np.linalg.LinAlgError:
            return math.inf, np.zeros_like(theta)
        value, slope = float(value), np.asarray(slope, np.float64)
        if not (math.isfinite(value) and np.isfinite(slope).all()):
            # A line search steps back from here.
            return math.inf, np.zeros_like(theta)
        return value, slope

    if not math.isfinite(evaluate(start)[0]):
        raise NoMode(
            "the posterior has no finite density where the search for its mode starts; check that "
            "the prior is proper and the data have no extreme values"
        )
    options = {"maxiter": _LONGEST_SEARCH, "maxfun": 2 * _LONGEST_SEARCH, "ftol": 0, "gtol": 1e-6}
    mode, before = start, math.inf
    for _ in range(_RESTARTS):
        found = minimize(evaluate, mode, jac=True, method="L-BFGS-B", options=options)
        mode = np.asarray(found.x)
        # A step out of floating point ends a search early; the next one starts with short steps.
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
    return Gaussian(mode, scale, directions, eigenvalues, count, math.sqrt(max(float(newton), 0.0)))


def _lanczos(
    along: Callable[[np.ndarray], np.ndarray], size: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Directions of unusual curvature, the curvatures there, and the usual one.

    Most coordinates of a model with many are only seen by their prior, and curve as it does.
    """
    basis = np.zeros((_DIRECTIONS, size))
    vector = np.random.default_rng(1).standard_normal(size)
    projected = np.zeros((_DIRECTIONS, _DIRECTIONS))
    for k in range(_DIRECTIONS):
        before = float(np.linalg.norm(vector))
        # Twice, against rounding.
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
