"""Laplace's method for linear models, twice: coefficients given their scales, then the scales."""

import contextlib
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp._support.background import done_by
from predcp._support.cores import LARGE_SIDE, available_cores, one_thread_for_small_matrices
from predcp._support.progress import Progress, as_report
from predcp.linear._condensed import Observed
from predcp.linear._conditional import Conditional, Draw, conditional
from predcp.linear._draws import Draws
from predcp.linear._gaussian import Gaussian, normal_at_mode
from predcp.linear._layout import NOT_COMPILED
from predcp.linear._long import MOST_ERROR, long_of
from predcp.linear._scales import Rows, Scales, Split
from predcp.linear._target import Target

# Draws in one call of a program: fewer of many columns, whose numbers take memory.
_BATCH, _NUMBERS_AT_ONCE, _FEWEST = 50, 2**19, 4
# Draws between two looks at the clock, where there is a limit on time; seconds that the fewest may be late.
_HURRIED_BATCH, _LATE = 10, 0.25
_NOT_DRAWN = (
    "the limit on time (max_seconds) was over before the first draws; allow more time, or use "
    "inference='auto', which always answers"
)
# The search for the mode is the first half of the reported progress.
_SEARCH_UNITS = 500
# Evaluations after which half of the search is reported as done; the total is not known.
_HALF_SEARCH = 100
# Largest condition number of the factorised matrices: two digits remain.
_LOG_CONDITION = np.log(1e14)
# Largest logarithm of a scale: its square is still a number.
_FAR = 350.0
_TRIES = 100
# Seconds that the search for the mode has, however little time is left, and its share of what is left.
_SHORTEST_SEARCH, _SEARCH_SHARE = 0.5, 0.75
# Draws at which the likelihood of a long table is compared with the quadratic that stands for it.
_LOOKED_AT = 16


@dataclass(frozen=True)
class Laplace:
    """Normal approximations at modes: seconds instead of minutes, without a guarantee.

    The coefficients are integrated out given the scales (exactly for a normal outcome). The scales get
    one normal at the mode of their marginal posterior, in the coordinates that samplers use. Use it to
    explore; where several modes or long tails matter, report results of `Nuts`. Always in double
    precision.

    A table of many rows is read in a few passes: its likelihood becomes a quadratic of the
    coefficients (exact for a normal outcome), and a divergence, which is a mean over rows, is taken
    over some of them. The summary gives the errors of both.

    **Arguments**
    - `draws` from the approximation, `seed` of them.
    - `map_rows`: of a table of many rows, how many the prior's divergence is a mean over; None for all.
    - `max_seconds`: time limit in seconds, None for no limit. The search for the mode then ends where
        it is, with a warning if that is not the mode, and there are fewer draws; a TimeoutError if
        compilation takes longer.
    """

    draws: int = 1000
    seed: int = 0
    map_rows: int | None = 2048
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.draws < 4:
            raise ValueError(f"draws must be at least 4, got {self.draws}")
        if self.map_rows is not None and self.map_rows < 2:
            raise ValueError(f"map_rows must be at least 2 or None, got {self.map_rows}")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ValueError(f"max_seconds must be positive or None, got {self.max_seconds}")

    def sample(self, target: Target, progress: Progress | None = None) -> list[Draws]:
        """Draws of every problem of the target, as one chain each."""
        count, began = target.problems or 1, time.monotonic()
        each = np.inf if self.max_seconds is None else self.max_seconds / count
        side = min(np.shape(target.data[0])[-2:])
        total = _SEARCH_UNITS + self.draws
        report = as_report(progress)
        with jax.enable_x64(True), _one_thread_each(side) as workers:
            results = []
            for number in range(count):
                data = tuple(
                    part if target.problems is None else part[number] for part in target.data
                )

                def report_one(done: int, words: str, number: int = number) -> None:
                    report(number * total + done, count * total, words)

                deadline = began + (number + 1) * each
                results.append(self._one(target, data, number, report_one, workers, deadline))
            return results

    def _one(
        self,
        target: Target,
        data: tuple[Any, ...],
        number: int,
        report: Callable[[int, str], None],
        workers: ThreadPoolExecutor,
        deadline: float = np.inf,
        quadratic: bool = True,
    ) -> Draws:
        """Draws of one problem.

        **Arguments:** `deadline`, on `time.monotonic()`; `quadratic`, whether a quadratic may stand
        for the likelihood of many rows.
        """
        report(0, "compiling")
        preparing = time.perf_counter()
        given = target, data
        long = None
        if quadratic:
            long = long_of(target, data, self.map_rows, self.seed, deadline)
        if long is not None:
            target, data = long.target, long.target.data
        data = tuple(map(_double, data))
        program, fresh = _program(target, data)
        if fresh and not np.isinf(deadline):
            program.compile(data, deadline)
            fresh = False
        began = time.perf_counter()
        preparing = began - preparing
        if long is not None:
            report(0, "reading the rows")
            long.read(program.scales.intercept)
        posterior = _Posterior(program, data, None if long is None else long.observed)
        evaluations = 0
        ready: Future[None] | None = None

        def potential(theta: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal evaluations, ready
            found = posterior.potential(theta)
            evaluations += 1
            # From here on the search traces no model: NumPyro can trace in one thread only.
            if fresh and ready is None and np.isfinite(found[0]):
                ready = workers.submit(posterior.compile_draws)
            done = int(_SEARCH_UNITS * evaluations / (evaluations + _HALF_SEARCH))
            report(done, "searching for the mode")
            return found

        searching = time.monotonic()
        # Compilation may have used up the time; a search that has not begun is of no use.
        left = max(_SEARCH_SHARE * (deadline - time.monotonic()), _SHORTEST_SEARCH)
        search_until = time.monotonic() + left
        normal = normal_at_mode(potential, program.scales.start(), search_until)
        if ready is not None:
            ready.result()
        while (
            long is not None
            and time.monotonic() < deadline
            and long.moved(posterior.coefficients(normal.mode))
        ):
            report(_SEARCH_UNITS // 2, "reading the rows again")
            posterior = _Posterior(program, data, long.observed)
            normal = normal_at_mode(potential, normal.mode, search_until)
        report(_SEARCH_UNITS, "drawing")
        # A draw costs at most an evaluation, which also has derivatives.
        each = (time.monotonic() - searching) / max(evaluations, 1)
        pieces, done = [], 0
        while done < self.draws:
            first, left = done, deadline - time.monotonic()
            size = min(posterior.batch, self.draws - done)
            if not np.isinf(deadline):
                if done and left < each:
                    break
                if not done and left + _LATE < _FEWEST * each:
                    raise TimeoutError(_NOT_DRAWN)
                affordable = int((left if done else left + _LATE) / each)
                size = min(size, _HURRIED_BATCH, max(affordable, 1 if done else _FEWEST))
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
        figures = {
            "steps": float(normal.evaluations),
            "slope": normal.slope,
            "preparing": preparing,
        }
        if long is not None:
            report(_SEARCH_UNITS + self.draws, "looking at the errors")
            figures |= long.errors(np.stack(posterior.sampled), values)
            off = figures.get("expansion_error", 0.0)
            if off > MOST_ERROR and long.affordable:
                # Without time for that, the answer has its error, which the summary warns of.
                with contextlib.suppress(TimeoutError):
                    return self._one(*given, number, report, workers, deadline, quadratic=False)
        statistics = {"lp": np.concatenate(lp)[None], "log_q": np.concatenate(log_q)[None]}
        return Draws(values, statistics, None, seconds, normal.evaluations, figures)


class _Program(NamedTuple):
    """Compiled functions of the scales, see `_program`."""

    scales: Scales
    split: Any
    pull: Any
    splits: Any
    keep: Any

    def compile(self, data: tuple[Any, ...], deadline: float) -> None:
        """Compile all of them; a TimeoutError at the deadline."""
        theta = self.scales.start()
        split, _ = jax.eval_shape(self.split, theta, *data)
        batch = _batch_of(split.log_scales.shape)
        u = np.zeros((batch, *split.log_scales.shape))
        slopes = np.zeros(split.log_scales.shape), 0.0
        thetas = _whole_batch(theta[None], batch)
        # Models are traced here: NumPyro can trace in one thread only.
        lowered = (
            self.split.lower(theta, *data),
            self.pull.lower(theta, slopes, *data),
            self.splits.lower(thetas, *data),
            self.keep.lower(thetas, u, *data),
        )
        done_by(lambda: [one.compile() for one in lowered], deadline, NOT_COMPILED)


class _Posterior:
    """Scales and coefficients of one problem."""

    def __init__(
        self, program: _Program, data: tuple[Any, ...], observed: Observed | None = None
    ) -> None:
        """**Arguments:** `observed`, rows that replace those of a long table."""
        self._program, self._data = program, data
        coefficients = program.scales.coefficients
        self.batch = _batch_of((coefficients[0] + program.scales.intercept, *coefficients[1:]))
        self._observed = _observed(program, data) if observed is None else observed
        weights, design = self._observed.weights, self._observed.design
        information = np.einsum("n,np,np->p", weights, design, design)
        if design.shape[1] < program.scales.coefficients[0] + program.scales.intercept:
            information = np.append(information, weights.sum())
        with np.errstate(divide="ignore"):
            self._log_information = np.log(information) + np.log(len(information))
        self._start: np.ndarray | None = None
        # Coefficients of the first draws.
        self.sampled: list[np.ndarray] = []

    def coefficients(self, theta: np.ndarray) -> np.ndarray:
        """The most probable coefficients `(P,)` given the scales, of one output."""
        split, _ = self._program.split(theta, *self._data)
        _, model, _ = self._given(*(np.asarray(part) for part in split))
        if model is None:
            raise FloatingPointError("the most probable scales leave floating point")
        return (model.scales * model.mode)[:, 0]

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

    def compile_draws(self) -> None:
        """Compile the program of the draws, while the search for the mode uses the other core."""
        with jax.enable_x64(True):
            start = self._program.scales.start()
            self._program.splits(_whole_batch(start[None], self.batch), *self._data)

    def draw(
        self,
        normal: Gaussian,
        generators: Sequence[np.random.Generator],
        workers: ThreadPoolExecutor,
    ) -> Iterator[Any]:
        """One draw for each generator.

        Yields None after each, and at the end the kept values, the log density of the approximation and
        that of the posterior.
        """
        thetas, log_q, given = self._scales(normal, generators)
        potentials, models, cuts = zip(*given)

        def one(place: int) -> Draw:
            return models[place].draw(generators[place])

        draws = []
        for model, draw in zip(models, workers.map(one, range(len(generators)))):
            draws.append(draw)
            if len(self.sampled) < _LOOKED_AT:
                self.sampled.append((model.scales * draw.u)[:, 0])
            yield None
        constant = 0.5 * draws[0].u.size * np.log(2.0 * np.pi)
        lp = -np.array(potentials) - np.array([draw.objective for draw in draws]) - constant
        lp += self._observed.offset
        # The program does not know the cut: with its wider scale, u is smaller.
        u = np.stack([draw.u * cut for draw, cut in zip(draws, cuts)])
        thetas, u = _whole_batch(thetas, self.batch), _whole_batch(u, self.batch)
        kept = self._program.keep(thetas, u, *self._data)
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
                for part in self._program.splits(_whole_batch(thetas, self.batch), *self._data)
            ]
            given = [self._given(*parts) for parts in zip(*splits)]
            # In the far tail of the normal a scale may overflow.
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
        """The potential of the scales, the model given them, and the factor by which each is cut."""
        usable = np.isfinite(potential) and abs(log_noise) < _FAR and np.max(log_scales) < _FAR
        if not usable:
            return np.inf, None, log_scales
        # An even wider prior would change rounding only.
        limit = 0.5 * (_LOG_CONDITION - self._log_information + 2.0 * log_noise)[:, None]
        narrowed = np.exp(np.minimum(log_scales, limit))
        noise = float(np.exp(log_noise))
        likelihood = self._observed.likelihood(noise)
        model = conditional(likelihood, self._observed.design, narrowed, self._start)
        return float(potential), model, np.exp(np.minimum(limit - log_scales, 0.0))


# The last few programs, so that a second fit of the same shape compiles nothing.
_PROGRAMS: dict[Hashable, _Program] = {}
_PROGRAMS_HELD = 16


def _program(target: Target, data: tuple[Any, ...]) -> tuple[_Program, bool]:
    """The program, and whether it has not been used before."""
    try:
        key: Hashable = target.identity
        if key in _PROGRAMS:
            return _PROGRAMS[key], False
    except TypeError:
        # With an option that cannot be hashed, compile for this fit alone.
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
    return program, True


def _observed(program: _Program, data: tuple[Any, ...]) -> Observed:
    """All rows as they are; a wide design without a column of ones, which would be a copy."""
    design = np.asarray(data[0], np.float64)
    if program.scales.intercept and design.shape[1] <= len(design):
        design = np.concatenate([design, np.ones((len(design), 1))], axis=1)
    _, rows = program.split(program.scales.start(), *data)
    weights = np.asarray(rows.weights, np.float64)
    return Observed(program.scales.family, design, np.asarray(rows.outcomes), weights)


@contextlib.contextmanager
def _one_thread_each(side: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for the draws; each has one thread of the BLAS where the matrices are small."""
    workers = len(available_cores()) if side <= LARGE_SIDE else 1
    with one_thread_for_small_matrices(side), ThreadPoolExecutor(workers) as pool:
        yield pool


def _batch_of(shape: tuple[int, ...]) -> int:
    """How many draws of coefficients of a shape are worked on at once."""
    return max(_FEWEST, min(_BATCH, _NUMBERS_AT_ONCE // int(np.prod(shape))))


def _whole_batch(values: np.ndarray, size: int) -> np.ndarray:
    """Pad a batch with its first value, so that batches of one size are compiled once."""
    return np.concatenate([values, np.repeat(values[:1], size - len(values), axis=0)])


def _double(array: Any) -> Array:
    array = jnp.asarray(array)
    return array.astype(np.float64) if jnp.issubdtype(array.dtype, jnp.floating) else array
