"""Several factors, several regressors or a process: the Laplace approximation given the scales."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Array

from studies.scale_priors.counts import LIMITS
from studies.scale_priors.designs import Design
from studies.scale_priors.group_sums import LINKS, log_mixed
from studies.scale_priors.tables import (
    ONE_SCALE,
    TWO_SCALES,
    Rows,
    Table,
    along_first,
    base_edges,
    below_normal,
    closed,
    grid,
    midpoints,
    spread,
)

_FIRST_STEPS, _STEPS = 20, 8
# A flat prior of the coefficients, as a precision that keeps matrices regular.
_FLAT = 1e-8


class Working(eqx.Module):
    """A design for Newton steps on `(beta, u / tau)`, q unknowns."""

    x: Any
    z: tuple[Any, ...]
    scored: Any
    trials: Any
    crossed: Any  # place of each outcome in the table of the first and second factor, or None
    start: Any  # coefficients from which to begin
    family: str = eqx.field(static=True)


def working(design: Design) -> Working:
    """The working form of a design; a crossed one with a lone intercept keeps its table."""
    crossed = None
    if len(design.z) == 2:
        first, second = (each.argmax(1) for each in design.z)
        crossed = first * design.z[1].shape[1] + second
    start = np.zeros(design.x.shape[1])
    mean = (design.y.sum() + 0.5) / (design.trials.sum() + 0.5)
    start[0] = np.log(mean) - (np.log1p(-mean) if design.family == "binomial" else 0.0)
    return Working(design.x, design.z, design.scored, design.trials, crossed, start, design.family)


def _products(made: Working, taus: tuple[Array, ...]) -> tuple[Callable, Callable, Callable]:
    """Multiply by the design, by its transpose, and make its weighted square, at given scales."""
    columns = jnp.concatenate([made.x, *(tau * z for tau, z in zip(taus, made.z))], 1)

    def square(weight: Array) -> Array:
        if made.crossed is None:
            return (columns.T * weight) @ columns
        # Blocks of a crossed design are sums over its table: far cheaper than a product.
        sizes = tuple(z.shape[1] for z in made.z)
        cells = jnp.zeros(sizes[0] * sizes[1]).at[made.crossed].add(weight).reshape(sizes)
        first, second = taus[0] * cells.sum(1), taus[1] * cells.sum(0)
        both = taus[0] * taus[1] * cells
        top = jnp.concatenate([cells.sum()[None], first, second])[None]
        upper = [first[:, None], jnp.diag(taus[0] * first), both]
        lower = [second[:, None], both.T, jnp.diag(taus[1] * second)]
        rows = [top, jnp.concatenate(upper, 1), jnp.concatenate(lower, 1)]
        return jnp.concatenate(rows, 0)

    return lambda b: columns @ b, lambda e: columns.T @ e, square


def _penalty(made: Working) -> Array:
    size = sum(z.shape[1] for z in made.z)
    return jnp.concatenate([jnp.full(made.x.shape[1], _FLAT), jnp.ones(size)])


def _mode(made: Working, y: Array, taus: tuple[Array, ...], b: Array, steps: int) -> Array:
    link, penalty = LINKS[made.family], _penalty(made)
    forward, backward, square = _products(made, taus)

    def step(_: int, b: Array) -> Array:
        a = forward(b)
        gradient = backward(y - made.trials * link.mean(a)) - penalty * b
        weight = made.trials * link.curvature(a)
        factor = jnp.linalg.cholesky(square(weight) + jnp.diag(penalty))
        move = cho_solve((factor, True), gradient)
        # No predictor moves by more than 2 at once: Newton overshoots where rates are small.
        return b + move * jnp.minimum(1.0, 2.0 / jnp.max(jnp.abs(forward(move))))

    return jax.lax.fori_loop(0, steps, step, b)


class _Mode(NamedTuple):
    b: Array
    log_like: Array
    covariance: Array


def _summary(made: Working, y: Array, taus: tuple[Array, ...], b: Array) -> _Mode:
    link, penalty = LINKS[made.family], _penalty(made)
    forward, _, square = _products(made, taus)
    a = forward(b)
    weight = made.trials * link.curvature(a)
    factor = jnp.linalg.cholesky(square(weight) + jnp.diag(penalty))
    value = y @ a - made.trials @ link.partition(a) - 0.5 * (penalty * b) @ b
    log_like = value - jnp.log(jnp.diag(factor)).sum()
    return _Mode(b, log_like, cho_solve((factor, True), jnp.eye(len(b))))


def _modes(made: Working, y: Array, values: list[Array]) -> Array:
    """Modes over all cells, each from that of the cell before, (n_1, ..., n_F, q)."""
    size = sum(z.shape[1] for z in made.z)
    start = jnp.concatenate([jnp.asarray(made.start), jnp.zeros(size)])

    def along(firsts: tuple[Array, ...], last: Array) -> Array:
        """Over the last scale, the others given."""
        first = _mode(made, y, (*firsts, last[0]), start, _FIRST_STEPS)
        size = made.z[-1].shape[1]

        def next_mode(b: Array, change: tuple[Array, Array]) -> tuple[Array, Array]:
            before, tau = change
            # Effects stay where they are: kept in units of a larger scale, rates would overflow.
            b = b.at[-size:].multiply(before / tau)
            b = _mode(made, y, (*firsts, tau), b, _STEPS)
            return b, b

        before = jnp.concatenate([last[:1], last[:-1]])
        return jax.lax.scan(next_mode, first, (before, last))[1]

    if len(values) == 1:
        return along((), values[0])
    return jax.vmap(lambda tau: along((tau,), values[1]))(values[0])


def _first_look(made: Working, y: Array) -> list[Array]:
    factors = len(made.z)
    count, extra = ONE_SCALE if factors == 1 else TWO_SCALES
    fine = jnp.asarray(base_edges(LIMITS, 1.0, count))
    coarse = jnp.geomspace(LIMITS.lowest / 2.0, 1.2 * LIMITS.highest, 12)
    taus = [coarse] * factors
    modes = _modes(made, y, taus)
    flat = modes.reshape(-1, modes.shape[-1])

    def value(b: Array, *taus: Array) -> Array:
        return _summary(made, y, taus, b).log_like

    log_like = jax.vmap(value)(flat, *grid(taus)).reshape((len(coarse),) * factors)
    vague = -2.0 * jnp.log1p(coarse) + jnp.log(coarse)
    marginals = [log_like]
    if factors == 2:
        marginals = [
            jax.nn.logsumexp(log_like + vague, 1),
            jax.nn.logsumexp(log_like + vague[:, None], 0),
        ]
    middle = jnp.log(midpoints(fine))
    looks = [jnp.interp(middle, jnp.log(coarse), each) for each in marginals]
    return [spread(fine, each, 1.0, extra) for each in looks]


def laplace_table(made: Working, y: Array, truth: Array, rows: Rows) -> Table:
    """The table of one set of outcomes; arguments as those of `gaussian_table`."""
    inner = _first_look(made, y)
    values = [midpoints(each) for each in inner]
    modes = _modes(made, y, values)
    shape, size = modes.shape[:-1], modes.shape[-1]
    taus = grid(values)
    p = made.x.shape[1]
    ends = np.cumsum([p, *(z.shape[1] for z in made.z)])
    last = slice(ends[-2], ends[-1])

    def one(b: Array, *taus: Array) -> tuple[Array, ...]:
        found = _summary(made, y, taus, b)
        effects = taus[-1] * made.scored @ b[last]
        spread_ = taus[-1] * made.scored
        variance = jnp.einsum("ei,ij,ej->e", spread_, found.covariance[last, last], spread_)
        known = jnp.concatenate([rows.x, *(t * z for t, z in zip(taus, rows.z))], 1)
        row_variance = jnp.einsum("ti,ij,tj->t", known, found.covariance, known)
        for tau, fresh in zip(taus, rows.fresh):
            row_variance += tau**2 * fresh
        # Predictors without the scored effects, for complexity priors given the rest.
        rest = made.x @ b[:p]
        predictors = [rest]
        for place, tau in enumerate(taus[:-1]):
            rest = rest + tau * made.z[place] @ b[ends[place] : ends[place + 1]]
            predictors.append(rest)
        return (
            found.log_like,
            effects,
            variance,
            below_normal(truth, effects, variance),
            log_mixed(made.family, rows.y, rows.trials, known @ b, row_variance),
            jnp.stack(predictors),
        )

    found = jax.vmap(one)(modes.reshape(-1, size), *taus)
    log_like, *others = [along_first(each[:, None], shape) for each in found]
    edges = tuple(closed(each) for each in inner)
    return Table(edges, log_like, *others[:-1], {"predictors": others[-1]})
