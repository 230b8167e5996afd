"""Laplace's method for linear models, twice: coefficients given their scales, then the scales."""

import contextlib
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp.linear._conditional import Conditional
from predcp.linear._draws import Draws
from predcp.linear._gaussian import Gaussian, normal_at_mode
from predcp.linear._layout import Progress
from predcp.linear._scales import Rows, Scales, Split
from predcp.linear._target import Target

_CHUNK = 50
# Of the matrices that are factorised: rounding leaves 1 of it two digits.
_LOG_CONDITION = np.log(1e14)
# Of the logarithms of scales: their squares are still numbers.
_FAR = 350.0
_TRIES = 100
_LARGE_SIDE = 500


@dataclass(frozen=True)
class Laplace:
    """Normals at modes: seconds where sampling takes minutes, and no proof that it is enough.

    The coefficients are integrated given the scales (exactly for a normal response), so that many
    columns do not inflate them; the scales get one normal at the mode of what remains, in the
    coordinates in which samplers move them. Good for trying things out; where several modes
    or long tails matter, report `Nuts`. Always in double precision.

    **Arguments**: `draws` from the approximation, `seed` of them.
    """

    draws: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.draws < 4:
            raise ValueError(f"draws must be at least 4, got {self.draws}")

    def sample(self, target: Target, progress: Progress | None = None) -> list[Draws]:
        """Draws of every problem of the target, as one chain each."""
        count = target.problems or 1
        side = min(np.shape(target.data[0])[-2:])
        with jax.enable_x64(True), _few_threads(side):
            results = []
            for number in range(count):
                data = tuple(
                    _double(part if target.problems is None else part[number])
                    for part in target.data
                )

                def report(done: int, total: int, number: int = number) -> None:
                    if progress is not None:
                        progress(number * total + done, count * total)

                results.append(self._one(target, data, number, report))
            return results

    def _one(self, target: Target, data: tuple[Any, ...], number: int, report: Progress) -> Draws:
        program = _program(target, data)
        calls = -(-self.draws // _CHUNK)
        # The search for the mode counts as much as all draws: its length is not known before.
        total = 2 * calls
        report(0, total)
        began = time.perf_counter()
        posterior = _Posterior(program, data)
        normal = normal_at_mode(posterior.potential, program.scales.start())
        report(calls, total)
        generator = np.random.default_rng((self.seed, number))
        kept, lp, log_q = [], np.empty(self.draws), np.empty(self.draws)
        for i in range(self.draws):
            sites, log_q[i], lp[i] = posterior.draw(normal, generator)
            kept.append(sites)
            if (i + 1) % _CHUNK == 0 or i + 1 == self.draws:
                report(calls + -(-(i + 1) // _CHUNK), total)
        values = jax.tree.map(lambda *parts: np.stack(parts)[None], *kept)
        seconds = time.perf_counter() - began
        figures = {"steps": float(normal.evaluations), "slope": normal.slope}
        statistics = {"lp": lp[None], "log_q": log_q[None]}
        return Draws(values, statistics, None, seconds, normal.evaluations, figures)


class _Evaluation(NamedTuple):
    """One position of the scales: what they are, a gradient, the rows, and what is kept of it."""

    split: Split
    slope: Array
    rows: Rows
    kept: Any


class _Program(NamedTuple):
    scales: Scales
    evaluate: Callable[..., _Evaluation]


class _Posterior:
    """Scales and coefficients of one problem."""

    def __init__(self, program: _Program, data: tuple[Any, ...]) -> None:
        self._program, self._data = program, data
        self._design = np.asarray(data[0], np.float64)
        if program.scales.intercept:
            ones = np.ones((len(self._design), 1))
            self._design = np.concatenate([self._design, ones], axis=1)
        outputs = int(np.prod(program.scales.coefficients[1:]))
        self._nothing = np.zeros((self._design.shape[1], outputs))

    def potential(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the log density of the scales, coefficients integrated, and its gradient."""
        potential, model, cut = self._at(theta)
        if model is None:
            return np.inf, np.zeros_like(theta)
        slope = model.slope()
        slopes = slope.log_scales * (cut == 1.0), slope.log_noise
        pulled = self._program.evaluate(theta, slopes, self._nothing, *self._data).slope
        return potential + model.minus_log_evidence(), np.asarray(pulled)

    def draw(self, normal: Gaussian, generator: np.random.Generator) -> tuple[Any, float, float]:
        """What is kept, the log density of the approximation, and that of the posterior."""
        for _ in range(_TRIES):
            noise = generator.standard_normal((1, len(normal.mode)))
            (theta,), (log_q,) = normal.transform(noise)
            potential, model, cut = self._at(theta)
            # The far tail of a normal may be out of floating point as a scale.
            if model is not None:
                break
        else:
            raise FloatingPointError(
                "draws of the scales leave floating point; use inference='nuts' on these data"
            )
        u, log_density = model.draw(generator)
        constant = 0.5 * u.size * np.log(2.0 * np.pi)
        # The program knows nothing of the cut: its u is smaller where its scale is wider.
        kept = self._program.evaluate(theta, (self._nothing, 0.0), u * cut, *self._data).kept
        lp = -potential - model.objective(u) - constant
        return jax.tree.map(np.asarray, kept), log_q + log_density, lp

    def _at(self, theta: np.ndarray) -> tuple[float, Conditional | None, np.ndarray]:
        """The scales' own potential, the model given them, and the factor by which each is cut."""
        scales, design, nothing = self._program.scales, self._design, self._nothing
        evaluation = self._program.evaluate(theta, (nothing, 0.0), nothing, *self._data)
        split, rows = evaluation.split, evaluation.rows
        potential, log_scales, log_noise = (np.asarray(part) for part in split)
        outcomes, weights = np.asarray(rows.outcomes), np.asarray(rows.weights, np.float64)
        if not (np.isfinite(potential) and np.isfinite(log_noise) and abs(log_noise) < _FAR):
            return np.inf, None, nothing
        if not np.max(log_scales) < _FAR:
            return np.inf, None, nothing
        # A wider prior is no other to the data, but to rounding.
        information = np.log(weights @ design**2) - 2.0 * log_noise + np.log(len(design.T))
        limit = 0.5 * (_LOG_CONDITION - information)[:, None]
        narrowed = np.minimum(log_scales, limit)
        model = Conditional(
            scales.family, design, np.exp(narrowed), outcomes, weights, float(np.exp(log_noise))
        )
        return float(potential), model, np.exp(np.minimum(limit - log_scales, 0.0))


# The last few programs, so that a second fit of the same shape compiles nothing.
_PROGRAMS: dict[Hashable, _Program] = {}
_PROGRAMS_HELD = 16


def _program(target: Target, data: tuple[Any, ...]) -> _Program:
    try:
        key: Hashable = target.identity
        if key in _PROGRAMS:
            return _PROGRAMS[key]
    except TypeError:
        # A user's own option that cannot be hashed: compiled for this fit alone.
        key = None
    scales = Scales.of(target, *data)

    def evaluate(theta: Array, slopes: tuple[Array, Array], u: Array, *data: Any) -> _Evaluation:
        """The gradient is of the scales' potential plus `slopes` along the logs of the scales."""
        split, back, rows = jax.vjp(lambda theta: scales.split(theta, *data), theta, has_aux=True)
        (slope,) = back(Split(jnp.ones_like(split.potential), *slopes))
        sites = scales.sites(theta, u, *data)
        kept = sites if target.keep is None else target.keep(sites, *data)
        return _Evaluation(split, slope, rows, kept)

    # One program for everything: compiling it takes longer than running it a thousand times.
    program = _Program(scales, jax.jit(evaluate))
    if key is not None:
        while len(_PROGRAMS) >= _PROGRAMS_HELD:
            _PROGRAMS.pop(next(iter(_PROGRAMS)))
        _PROGRAMS[key] = program
    return program


def _few_threads(side: int) -> contextlib.AbstractContextManager[Any]:
    """One thread for small matrices: those of a BLAS wait for each other ten times as long."""
    if side > _LARGE_SIDE:
        return contextlib.nullcontext()
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        return contextlib.nullcontext()
    return threadpool_limits(1)


def _double(array: Any) -> Array:
    array = jnp.asarray(array)
    return array.astype(np.float64) if jnp.issubdtype(array.dtype, jnp.floating) else array
