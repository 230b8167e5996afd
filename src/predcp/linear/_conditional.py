"""The coefficients of a linear model given its scales: mode, evidence, its gradient, draws.

Given the scales, a linear predictor is `eta = X (S u)` with `u ~ N(0, I)`, so the posterior of u
is normal for a normal response and log-concave for a logistic one. In NumPy: there is nothing to
compile, and the matrices are as large as the smaller side of the design.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import expit, log_expit, log_softmax, softmax

Family = Literal["bernoulli", "categorical", "normal"]
_LOG_TAU = math.log(2.0 * math.pi)
_NEWTON_STEPS = 100
_HALVINGS = 30
_LAST_STEP = 1e-8


class Slope(NamedTuple):
    """Derivatives of minus the log evidence in `log S` `(P, K)` and in the log of the noise."""

    log_scales: np.ndarray
    log_noise: float


@dataclass(frozen=True)
class Conditional:
    """A linear model with known scales; K is 1 but for a categorical one.

    **Arguments**
    - `design`: `(N, P)`, a column of ones included where there is an intercept.
    - `scales`: `(P, K)`, prior standard deviations of the coefficients.
    - `outcomes`, `weights`: `(N,)`; `noise`: standard deviation of a normal outcome.
    """

    family: Family
    design: Float[np.ndarray, "rows columns"]
    scales: Float[np.ndarray, "columns outputs"]
    outcomes: np.ndarray
    weights: Float[np.ndarray, " rows"]
    noise: float = 1.0

    @property
    def dual(self) -> bool:
        """Whether there are fewer rows than columns."""
        return self.design.shape[0] < self.design.shape[1]

    @cached_property
    def kernels(self) -> Float[np.ndarray, "outputs rows rows"]:
        """Prior covariances of eta."""
        wide = [self.design * column for column in self.scales.T]
        return np.stack([half @ half.T for half in wide])

    def predictor(self, u: np.ndarray) -> Float[np.ndarray, "rows outputs"]:
        """eta of u `(P, K)`."""
        return self.design @ (self.scales * u)

    def objective(self, u: np.ndarray) -> float:
        """Minus the log density of the outcomes and of u, but for u's normalising constant."""
        eta, y = self.predictor(u), self.outcomes
        if self.family == "normal":
            terms = -0.5 * (((y - eta[:, 0]) / self.noise) ** 2 + _LOG_TAU) - math.log(self.noise)
        elif self.family == "bernoulli":
            terms = log_expit(np.where(y > 0, eta[:, 0], -eta[:, 0]))
        else:
            terms = np.take_along_axis(log_softmax(eta, axis=1), y[:, None], axis=1)[:, 0]
        return 0.5 * float(np.sum(u**2)) - float(self.weights @ terms)

    @cached_property
    def mode(self) -> Float[np.ndarray, "columns outputs"]:
        """The most probable u, by Newton's method with step halving."""
        u = np.zeros_like(self.scales)
        value = self.objective(u)
        for _ in range(_NEWTON_STEPS):
            slope = self.score(self._residual(u)) - u
            move = Curvature.of(self, u).solve(slope)
            # Twice the distance to the minimum; a step from here squares it.
            if float(np.sum(slope * move)) < _LAST_STEP:
                return u + move
            fraction, ahead = 1.0, self.objective(u + move)
            for _ in range(_HALVINGS):
                if ahead < value:
                    break
                fraction *= 0.5
                ahead = self.objective(u + fraction * move)
            u, value = u + fraction * move, ahead
        return u

    @cached_property
    def curvature(self) -> "Curvature":
        """Of the objective at the mode."""
        return Curvature.of(self, self.mode)

    def minus_log_evidence(self) -> float:
        """Of the outcomes given the scales, by Laplace's method: exact for a normal outcome."""
        return self.objective(self.mode) + 0.5 * self.curvature.log_determinant

    def slope(self) -> Slope:
        """The derivatives of `minus_log_evidence`, the mode's own movement included."""
        u, curvature = self.mode, self.curvature
        residual = self._residual(u)
        known = 1.0 - curvature.inverse_diagonal
        spread = curvature.predictor_covariance()
        if self.family == "normal":
            z = (self.outcomes - self.predictor(u)[:, 0]) / self.noise
            explained = z**2 + spread[:, 0, 0] / self.noise**2
            direct = -self.score(residual) * u
            return Slope(direct + known, float(self.weights @ (1.0 - explained)))
        # Half the derivative in eta of tr(spread W): the curvature changes with the mode.
        change = 0.5 * self.weights[:, None] * self._curvature_slope(u, spread)
        moved = curvature.solve(self.score(change))
        weighed = np.einsum(
            "nka,nla,nl->nk", curvature.square, curvature.square, self.predictor(moved)
        )
        direct = u * self.score(change - residual - weighed)
        return Slope(direct + moved * u + known, 0.0)

    def draw(self, generator: np.random.Generator) -> tuple[np.ndarray, float]:
        """One u `(P, K)` from the normal at the mode, and the log of its density there."""
        curvature = self.curvature
        noise = generator.standard_normal(self.scales.shape)
        if self.dual:
            # A draw of the prior, corrected by what the rows say of it (Matheron's rule).
            rows = generator.standard_normal(len(curvature.root))
            seen = curvature.forward(noise) + rows
            move = noise - curvature.backward(cho_solve((curvature.root, True), seen))
        else:
            flat = solve_triangular(curvature.root, noise.reshape(-1), trans=1, lower=True)
            move = flat.reshape(noise.shape)
        distance = float(np.sum(move**2) + np.sum(curvature.forward(move) ** 2))
        log_density = 0.5 * (curvature.log_determinant - distance - noise.size * _LOG_TAU)
        return self.mode + move, log_density

    def score(self, eta: np.ndarray) -> Float[np.ndarray, "columns outputs"]:
        """The transpose of `predictor`."""
        return self.scales * (self.design.T @ eta)

    def _residual(self, u: np.ndarray) -> Float[np.ndarray, "rows outputs"]:
        """The slope of the log likelihood in eta."""
        eta, y = self.predictor(u), self.outcomes
        if self.family == "normal":
            residual = (y[:, None] - eta) / self.noise**2
        elif self.family == "bernoulli":
            residual = np.where(y[:, None] > 0, expit(-eta), -expit(eta))
        else:
            residual = np.eye(eta.shape[1])[y] - softmax(eta, axis=1)
        return self.weights[:, None] * residual

    def _curvature_slope(self, u: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """The derivative of `tr(spread_n W_n)` in eta_n, at weight 1."""
        eta = self.predictor(u)
        if self.family == "bernoulli":
            p = expit(eta)
            return spread[:, :, 0] * p * expit(-eta) * (1.0 - 2.0 * p)
        p = softmax(eta, axis=1)
        slope = np.einsum("nkk->nk", spread) - 2.0 * np.einsum("nkl,nl->nk", spread, p)
        return p * (slope - np.sum(p * slope, axis=1, keepdims=True))


@dataclass(frozen=True)
class Curvature:
    """`I + F^T F`, the curvature of the objective in u, by the factor of the smaller side.

    F `(N K, P K)` is R^T times the derivative of the predictor in u.

    **Arguments**
    - `square`: R `(N, K, K)`, `R R^T` minus the second derivative of the log likelihood in eta.
    - `root`: Cholesky factor of `I + F^T F`, or of `I + F F^T` where that is smaller.
    """

    model: Conditional
    square: np.ndarray
    root: np.ndarray

    @classmethod
    def of(cls, model: Conditional, u: np.ndarray) -> "Curvature":
        """At u `(P, K)`."""
        square = _square_root(model, u)
        # Loops over the few outputs: finding an order of contraction takes longer than this.
        outputs = range(square.shape[1])
        if model.dual:
            blocks = [
                square[:, k, :, None, None] * model.kernels[k][:, None, :, None] * square[:, k]
                for k in outputs
            ]
            matrix = np.sum(blocks, axis=0)
        else:
            weights = square @ square.transpose(0, 2, 1)
            wide = [model.design * column for column in model.scales.T]
            blocks = [[(wide[k].T * weights[:, k, l]) @ wide[l] for l in outputs] for k in outputs]
            matrix = np.array(blocks).transpose(2, 0, 3, 1)
        size = min(square.shape[0], len(model.scales)) * len(outputs)
        return cls(model, square, np.linalg.cholesky(matrix.reshape(size, size) + np.eye(size)))

    @property
    def log_determinant(self) -> float:
        """Of `I + F^T F`."""
        return 2.0 * float(np.log(np.diagonal(self.root)).sum())

    def forward(self, u: np.ndarray) -> np.ndarray:
        """F u `(N K,)` for u `(P, K)`."""
        return (self.model.predictor(u)[:, None] @ self.square).reshape(-1)

    def backward(self, rows: np.ndarray) -> np.ndarray:
        """F^T rows `(P, K)`."""
        eta = self.square @ rows.reshape(*self.square.shape[:2], 1)
        return self.model.score(eta[:, :, 0])

    def solve(self, b: np.ndarray) -> np.ndarray:
        """`(I + F^T F)^-1 b` for b `(P, K)`."""
        if self.model.dual:
            return b - self.backward(cho_solve((self.root, True), self.forward(b)))
        return cho_solve((self.root, True), b.reshape(-1)).reshape(b.shape)

    @cached_property
    def _whitened(self) -> np.ndarray:
        """`(sides, P, K)`: its squares are what the rows take off the variances, or leave."""
        model = self.model
        if model.dual:
            factor = np.einsum("nka,np,pk->napk", self.square, model.design, model.scales)
            right = factor.reshape(len(self.root), -1)
        else:
            right = np.eye(len(self.root))
        solved = solve_triangular(self.root, right, lower=True)
        return solved.reshape(-1, *model.scales.shape)

    @property
    def inverse_diagonal(self) -> Float[np.ndarray, "columns outputs"]:
        """Variances of u."""
        squares = np.sum(self._whitened**2, axis=0)
        return 1.0 - squares if self.model.dual else squares

    def predictor_covariance(self) -> Float[np.ndarray, "rows k k"]:
        """Of eta, row by row."""
        design, scales = self.model.design, self.model.scales
        seen = np.einsum("jpk,np->njk", self._whitened * scales, design, optimize=True)
        covariance = np.einsum("njk,njl->nkl", seen, seen, optimize=True)
        if not self.model.dual:
            return covariance
        prior = np.einsum("knn->nk", self.model.kernels)
        return prior[:, :, None] * np.eye(scales.shape[1]) - covariance


def _square_root(model: Conditional, u: np.ndarray) -> Float[np.ndarray, "rows k k"]:
    weight = np.sqrt(model.weights)[:, None, None]
    if model.family == "normal":
        return weight / model.noise
    eta = model.predictor(u)
    if model.family == "bernoulli":
        return weight * np.exp(0.5 * (log_expit(eta) + log_expit(-eta)))[:, :, None]
    root = np.exp(0.5 * log_softmax(eta, axis=1))
    # diag(p) - p p^T is the square of diag(r) (I - r r^T), r the square root of p.
    centred = np.eye(eta.shape[1]) - root[:, :, None] * root[:, None, :]
    return weight * root[:, :, None] * centred
