"""Laplace's method for linear models, twice: coefficients given their scales, then the scales."""

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
from predcp.linear._gaussian import normal_at_mode
from predcp.linear._layout import Progress
from predcp.linear._scales import Scales, Split
from predcp.linear._target import Target

_CHUNK = 50
_LARGEST_LOG = 300.0


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
        with jax.enable_x64(True):
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
        noise = generator.standard_normal((self.draws, program.scales.dimension))
        thetas, log_q = normal.transform(noise)
        pieces, lp = [], np.empty(self.draws)
        for call in range(calls):
            part = np.arange(call * _CHUNK, min((call + 1) * _CHUNK, self.draws))
            drawn = []
            for i in part:
                u, log_density, lp[i] = posterior.draw(thetas[i], generator)
                log_q[i] += log_density
                drawn.append(u)
            # A whole chunk, so that the last one needs no program of its own.
            filled = np.resize(part, _CHUNK)
            us = np.stack(drawn)[filled - part[0]]
            kept = program.kept(thetas[filled], us, *data)
            pieces.append(jax.tree.map(lambda leaf, n=len(part): np.asarray(leaf)[:n], kept))
            report(calls + call + 1, total)
        values = jax.tree.map(lambda *parts: np.concatenate(parts)[None], *pieces)
        seconds = time.perf_counter() - began
        figures = {"steps": float(normal.evaluations), "slope": normal.slope}
        statistics = {"lp": lp[None], "log_q": log_q[None]}
        return Draws(values, statistics, None, seconds, normal.evaluations, figures)


class _Program(NamedTuple):
    scales: Scales
    pull: Callable[..., tuple[Split, Array]]
    kept: Callable[..., Any]


class _Posterior:
    """Scales and coefficients of one problem."""

    def __init__(self, program: _Program, data: tuple[Any, ...]) -> None:
        self._program, self._data = program, data
        self._rows = program.scales.rows(*data)

    def potential(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the log density of the scales, coefficients integrated, and its gradient."""
        potential, model = self._at(theta)
        if model is None:
            return np.inf, np.zeros_like(theta)
        slope = model.slope()
        pulled = self._program.pull(theta, slope.log_scales, slope.log_noise, *self._data)[1]
        return potential + model.minus_log_evidence(), np.asarray(pulled)

    def draw(
        self, theta: np.ndarray, generator: np.random.Generator
    ) -> tuple[np.ndarray, float, float]:
        """u, the log of its density given theta, and the log of the joint density."""
        potential, model = self._at(theta)
        if model is None:
            raise FloatingPointError(
                "a draw of the scales left floating point; use inference='nuts' on these data"
            )
        u, log_density = model.draw(generator)
        constant = 0.5 * u.size * np.log(2.0 * np.pi)
        return u, log_density, -potential - model.objective(u) - constant

    def _at(self, theta: np.ndarray) -> tuple[float, Conditional | None]:
        design, outcomes, weights = self._rows
        shape = (design.shape[1], *self._program.scales.coefficients[1:])
        nothing = np.zeros(shape if len(shape) == 2 else (*shape, 1))
        split = self._program.pull(theta, nothing, 0.0, *self._data)[0]
        potential, log_scales, log_noise = (np.asarray(part) for part in split)
        # Beyond this the squares of predictors overflow.
        far = np.maximum(np.abs(log_noise), np.max(log_scales)) > _LARGEST_LOG
        if far or not (np.isfinite(potential) and not np.isnan(log_scales).any()):
            return np.inf, None
        scales, noise = np.exp(log_scales), float(np.exp(log_noise))
        family = self._program.scales.family
        return float(potential), Conditional(family, design, scales, outcomes, weights, noise)


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

    def pull(theta: Array, log_scales: Array, log_noise: Array, *data: Any) -> tuple[Split, Array]:
        """The scales, and the gradient of their potential plus the given slopes along them."""
        split, back = jax.vjp(lambda theta: scales.split(theta, *data), theta)
        (slope,) = back(Split(jnp.ones_like(split.potential), log_scales, log_noise))
        return split, slope

    def kept(thetas: Array, us: Array, *data: Any) -> Any:
        def one(theta: Array, u: Array) -> Any:
            sites = scales.sites(theta, u, *data)
            return sites if target.keep is None else target.keep(sites, *data)

        return jax.vmap(one)(thetas, us)

    program = _Program(scales, jax.jit(pull), jax.jit(kept))
    if key is not None:
        while len(_PROGRAMS) >= _PROGRAMS_HELD:
            _PROGRAMS.pop(next(iter(_PROGRAMS)))
        _PROGRAMS[key] = program
    return program


def _double(array: Any) -> Array:
    array = jnp.asarray(array)
    return array.astype(np.float64) if jnp.issubdtype(array.dtype, jnp.floating) else array
