"""Laplace's method for linear models, twice: coefficients given their scales, then the scales."""

import contextlib
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp._support.cores import available_cores
from predcp._support.progress import Progress, as_report
from predcp.linear._conditional import Conditional, Draw, conditional
from predcp.linear._draws import Draws
from predcp.linear._gaussian import Gaussian, normal_at_mode
from predcp.linear._likelihood import Likelihood
from predcp.linear._scales import Rows, Scales, Split
from predcp.linear._target import Target

# Draws in one call of a program.
_BATCH = 50
# Of the progress that is reported, the search for the mode is the first half.
_SEARCH_UNITS = 500
# Evaluations after which half of the search is reported as done; their number is not known before.
_HALF_SEARCH = 100
# Condition of the matrices that are factorised: rounding leaves two digits.
_LOG_CONDITION = np.log(1e14)
# Largest logarithm of a scale: its square is still a number.
_FAR = 350.0
_TRIES = 100
# Matrices larger than this repay the threads of a BLAS.
_LARGE_SIDE = 500


@dataclass(frozen=True)
class Laplace:
    """Normal approximations at modes: seconds where sampling takes minutes, without a guarantee.

    The coefficients are integrated out given the scales (exactly for a normal outcome), so that many
    columns do not inflate them. The scales get one normal at the mode of what remains, in the
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
        total = _SEARCH_UNITS + self.draws
        report = as_report(progress)
        with jax.enable_x64(True), _one_thread_each(side) as workers:
            results = []
            for number in range(count):
                data = tuple(
                    _double(part if target.problems is None else part[number])
                    for part in target.data
                )

                def report_one(done: int, words: str, number: int = number) -> None:
                    report(number * total + done, count * total, words)

                results.append(self._one(target, data, number, report_one, workers))
            return results

    def _one(
        self,
        target: Target,
        data: tuple[Any, ...],
        number: int,
        report: Callable[[int, str], None],
        workers: ThreadPoolExecutor,
    ) -> Draws:
        report(0, "compiling")
        program = _program(target, data)
        began = time.perf_counter()
        posterior = _Posterior(program, data)
        evaluations = 0

        def potential(theta: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal evaluations
            found = posterior.potential(theta)
            evaluations += 1
            done = int(_SEARCH_UNITS * evaluations / (evaluations + _HALF_SEARCH))
            report(done, "searching for the mode")
            return found

        normal = normal_at_mode(potential, program.scales.start())
        report(_SEARCH_UNITS, "drawing")
        pieces, done = [], 0
        for first in range(0, self.draws, _BATCH):
            size = min(_BATCH, self.draws - first)
            generators = [
                np.random.default_rng((self.seed, number, first + place)) for place in range(size)
            ]
            drawing = posterior.draw(normal, generators, workers)
            for _ in range(size):
                next(drawing)
                done += 1
                report(_SEARCH_UNITS + done, "drawing")
            pieces.append(next(drawing))
        kept, log_q, lp = zip(*pieces)
        values = jax.tree.map(lambda *parts: np.concatenate(parts)[None], *kept)
        seconds = time.perf_counter() - began
        figures = {"steps": float(normal.evaluations), "slope": normal.slope}
        statistics = {"lp": np.concatenate(lp)[None], "log_q": np.concatenate(log_q)[None]}
        return Draws(values, statistics, None, seconds, normal.evaluations, figures)


class _Program(NamedTuple):
    """Compiled functions of the scales, see `_program`."""

    scales: Scales
    split: Callable[..., tuple[Split, Rows]]
    pull: Callable[..., Array]
    splits: Callable[..., Split]
    keep: Callable[..., Any]


class _Posterior:
    """Scales and coefficients of one problem."""

    def __init__(self, program: _Program, data: tuple[Any, ...]) -> None:
        self._program, self._data = program, data
        self._design = np.asarray(data[0], np.float64)
        if program.scales.intercept:
            ones = np.ones((len(self._design), 1))
            self._design = np.concatenate([self._design, ones], axis=1)
        _, rows = program.split(program.scales.start(), *data)
        self._outcomes = np.asarray(rows.outcomes)
        self._weights = np.asarray(rows.weights, np.float64)
        with np.errstate(divide="ignore"):
            information = np.log(self._weights @ self._design**2)
        self._log_information = information + np.log(self._design.shape[1])
        self._start: np.ndarray | None = None

    def potential(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the log density of the scales, coefficients integrated out, and its gradient."""
        split, _ = self._program.split(theta, *self._data)
        potential, model, cut = self._given(*(np.asarray(part) for part in split))
        if model is None:
            return np.inf, np.zeros_like(theta)
        evidence, slope = model.minus_log_evidence(), model.slope()
        # The next position is near this one, and so are its predictions.
        self._start = model.solution.eta
        slopes = slope.log_scales * (cut == 1.0), slope.log_noise
        return potential + evidence, np.asarray(self._program.pull(theta, slopes, *self._data))

    def draw(
        self,
        normal: Gaussian,
        generators: Sequence[np.random.Generator],
        workers: ThreadPoolExecutor,
    ) -> Iterator[Any]:
        """One draw for each generator.

        Yields None after each, and in the end what is kept of them, the log density of the
        approximation and that of the posterior.
        """
        thetas, log_q, given = self._scales(normal, generators)
        potentials, models, cuts = zip(*given)

        def one(place: int) -> Draw:
            return models[place].draw(generators[place])

        draws = []
        for draw in workers.map(one, range(len(generators))):
            draws.append(draw)
            yield None
        constant = 0.5 * draws[0].u.size * np.log(2.0 * np.pi)
        lp = -np.array(potentials) - np.array([draw.objective for draw in draws]) - constant
        # The program knows nothing of the cut: its u is smaller where its scale is wider.
        u = np.stack([draw.u * cut for draw, cut in zip(draws, cuts)])
        kept = self._program.keep(_whole_batch(thetas), _whole_batch(u), *self._data)
        kept = jax.tree.map(lambda leaf: np.asarray(leaf)[: len(draws)], kept)
        yield kept, log_q + np.array([draw.log_density for draw in draws]), lp

    def _scales(
        self, normal: Gaussian, generators: Sequence[np.random.Generator]
    ) -> tuple[np.ndarray, np.ndarray, list[Any]]:
        """Positions of the scales, the log density of each, and the model given it."""
        dimension = len(normal.mode)
        noise = np.stack([each.standard_normal(dimension) for each in generators])
        for _ in range(_TRIES):
            thetas, log_q = normal.transform(noise)
            splits = [
                np.asarray(part)[: len(thetas)]
                for part in self._program.splits(_whole_batch(thetas), *self._data)
            ]
            given = [self._given(*parts) for parts in zip(*splits)]
            # The far tail of a normal may be out of floating point as a scale.
            outside = [place for place, (_, model, _) in enumerate(given) if model is None]
            if not outside:
                return thetas, log_q, given
            for place in outside:
                noise[place] = generators[place].standard_normal(dimension)
        raise FloatingPointError(
            "draws of the scales leave floating point; use inference='nuts' on these data"
        )

    def _given(
        self, potential: np.ndarray, log_scales: np.ndarray, log_noise: np.ndarray
    ) -> tuple[float, Conditional | None, np.ndarray]:
        """The scales' own potential, the model given them, and the factor that each is cut by."""
        usable = np.isfinite(potential) and abs(log_noise) < _FAR and np.max(log_scales) < _FAR
        if not usable:
            return np.inf, None, log_scales
        # A still wider prior makes no difference to the data, only to rounding.
        limit = 0.5 * (_LOG_CONDITION - self._log_information + 2.0 * log_noise)[:, None]
        narrowed = np.exp(np.minimum(log_scales, limit))
        noise = float(np.exp(log_noise))
        likelihood = Likelihood(self._program.scales.family, self._outcomes, self._weights, noise)
        model = conditional(likelihood, self._design, narrowed, self._start)
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

    def split(theta: Array, *data: Any) -> tuple[Split, Rows]:
        return scales.split(theta, *data)

    def pull(theta: Array, slopes: tuple[Array, Array], *data: Any) -> Array:
        """The gradient of the scales' potential plus `slopes` along the logs of the scales."""
        found, back, _ = jax.vjp(lambda theta: split(theta, *data), theta, has_aux=True)
        (slope,) = back(Split(jnp.ones_like(found.potential), *slopes))
        return slope

    def splits(thetas: Array, *data: Any) -> Split:
        return jax.vmap(lambda theta: split(theta, *data)[0])(thetas)

    def keep(thetas: Array, u: Array, *data: Any) -> Any:
        def one(theta: Array, u: Array) -> Any:
            return target.kept_sites(scales.sites(theta, u, *data), *data)

        return jax.vmap(one)(thetas, u)

    program = _Program(scales, *map(jax.jit, (split, pull, splits, keep)))
    if key is not None:
        while len(_PROGRAMS) >= _PROGRAMS_HELD:
            _PROGRAMS.pop(next(iter(_PROGRAMS)))
        _PROGRAMS[key] = program
    return program


@contextlib.contextmanager
def _one_thread_each(side: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for the draws; each has one thread of the BLAS where the matrices are small.

    The threads of a BLAS wait for each other ten times as long as a small matrix takes.
    """
    small = side <= _LARGE_SIDE
    limits: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if small:
        with contextlib.suppress(ModuleNotFoundError):
            from threadpoolctl import threadpool_limits

            limits = threadpool_limits(1)
    with limits, ThreadPoolExecutor(len(available_cores()) if small else 1) as workers:
        yield workers


def _whole_batch(values: np.ndarray) -> np.ndarray:
    """The first value again for those that are missing: batches of one size compile once."""
    return np.concatenate([values, np.repeat(values[:1], _BATCH - len(values), axis=0)])


def _double(array: Any) -> Array:
    array = jnp.asarray(array)
    return array.astype(np.float64) if jnp.issubdtype(array.dtype, jnp.floating) else array
