"""An answer within a fraction of the time: coefficients with one common scale, in NumPy alone.

Laplace's method given the scale, and a grid of scales, each as probable as it makes the outcomes. There are
no local scales, and nothing is compiled. `Auto` answers with it when its time is up before the prior's own
approximation is ready.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from predcp.linear._coefficient_prior import LocalScalePrior
from predcp.linear._conditional import Conditional, conditional
from predcp.linear._draws import Draws
from predcp.linear._likelihood import Family, Likelihood
from predcp.linear._target import Target

# Of more rows, a sample of so many is looked at; and the largest side of the matrices of several classes.
_MOST_ROWS, _MOST_OUTPUTS = 20_000, 2000
# Where time is short, so many rows that the smaller matrices can be made and factorised in it: operations a
# second, and factorisations of all fits; at least so many rows, and of a narrow table.
_RATE, _FACTORISATIONS, _FEWEST_ROWS, _FEW_ROWS = 1e10, 60.0, 50, 1000
# Of the time: when the columns are read, when all scales are tried; the rest is for the draws.
_READ, _TRIED = 0.4, 0.7
# Draws, however short the time is; operations of draws that take no time; seconds of one normal number.
_FEWEST_DRAWS, _FREE, _NORMAL_SECONDS = 20, 2**22, 1.5e-8
# Draws may take a quarter of a design in single precision, or so many bytes.
_BYTES_PER_ENTRY, _SMALL = 1, 2**26
# Logs of tau around that of standardised columns which explain about as much as there is to explain;
# the most usual first, in case the time is up.
_LOG_TAUS = (0.0, -1.0, 1.0, -2.0, 2.0, -3.0, 3.0, -4.0)
# Noise of a standardised normal outcome.
_NOISES = (0.6, 0.9, 0.35, 0.15, 0.05)
# Prior standard deviations of the intercept, as in `logistic_regression` and `linear_regression`.
_INTERCEPTS = {"normal": 1.0, "bernoulli": 2.5, "categorical": 2.5}
# Relative eigenvalues that are rounding errors of single precision.
_ROUNDING = 1e-6
# Columns of a wide design that are worked on at once.
_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True)
class QuickLook:
    """The sampler `Auto` falls back to; see above.

    **Arguments**
    - `draws` from the approximation, `seed` of them.
    - `max_seconds`: there are then fewer scales and draws. Of a very wide design, only some of the columns
        are then looked at (their number is in `figures`); the coefficients of the others are 0.
    """

    draws: int = 400
    seed: int = 0
    max_seconds: float = math.inf

    def sample(self, target: Target) -> list[Draws] | None:
        """Draws of every problem, or None of a model that is no linear or logistic regression."""
        family = _family(target)
        if family is None:
            return None
        began, count = time.monotonic(), target.problems or 1
        found = []
        for number in range(count):
            data = (
                target.data if target.problems is None else [part[number] for part in target.data]
            )
            deadline = began + (number + 1) * self.max_seconds / count
            found.append(self._one(target, family, *map(np.asarray, data), number, deadline))
        return found

    def _one(self, target: Target, family: Family, x: Any, y: Any, *rest: Any) -> Draws:
        *weights, number, deadline = rest
        began = time.perf_counter()
        seconds = max(deadline - time.monotonic(), 0.0)
        generator = np.random.default_rng((self.seed, number))
        counted = np.asarray(weights[0], np.float64) if weights else np.ones(len(x))
        columns, most = x.shape[1], _MOST_ROWS
        if family == "categorical":
            columns = columns * int(target.options["classes"])
            most = most if columns <= _MOST_OUTPUTS else _MOST_OUTPUTS * x.shape[1] // columns
        if math.isfinite(seconds):
            operations = seconds * _RATE / _FACTORISATIONS
            side = max(int(operations ** (1 / 3)), _FEWEST_ROWS)
            if columns <= side:
                side = max(int(operations / columns**2), columns, _FEW_ROWS)
            most = min(most, side)
        rows = None
        if len(x) > most:
            rows = np.sort(generator.choice(len(x), most, replace=False))
            counted, y = counted[rows] * len(x) / most, y[rows]
        intercept = bool(target.options.get("intercept", True))
        read_until = deadline - (1.0 - _READ) * seconds if seconds < math.inf else math.inf
        directions = _Directions.of(x, rows, generator, read_until)
        fitted = _Fits(directions, family, y, counted, target, intercept)
        tried_until = deadline - (1.0 - _TRIED) * seconds if seconds < math.inf else math.inf
        models, log_evidences = [], []
        for log_tau, noise in fitted.grid():
            model = fitted.model(log_tau, noise)
            evidence = -model.minus_log_evidence()
            if np.isfinite(evidence):
                models.append((log_tau, noise, model))
                log_evidences.append(evidence)
            if models and time.monotonic() > tried_until:
                break
        draws = min(self.draws, fitted.affordable(deadline - time.monotonic()))
        places = generator.choice(len(models), draws, p=softmax(log_evidences))
        chosen = [models[place] for place in places]
        drawn, fewest = [], max(_FEWEST_DRAWS, _FREE // models[0][-1].scales.size ** 2)
        for *_, model in chosen:
            drawn.append(model.position(generator))
            if len(drawn) >= fewest and time.monotonic() > deadline:
                break
        u, chosen = np.stack(drawn), chosen[: len(drawn)]
        tau = np.exp([log_tau for log_tau, *_ in chosen])
        values = fitted.values(u, tau, generator)
        if family == "normal":
            values["sigma"] = np.array([noise for _, noise, _ in chosen])
        values["log_tau"] = np.log(tau)
        if isinstance(target.options.get("prior"), LocalScalePrior):
            values["lambda"] = np.broadcast_to(np.float32(1.0), values["beta"].shape)
        values = {name: value[None] for name, value in values.items()}
        figures = {
            "scales": float(len(models)),
            "columns": float(directions.columns),
            "reading": directions.reading,
        }
        return Draws(values, {}, None, time.perf_counter() - began, 0, figures)


@dataclass(frozen=True)
class _Directions:
    """A design as its rows see it: `x = small @ back(...)` with at most as many columns as rows.

    **Arguments**
    - `x`: the design; `rows` of it, all if None; `blocks` of its columns.
    - `small`: the rows themselves where there are no more columns than rows.
    - `across`: `(rows, directions)`, with `x^T across` orthonormal; None where small is x.
    - `reading`: seconds that the product of the whole design with itself would take.
    """

    x: Any
    rows: np.ndarray | None
    blocks: list[slice]
    small: Float[np.ndarray, "rows directions"]
    across: Float[np.ndarray, "rows directions"] | None
    reading: float = 0.0

    @classmethod
    def of(
        cls, x: Any, rows: np.ndarray | None, generator: np.random.Generator, deadline: float
    ) -> "_Directions":
        """The directions in which the rows differ; in random columns if the deadline comes first."""
        columns = x.shape[1]
        count = len(x) if rows is None else len(rows)
        if columns <= count:
            small = np.asarray(x if rows is None else x[rows], np.float64)
            return cls(x, rows, [slice(0, columns)], small, None)
        blocks = [slice(k, min(k + _AT_ONCE, columns)) for k in range(0, columns, _AT_ONCE)]
        gram, began, seen = np.zeros((count, count)), time.monotonic(), []
        for place in generator.permutation(len(blocks)):
            part = _single(x, rows, blocks[place])
            gram += part @ part.T
            seen.append(blocks[place])
            if time.monotonic() > deadline:
                break
        share = sum(block.stop - block.start for block in seen) / columns
        reading = (time.monotonic() - began) / share * (len(x) / count) ** 2
        squares, vectors = np.linalg.eigh(gram)
        kept = squares > _ROUNDING * squares[-1]
        lengths, vectors = np.sqrt(squares[kept]), vectors[:, kept]
        return cls(x, rows, seen, vectors * lengths, vectors / lengths, reading)

    @property
    def columns(self) -> int:
        """Number of columns that are looked at."""
        return sum(block.stop - block.start for block in self.blocks)

    def coefficients(
        self, inside: np.ndarray, tau: np.ndarray, generator: np.random.Generator, beta: np.ndarray
    ) -> None:
        """Write coefficients `(draws, columns)` into zeros, from those of the directions.

        Outside of the directions that the rows see they have their prior.

        **Arguments**: `inside`, `(draws, directions)`; `tau`, `(draws,)`, standard deviations of the prior.
        """
        if self.across is None:
            beta[...] = inside
            return
        seen = np.zeros((len(inside), len(self.across)), np.float32)
        for block in self.blocks:
            shape = (len(inside), block.stop - block.start)
            noise = generator.standard_normal(shape, np.float32) * tau[:, None].astype(np.float32)
            seen += noise @ _single(self.x, self.rows, block).T
            beta[:, block] = noise
        change = ((inside - seen @ self.across) @ self.across.T).astype(np.float32)
        for block in self.blocks:
            beta[:, block] += change @ _single(self.x, self.rows, block)


def _single(x: Any, rows: np.ndarray | None, block: slice) -> np.ndarray:
    part = x[:, block] if rows is None else x[rows, block]
    return np.asarray(part, np.float32)


@dataclass(frozen=True)
class _Fits:
    """Fits with one scale to one table."""

    directions: _Directions
    family: Family
    y: np.ndarray
    weights: np.ndarray
    target: Target
    intercept: bool

    @property
    def outputs(self) -> int:
        """Logits of a categorical outcome, else 1."""
        return int(self.target.options["classes"]) if self.family == "categorical" else 1

    def grid(self) -> Iterator[tuple[float, float]]:
        """Values of log tau and of the noise."""
        usual = -0.5 * math.log(self.directions.columns)
        for log_tau in _LOG_TAUS:
            for noise in _NOISES if self.family == "normal" else (1.0,):
                yield usual + log_tau, noise

    def model(self, log_tau: float, noise: float) -> Conditional:
        """The coefficients given the scales."""
        design = self.directions.small
        scales = np.full((design.shape[1], self.outputs), math.exp(log_tau))
        if self.intercept:
            design = np.concatenate([design, np.ones((len(design), 1))], axis=1)
            last = np.full((1, self.outputs), _INTERCEPTS[self.family])
            scales = np.concatenate([scales, last])
        likelihood = Likelihood(self.family, self.y, self.weights, noise)
        return conditional(likelihood, design, scales)

    def values(
        self, u: np.ndarray, tau: np.ndarray, generator: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """The sites `beta` and `alpha` from u `(draws, directions, outputs)` and tau `(draws,)`."""
        found, directions = {}, u
        if self.intercept:
            directions, alpha = u[:, :-1], u[:, -1] * _INTERCEPTS[self.family]
            found["alpha"] = alpha if self.outputs > 1 else alpha[:, 0]
        kind = np.float64 if self.directions.across is None else np.float32
        beta = np.zeros((self.outputs, len(u), self.directions.x.shape[1]), kind)
        for output in range(self.outputs):
            inside = directions[:, :, output] * tau[:, None]
            self.directions.coefficients(inside, tau, generator, beta[output])
        found["beta"] = np.moveaxis(beta, 0, -1) if self.outputs > 1 else beta[0]
        return found

    def affordable(self, seconds: float) -> int:
        """How many draws there is time and memory for."""
        x, directions = self.directions.x, self.directions
        bytes_each = 4 * x.shape[1] * self.outputs
        most = max(_BYTES_PER_ENTRY * x.size, _SMALL) // bytes_each
        if directions.across is not None and math.isfinite(seconds):
            count = len(directions.across)
            # Two products with the design each, where the directions took one for each row.
            share = directions.columns / x.shape[1] * (count / len(x)) ** 2
            products = 2.0 * share * directions.reading / count
            each = self.outputs * (products + _NORMAL_SECONDS * directions.columns)
            most = min(most, int(seconds / each))
        return max(most, _FEWEST_DRAWS)


def _family(target: Target) -> Family | None:
    if target.family is not None:
        return target.family
    return "categorical" if int(target.options.get("classes", 0)) > 2 else None
