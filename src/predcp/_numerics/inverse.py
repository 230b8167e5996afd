"""The inverse of an increasing map of log scales to log divergences, with implicit derivatives.

A safeguarded Newton iteration in `log tau`. What is solved is `psi(kappa) = psi(target)` with
`psi = log kappa` for an unbounded map, and `psi = log(-log(1 - kappa / sup))` for a bounded one:
both are nearly straight lines in `log tau` at either end, so that few steps are needed.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Float

Scalar = Float[Array, ""]
Vector = Float[Array, "targets"]
# log tau to (log kappa, log of d log kappa / d log tau)
Evaluate = Callable[[Scalar], tuple[Scalar, Scalar]]

_MOST_STEPS = 120
# From this step on only bisection is used.
_NEWTON_STEPS = 40
# Steps outside a bracket take the slope to be at least the inverse of this.
_LEAST_SLOPE_INVERSE = 1000.0
_TABLE_NODES = 2048
_TABLE_FROM = 4 * _TABLE_NODES
_TABLE_REACH = 60.0


def _ratio(log_kappa: Array, log_supremum: Array) -> tuple[Array, Array, Array]:
    """Log of `kappa / sup`, that ratio where psi is curved, and where it is (nowhere if unbounded)."""
    bounded = jnp.isfinite(log_supremum)
    eps = jnp.finfo(log_kappa.dtype).eps
    log_ratio = jnp.minimum(log_kappa - jnp.where(bounded, log_supremum, 0.0), -0.5 * eps)
    bends = bounded & (log_ratio >= -40.0)
    return log_ratio, jnp.exp(jnp.where(bends, log_ratio, -1.0)), bends


def _straighten(log_kappa: Array, log_supremum: Array) -> Array:
    """psi, which is nearly linear in log tau."""
    log_ratio, ratio, bends = _ratio(log_kappa, log_supremum)
    straight = jnp.where(jnp.isfinite(log_supremum), log_ratio, log_kappa)
    return jnp.where(bends, jnp.log(-jnp.log1p(-ratio)), straight)


def _steepness(log_kappa: Array, log_elasticity: Array, log_supremum: Array) -> Array:
    """d psi / d log tau."""
    _, ratio, bends = _ratio(log_kappa, log_supremum)
    bend = -ratio / ((1.0 - ratio) * jnp.log1p(-ratio))
    return jnp.exp(log_elasticity) * jnp.where(bends, bend, 1.0)


class _State(NamedTuple):
    log_tau: Vector
    low: Vector
    high: Vector
    reach: Vector  # step size while one side has no bracket yet
    last_step: Vector
    done: Array
    steps: Array


def _newton(
    evaluate: Callable[[Vector], tuple[Vector, Vector]],
    target: Vector,
    guess: Vector,
    log_supremum: Array,
) -> tuple[Vector, Array]:
    """Roots of `psi(log_tau) = target` in lock-step; also the number of evaluations made.

    A root is accepted when the last Newton step is small, when the value agrees to rounding, or
    when the bracket has closed. Anything else is NaN. Targets at infinity have their root there.
    """
    eps = jnp.finfo(target.dtype).eps
    # One more step from an error this small lands within rounding: convergence is quadratic.
    small = jnp.sqrt(eps)
    rounding = 4.0 * eps

    def advance(state: _State) -> _State:
        here = state.log_tau
        value, log_elasticity = evaluate(here)
        psi = _straighten(value, log_supremum)
        residual = psi - target
        above = residual > 0.0
        low = jnp.where(above, state.low, here)
        high = jnp.where(above, here, state.high)
        bracketed = jnp.isfinite(low) & jnp.isfinite(high)
        width = jnp.where(bracketed, high - low, jnp.inf)
        steepness = _steepness(value, log_elasticity, log_supremum)
        # For rates that are exponentials psi is one too: far above the root its log is straighter.
        overshot = (target > 1.0) & (psi > 4.0 * target)
        down = jnp.log(jnp.where(overshot, target / psi, 1.0)) * psi
        step = jnp.where(overshot, down, -residual) / steepness
        # On a plateau Newton's step has no meaning: it may be any number, or infinite.
        usable = jnp.isfinite(step)
        limit = state.reach + _LEAST_SLOPE_INVERSE * jnp.where(usable, jnp.abs(residual), 0.0)
        within = usable & (here + step > low) & (here + step < high)
        shrinks = (jnp.abs(step) <= 0.5 * state.last_step) | (jnp.abs(step) <= 0.5 * width)
        take = jnp.where(
            bracketed,
            within & shrinks & (state.steps < _NEWTON_STEPS),
            within & (jnp.abs(step) <= limit),
        )
        middle = 0.5 * (jnp.where(bracketed, low, 0.0) + jnp.where(bracketed, high, 0.0))
        outwards = jnp.where(above, -limit, limit)
        chosen = jnp.where(take, step, jnp.where(bracketed, middle - here, outwards))
        # At the root rounding may put the step on the bracket itself.
        final = (
            usable
            & (jnp.abs(residual) <= small * (1.0 + 0.1 * jnp.abs(target)))
            & (jnp.abs(step) <= small * (1.0 + 0.1 * jnp.abs(here)))
        )
        bend = _steepness(value, jnp.zeros_like(value), log_supremum)
        exact = jnp.abs(residual) <= rounding * bend * jnp.maximum(1.0, jnp.abs(value))
        exact |= width <= rounding * jnp.maximum(1.0, jnp.abs(here))
        moved = here + jnp.where(exact, 0.0, jnp.where(final, step, chosen))
        # A map without a value here has no root.
        moved = jnp.where(jnp.isnan(residual), jnp.nan, moved)
        return _State(
            jnp.where(state.done, here, moved),
            low,
            high,
            jnp.where(take, state.reach, 2.0 * state.reach),
            jnp.abs(chosen),
            state.done | exact | final | jnp.isnan(residual),
            state.steps + 1,
        )

    def unfinished(state: _State) -> Array:
        return ~jnp.all(state.done) & (state.steps < _MOST_STEPS)

    infinite = jnp.full_like(target, jnp.inf)
    # A target at or beyond either end has no root: 0 or infinity.
    lost = ~jnp.isfinite(target)
    start = _State(
        jnp.where(lost | ~jnp.isfinite(guess), 0.0, guess),
        -infinite,
        infinite,
        jnp.full_like(target, 4.0),
        infinite,
        lost,
        jnp.zeros((), jnp.int32),
    )
    end = lax.while_loop(unfinished, advance, start)
    return jnp.where(lost, target, jnp.where(end.done, end.log_tau, jnp.nan)), end.steps


def _from_table(
    evaluate: Callable[[Vector], tuple[Vector, Vector]],
    target: Vector,
    guess: Vector,
    log_supremum: Array,
) -> Vector:
    """Starting points for many targets: a cubic Hermite table of the inverse over the bulk."""
    finite = jnp.isfinite(target)
    centre = jnp.nanmedian(jnp.where(finite, target, jnp.nan)[:257])
    centre = jnp.where(jnp.isfinite(centre), centre, 0.0)
    low = jnp.maximum(jnp.min(jnp.where(finite, target, centre)), centre - _TABLE_REACH)
    high = jnp.minimum(jnp.max(jnp.where(finite, target, centre)), centre + _TABLE_REACH)
    width = jnp.maximum((high - low) / (_TABLE_NODES - 1), jnp.finfo(target.dtype).eps)
    nodes = low + width * jnp.arange(_TABLE_NODES, dtype=target.dtype)
    roots, _ = _newton(evaluate, nodes, jnp.full_like(nodes, jnp.median(guess[:257])), log_supremum)
    log_kappa, log_elasticity = evaluate(roots)
    tangents = width / _steepness(log_kappa, log_elasticity, log_supremum)
    position = (jnp.where(finite, target, centre) - low) / width
    index = jnp.clip(position.astype(jnp.int32), 0, _TABLE_NODES - 2)
    s = position - index
    left, right = roots[index], roots[index + 1]
    rise = right - left
    curve = (1.0 - s) * (tangents[index] - rise) - s * (tangents[index + 1] - rise)
    inner = left + s * (rise + (1.0 - s) * curve)
    # Outside the table the map is very nearly a straight line.
    outer = jnp.where(s < 0.0, left + s * tangents[index], right + (s - 1.0) * tangents[index + 1])
    return jnp.where((s < 0.0) | (s > 1.0), outer, inner)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _solve(evaluate, chunk, constants, log_kappa, guess, log_supremum):
    def many(log_tau):
        return jax.vmap(lambda u: evaluate(u, *constants))(log_tau)

    target = _straighten(log_kappa, log_supremum)
    # At and beyond the bound there is no root.
    target = jnp.where(log_kappa >= log_supremum, jnp.inf, target)
    if log_kappa.size >= _TABLE_FROM:
        guess = _from_table(many, target, guess, log_supremum)
    if log_kappa.size <= chunk:
        return _newton(many, target, guess, log_supremum)[0]

    def one_chunk(pair):
        return _newton(many, pair[0], pair[1], log_supremum)[0]

    size = target.shape[0]
    padding = -size % chunk
    pairs = [
        jnp.concatenate([part, jnp.broadcast_to(part[-1:], (padding,))]).reshape(-1, chunk)
        for part in (target, guess)
    ]
    return lax.map(one_chunk, tuple(pairs)).reshape(-1)[:size]


@_solve.defjvp
def _solve_jvp(evaluate, chunk, primals, tangents):
    constants, log_kappa, guess, log_supremum = primals
    log_tau = _solve(evaluate, chunk, constants, log_kappa, guess, log_supremum)

    def along(u):
        (_, log_elasticity), (change, _) = jax.jvp(
            lambda *c: evaluate(u, *c), tuple(constants), tuple(tangents[0])
        )
        return log_elasticity, change

    found = jnp.isfinite(log_tau)
    log_elasticity, change = jax.vmap(along)(jnp.where(found, log_tau, 0.0))
    moved = (tangents[1] - change) * jnp.exp(-log_elasticity)
    # A root at infinity stays there; one that was not found has no derivative.
    return log_tau, jnp.where(found, moved, jnp.where(jnp.isnan(log_tau), jnp.nan, 0.0))


def invert(
    evaluate: Evaluate, log_kappa: Vector, guess: Vector, log_supremum: Scalar, chunk: int = 2**14
) -> Vector:
    """The `log tau` at which an increasing map takes each `log kappa`; differentiable.

    **Arguments**
    - `evaluate`: the map, one scale at a time; it may close over arrays and tracers.
    - `log_kappa`: targets, shape (n,).
    - `guess`: where to start, shape (n,).
    - `log_supremum`: log of the least upper bound of the map, `inf` when it has none.
    - `chunk`: how many targets advance in lock-step.

    **Returns** roots, shape (n,): `inf` at or above the supremum, NaN where the search did not
    converge (a map that levels off or jumps at the target).
    """
    # Target and map may differ in precision: use the wider one.
    found = jax.eval_shape(evaluate, jnp.zeros((), log_kappa.dtype))[0]
    dtype = jnp.result_type(log_kappa, guess, log_supremum, found)
    log_kappa, guess, log_supremum = (
        jnp.asarray(each, dtype) for each in (log_kappa, guess, log_supremum)
    )
    closed, constants = jax.closure_convert(evaluate, jnp.zeros((), dtype))
    return _solve(closed, chunk, tuple(constants), log_kappa, guess, log_supremum)


_Method = TypeVar("_Method", bound=Callable[..., Any])


def raise_without_root(
    asked: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Callable[[_Method], _Method]:
    """Make a method that returns roots raise a RuntimeError if one was not found.

    A traced call cannot raise: there a missing root is NaN.

    **Arguments**: `asked`, a function from the method's first argument to where a root exists; by
    default everywhere.
    """

    def decorate(method: _Method) -> _Method:
        @wraps(method)
        def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
            roots = method(self, *arguments, **keywords)
            if isinstance(roots, Tracer):
                return roots
            missing = np.isnan(np.asarray(roots))
            if missing.any() and asked is not None:
                given = arguments[0] if arguments else next(iter(keywords.values()))
                missing &= asked(np.asarray(given))
            if missing.any():
                raise RuntimeError(
                    f"{type(self).__name__}: no root was found for {int(missing.sum())} of the "
                    f"{missing.size} values asked for. The map levels off, jumps or has no value "
                    "there; predcp.diagnose says which"
                )
            return roots

        return cast(_Method, call)

    return decorate


def is_probability(q: np.ndarray) -> np.ndarray:
    """Where a quantile exists."""
    return (q >= 0.0) & (q <= 1.0)
