"""The coefficients of a linear model given its scales: mode, evidence, its gradient, draws.

Given the scales, the predictor is `eta = X (S u)` with `u ~ N(0, I)`. The posterior of u is normal
for a normal outcome and log-concave for a logistic one. `ByRows` works with matrices of rows by
rows, `ByColumns` with columns by columns; `conditional` takes the smaller. It is
written in NumPy, so nothing is compiled.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_solve, solve_triangular

from predcp.linear._likelihood import LOG_TWO_PI, Likelihood

_NEWTON_STEPS = 100
_HALVINGS = 30
_LAST_STEP = 1e-8
# Columns of a wide design that are scaled at once: a scaled copy of all would double the memory.
_AT_ONCE = 4096


class Slope(NamedTuple):
    """Derivatives of minus the log evidence in `log S` `(P, K)` and in the log of the noise."""

    log_scales: np.ndarray
    log_noise: float


class Draw(NamedTuple):
    """u `(P, K)`, the log density it was drawn from, and minus the log density of the model.

    The latter is the joint one of the outcomes and u, without the normalising constant of u.
    """

    u: np.ndarray
    log_density: float
    objective: float


class Mode(NamedTuple):
    """Last point of Newton's method.

    **Arguments**: `position`, in the coordinates of the method; `eta`, the predictor there
    `(N, K)`; `value` of the objective; `square`, R `(N, K, K)`; `root`, a Cholesky factor.
    """

    position: np.ndarray
    eta: np.ndarray
    value: float
    square: np.ndarray
    root: np.ndarray

    @property
    def log_determinant(self) -> float:
        """Log determinant of `I + F^T F`, the curvature of the objective in u, with `F = R^T X S`."""
        return 2.0 * float(np.log(np.diagonal(self.root)).sum())


@dataclass(frozen=True)
class Conditional:
    """A linear model with known scales.

    **Arguments**
    - `design`: `(N, P)`, a column of ones included where there is an intercept. `ByRows` takes it without
        that column, too, which spares a copy.
    - `scales`: `(P, K)`, prior standard deviations of the coefficients, the intercept's last.
    - `start`: a predictor `(N, K)` near that of the mode, for Newton's method; 0 if None.
    """

    likelihood: Likelihood
    design: Float[np.ndarray, "rows columns"]
    scales: Float[np.ndarray, "coefficients outputs"]
    start: np.ndarray | None = None

    def predictor(self, u: np.ndarray) -> Float[np.ndarray, "rows outputs"]:
        """eta of u `(P, K)`."""
        return self.design @ (self.scales * u)

    def score(self, eta: np.ndarray) -> Float[np.ndarray, "coefficients outputs"]:
        """The transpose of `predictor`."""
        return self.scales * (self.design.T @ eta)

    @property
    def mode(self) -> Float[np.ndarray, "coefficients outputs"]:
        """The most probable u."""
        raise NotImplementedError

    @cached_property
    def solution(self) -> Mode:
        """The mode as Newton's method found it."""
        raise NotImplementedError

    def minus_log_evidence(self) -> float:
        """Minus the log evidence of the outcomes given the scales; exact for a normal outcome."""
        return self.solution.value + 0.5 * self.solution.log_determinant

    def slope(self) -> Slope:
        """The derivatives of `minus_log_evidence`; they include the movement of the mode."""
        raise NotImplementedError

    def draw(self, generator: np.random.Generator) -> Draw:
        """One draw from the normal at the mode."""
        raise NotImplementedError

    def position(self, generator: np.random.Generator) -> Float[np.ndarray, "coefficients outputs"]:
        """u of such a draw, where its densities are not wanted."""
        return self.draw(generator).u


def conditional(
    likelihood: Likelihood, design: np.ndarray, scales: np.ndarray, start: np.ndarray | None = None
) -> Conditional:
    """The form with the smaller matrices."""
    form = ByRows if len(design) < len(scales) else ByColumns
    return form(likelihood, design, scales, start)


class ByRows(Conditional):
    """Fewer rows than columns: `u = S X^T a` with positions a `(N, K)`.

    Apart from the prior covariance of eta and one product with the design, all arrays have the
    size of the rows.
    """

    @property
    def _blocks(self) -> Iterator[slice]:
        columns = self.design.shape[1]
        return (slice(k, min(k + _AT_ONCE, columns)) for k in range(0, columns, _AT_ONCE))

    @property
    def _ones(self) -> bool:
        """Whether a column of ones is missing in the design."""
        return len(self.scales) > self.design.shape[1]

    def predictor(self, u: np.ndarray) -> Float[np.ndarray, "rows outputs"]:
        wide = self.scales * u
        eta = self.design @ wide[: self.design.shape[1]]
        return eta + wide[-1] if self._ones else eta

    def score(self, eta: np.ndarray) -> Float[np.ndarray, "coefficients outputs"]:
        sums = self.design.T @ eta
        if self._ones:
            sums = np.concatenate([sums, eta.sum(axis=0, keepdims=True)])
        return self.scales * sums

    @cached_property
    def kernels(self) -> Float[np.ndarray, "outputs rows rows"]:
        """Prior covariances of eta, `X S^2 X^T` of each output."""
        kernels = []
        for column in self.scales.T:
            kernel = np.zeros((len(self.design),) * 2)
            for block in self._blocks:
                half = self.design[:, block] * column[block]
                kernel += half @ half.T
            kernels.append(kernel + column[-1] ** 2 if self._ones else kernel)
        return np.stack(kernels)

    def _squares(self, matrix: np.ndarray) -> Float[np.ndarray, " columns"]:
        """The diagonal of `X^T matrix X`."""
        found = []
        for block in self._blocks:
            part = self.design[:, block]
            found.append(np.einsum("np,np->p", matrix @ part, part))
        return np.concatenate([*found, [matrix.sum()]] if self._ones else found)

    def _spread(self, a: np.ndarray) -> np.ndarray:
        """eta of a."""
        return np.stack([kernel @ part for kernel, part in zip(self.kernels, a.T)], axis=1)

    def _factorised(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R, and the Cholesky factor of `I + R^T K R`."""
        square = self.likelihood.square_root(eta)
        size = square.shape[0] * square.shape[1]
        matrix = np.zeros((len(square), square.shape[1], len(square), square.shape[1]))
        for k, kernel in enumerate(self.kernels):
            half = square[:, k]
            matrix += half[:, :, None, None] * kernel[:, None, :, None] * half
        matrix = matrix.reshape(size, size)
        matrix[np.diag_indices(size)] += 1.0
        return square, np.linalg.cholesky(matrix)

    @staticmethod
    def _inner(square: np.ndarray, root: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """`R (I + R^T K R)^-1 R^T eta`."""
        seen = (eta[:, None] @ square).reshape(-1)
        solved = cho_solve((root, True), seen).reshape(eta.shape)
        return (square @ solved[:, :, None])[:, :, 0]

    @cached_property
    def solution(self) -> Mode:
        likelihood = self.likelihood
        a = eta = np.zeros((len(self.design), self.scales.shape[1]))
        value = -likelihood.log_density(eta)
        if self.start is not None:
            # One step from `start`, if that is better than starting from 0.
            square, root = self._factorised(self.start)
            working = likelihood.working_response(self.start, square)
            moved = working - self._inner(square, root, self._spread(working))
            there = self._spread(moved)
            new = 0.5 * float(np.sum(moved * there)) - likelihood.log_density(there)
            if new < value:
                a, eta, value = moved, there, new
        square, root = self._factorised(eta)
        for _ in range(_NEWTON_STEPS):
            slope = likelihood.slope(eta) - a
            move = slope - self._inner(square, root, self._spread(slope))
            ahead = self._spread(move)
            # Twice the distance to the minimum; a step from here squares it.
            last = float(np.sum(slope * ahead)) < _LAST_STEP
            fraction = 1.0
            for _ in range(_HALVINGS):
                moved, there = a + fraction * move, eta + fraction * ahead
                new = 0.5 * float(np.sum(moved * there)) - likelihood.log_density(there)
                if last or new < value:
                    break
                fraction *= 0.5
            else:
                # No step improves: this is the mode to rounding.
                break
            a, eta, value = moved, there, new
            if not likelihood.quadratic:
                square, root = self._factorised(eta)
            if last:
                break
        return Mode(a, eta, value, square, root)

    @property
    def mode(self) -> Float[np.ndarray, "coefficients outputs"]:
        return self.score(self.solution.position)

    def slope(self) -> Slope:
        _, eta, _, square, root = self.solution
        rows, outputs = eta.shape
        # B = R (I + R^T K R)^-1 R^T, by blocks of outputs.
        inverse = cho_solve((root, True), np.eye(len(root))).reshape(rows, outputs, rows, outputs)
        inner = np.einsum("nka,namb,mlb->knlm", square, inverse, square, optimize=True)
        known = np.empty_like(self.scales)
        spread = np.zeros((rows, outputs, outputs))
        for k, kernel in enumerate(self.kernels):
            known[:, k] = self.scales[:, k] ** 2 * self._squares(inner[k, :, k])
            spread[:, k, k] = np.diagonal(kernel)
            for l, other in enumerate(self.kernels):
                spread[:, k, l] -= np.einsum("nm,mn->n", kernel @ inner[k, :, l], other)
        u, residual = self.mode, self.likelihood.slope(eta)
        if self.likelihood.quadratic:
            direct = -self.score(residual) * u
            return Slope(direct + known, self.likelihood.log_noise_slope(eta, spread))
        # Half the derivative in eta of tr(spread W): the curvature changes with the mode.
        change = 0.5 * self.likelihood.curvature_slope(eta, spread)
        moved = change - self._inner(square, root, self._spread(change))
        weighed = np.einsum("nka,nla,nl->nk", square, square, self._spread(moved))
        return Slope(u * self.score(change - residual - weighed + moved) + known, 0.0)

    def draw(self, generator: np.random.Generator) -> Draw:
        _, eta, _, square, root = self.solution
        noise = generator.standard_normal(self.scales.shape)
        # A draw of the prior, corrected by its error in the rows (Matheron's rule).
        drawn = self.predictor(noise)
        seen = (drawn[:, None] @ square).reshape(-1) + generator.standard_normal(len(root))
        solved = cho_solve((root, True), seen).reshape(eta.shape)
        back = (square @ solved[:, :, None])[:, :, 0]
        move = noise - self.score(back)
        ahead = drawn - self._spread(back)
        u = self.mode + move
        distance = float(np.sum(move**2) + np.sum((ahead[:, None] @ square) ** 2))
        log_density = 0.5 * (self.solution.log_determinant - distance - noise.size * LOG_TWO_PI)
        objective = 0.5 * float(np.sum(u**2)) - self.likelihood.log_density(eta + ahead)
        return Draw(u, log_density, objective)


class ByColumns(Conditional):
    """No more columns than rows: positions are u `(P, K)` itself."""

    @cached_property
    def _wide(self) -> list[np.ndarray]:
        return [self.design * column for column in self.scales.T]

    def _factorised(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R, and the Cholesky factor of `I + F^T F`."""
        square = self.likelihood.square_root(eta)
        weights, wide = square @ square.transpose(0, 2, 1), self._wide
        outputs = range(square.shape[1])
        blocks = [[(wide[k].T * weights[:, k, l]) @ wide[l] for l in outputs] for k in outputs]
        size = self.scales.size
        matrix = np.array(blocks).transpose(2, 0, 3, 1).reshape(size, size)
        matrix[np.diag_indices(size)] += 1.0
        return square, np.linalg.cholesky(matrix)

    @cached_property
    def solution(self) -> Mode:
        likelihood = self.likelihood
        u, eta = np.zeros_like(self.scales), np.zeros((len(self.design), self.scales.shape[1]))
        value = -likelihood.log_density(eta)
        if self.start is not None:
            square, root = self._factorised(self.start)
            pulled = self.score(likelihood.working_response(self.start, square))
            moved = cho_solve((root, True), pulled.reshape(-1)).reshape(u.shape)
            there = self.predictor(moved)
            new = 0.5 * float(np.sum(moved**2)) - likelihood.log_density(there)
            if new < value:
                u, eta, value = moved, there, new
        square, root = self._factorised(eta)
        for _ in range(_NEWTON_STEPS):
            slope = self.score(likelihood.slope(eta)) - u
            move = cho_solve((root, True), slope.reshape(-1)).reshape(u.shape)
            ahead = self.predictor(move)
            last = float(np.sum(slope * move)) < _LAST_STEP
            fraction = 1.0
            for _ in range(_HALVINGS):
                moved, there = u + fraction * move, eta + fraction * ahead
                new = 0.5 * float(np.sum(moved**2)) - likelihood.log_density(there)
                if last or new < value:
                    break
                fraction *= 0.5
            else:
                break
            u, eta, value = moved, there, new
            if not likelihood.quadratic:
                square, root = self._factorised(eta)
            if last:
                break
        return Mode(u, eta, value, square, root)

    @property
    def mode(self) -> Float[np.ndarray, "coefficients outputs"]:
        return self.solution.position

    def slope(self) -> Slope:
        u, eta, _, square, root = self.solution
        inverse = cho_solve((root, True), np.eye(len(root)))
        known = 1.0 - np.diagonal(inverse).reshape(u.shape)
        inverse = inverse.reshape(*u.shape, *u.shape)
        outputs = range(eta.shape[1])
        spread = np.empty((len(eta), len(outputs), len(outputs)))
        for k in outputs:
            for l in outputs:
                spread[:, k, l] = np.einsum(
                    "np,np->n", self._wide[k] @ inverse[:, k, :, l], self._wide[l]
                )
        residual = self.likelihood.slope(eta)
        if self.likelihood.quadratic:
            direct = -self.score(residual) * u
            return Slope(direct + known, self.likelihood.log_noise_slope(eta, spread))
        change = 0.5 * self.likelihood.curvature_slope(eta, spread)
        pulled = self.score(change).reshape(-1)
        moved = cho_solve((root, True), pulled).reshape(u.shape)
        weighed = np.einsum("nka,nla,nl->nk", square, square, self.predictor(moved))
        direct = u * self.score(change - residual - weighed)
        return Slope(direct + moved * u + known, 0.0)

    def draw(self, generator: np.random.Generator) -> Draw:
        noise, move = self._move(generator)
        # `|L^T move|^2` is the length of the noise.
        log_density = self.solution.log_determinant - float(noise @ noise) - noise.size * LOG_TWO_PI
        u, there = self.mode + move, self.solution.eta + self.predictor(move)
        objective = 0.5 * float(np.sum(u**2)) - self.likelihood.log_density(there)
        return Draw(u, 0.5 * log_density, objective)

    def position(self, generator: np.random.Generator) -> Float[np.ndarray, "coefficients outputs"]:
        # Without a look at the rows, which may be many.
        return self.mode + self._move(generator)[1]

    def _move(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Standard noise and the distance from the mode that it gives."""
        noise = generator.standard_normal(self.mode.size)
        move = solve_triangular(self.solution.root, noise, trans=1, lower=True)
        return noise, move.reshape(self.mode.shape)
