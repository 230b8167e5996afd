"""The likelihood of a linear predictor in NumPy: value, slope and curvature, row by row."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.special import expit, log_expit, log_softmax, softmax

Family = Literal["bernoulli", "categorical", "normal"]
LOG_TWO_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Likelihood:
    """Outcomes given a predictor eta `(N, K)`; K is 1 except for a categorical outcome.

    **Arguments**: `outcomes`, `weights`: `(N,)`; `noise`: standard deviation of a normal outcome.
    """

    family: Family
    outcomes: np.ndarray
    weights: Float[np.ndarray, " rows"]
    noise: float = 1.0

    @property
    def quadratic(self) -> bool:
        """Whether the curvature is constant."""
        return self.family == "normal"

    def log_density(self, eta: Float[np.ndarray, "rows outputs"]) -> float:
        """Weighted sum over the rows."""
        y = self.outcomes
        if self.family == "normal":
            z = (y - eta[:, 0]) / self.noise
            terms = -0.5 * (z**2 + LOG_TWO_PI) - math.log(self.noise)
        elif self.family == "bernoulli":
            terms = log_expit(np.where(y > 0, eta[:, 0], -eta[:, 0]))
        else:
            terms = np.take_along_axis(log_softmax(eta, axis=1), y[:, None], axis=1)[:, 0]
        return float(self.weights @ terms)

    def slope(self, eta: np.ndarray) -> Float[np.ndarray, "rows outputs"]:
        """Slope of the log density in eta."""
        y = self.outcomes
        if self.family == "normal":
            slope = (y[:, None] - eta) / self.noise**2
        elif self.family == "bernoulli":
            slope = np.where(y[:, None] > 0, expit(-eta), -expit(eta))
        else:
            slope = np.eye(eta.shape[1])[y] - softmax(eta, axis=1)
        return self.weights[:, None] * slope

    def square_root(self, eta: np.ndarray) -> Float[np.ndarray, "rows outputs outputs"]:
        """R with `R R^T` minus the second derivative of the log density, row by row."""
        weight = np.sqrt(self.weights)[:, None, None]
        if self.family == "normal":
            return weight / self.noise
        if self.family == "bernoulli":
            return weight * np.exp(0.5 * (log_expit(eta) + log_expit(-eta)))[:, :, None]
        root = np.exp(0.5 * log_softmax(eta, axis=1))
        # diag(p) - p p^T is the square of diag(r) (I - r r^T), r the square root of p.
        centred = np.eye(eta.shape[1]) - root[:, :, None] * root[:, None, :]
        return weight * root[:, :, None] * centred

    def working_response(self, eta: np.ndarray, square: np.ndarray) -> np.ndarray:
        """`W eta + slope`: Newton's normal equations at eta are `(I + F^T F) u = S X^T` of it."""
        weighed = square @ (square.transpose(0, 2, 1) @ eta[:, :, None])
        return weighed[:, :, 0] + self.slope(eta)

    def curvature_slope(self, eta: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """The derivative in eta_n of `tr(spread_n R_n R_n^T)`, spread `(N, K, K)`."""
        if self.family == "normal":
            return np.zeros_like(eta)
        if self.family == "bernoulli":
            p = expit(eta)
            slope = spread[:, :, 0] * p * expit(-eta) * (1.0 - 2.0 * p)
        else:
            p = softmax(eta, axis=1)
            slope = np.einsum("nkk->nk", spread) - 2.0 * np.einsum("nkl,nl->nk", spread, p)
            slope = p * (slope - np.sum(p * slope, axis=1, keepdims=True))
        return self.weights[:, None] * slope

    def log_noise_slope(self, eta: np.ndarray, spread: np.ndarray) -> float:
        """The derivative of minus the log evidence in the log of the noise."""
        if self.family != "normal":
            return 0.0
        z = (self.outcomes - eta[:, 0]) / self.noise
        return float(self.weights @ (1.0 - z**2 - spread[:, 0, 0] / self.noise**2))
