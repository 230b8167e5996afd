"""Normal outcomes: independent coordinates, coefficients and effects exact, noise on nodes."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jaxtyping import Array

from studies.scale_priors.designs import Design
from studies.scale_priors.tables import (
    ONE_SCALE,
    TWO_SCALES,
    Limits,
    Rows,
    Table,
    along_first,
    base_edges,
    below_normal,
    closed,
    grid,
    log_normal_density,
    midpoints,
    spread,
)

LIMITS = Limits(3e-3, 3e3)
# Nodes of log noise around its mode, in standard deviations.
NOISE_NODES = 0.8 * np.arange(-7, 8)


class Rotation(eqx.Module):
    """A design in coordinates whose outcomes are independent.

    Effects are `u_f = vectors_f w_f` with independent w. Arrays of all factors are concatenated, J entries.
    """

    x: Any
    z: tuple[Any, ...]
    weights: Any  # one over the known noise, (N,)
    to_beta: Any  # least squares, (p, N)
    covariance: Any  # of the coefficients over squared noise, (p, p)
    vectors: tuple[Any, ...]
    eigenvalues: Any  # (J,)
    factor: Any  # to which scale a coordinate belongs, (J,)
    scored: Any  # from the w of the last factor to the scored effects, (E, G)
    degrees: Any  # of the residual sum of squares
    noise_known: bool = eqx.field(static=True)
    unit: float = eqx.field(static=True)


def rotated(design: Design) -> Rotation:
    """The rotation of a design; refuses one whose factors are not orthogonal."""
    weights = 1.0 / design.noise if design.noise_known else np.ones(len(design.y))
    x = weights[:, None] * design.x
    z = tuple(weights[:, None] * each for each in design.z)
    basis = np.linalg.qr(x)[0]
    left = [each - basis @ (basis.T @ each) for each in z]
    for place, first in enumerate(left):
        for second in left[place + 1 :]:
            scale = np.linalg.norm(first) * np.linalg.norm(second)
            if np.linalg.norm(first.T @ second) > 1e-9 * scale:
                raise ValueError(f"{design.name}: the factors are not orthogonal (unbalanced rows)")
    values, vectors = zip(*(np.linalg.eigh(each.T @ each) for each in left))
    values = [np.where(each > 1e-9 * each.max(), each, 0.0) for each in values]
    factor = np.concatenate([np.full(len(each), place) for place, each in enumerate(values)])
    rank = sum(int(np.count_nonzero(each)) for each in values)
    to_beta = np.linalg.pinv(x)
    return Rotation(
        x,
        z,
        weights,
        to_beta,
        to_beta @ to_beta.T,
        tuple(vectors),
        np.concatenate(values),
        factor,
        design.scored @ vectors[-1],
        np.asarray(float(len(design.y) - x.shape[1] - rank)),
        design.noise_known,
        design.unit,
    )


class _Data(NamedTuple):
    scores: Array  # V' Z' M y, (J,)
    squares: Array  # of the coordinates, (J,)
    residual: Array


def _data(made: Rotation, y: Array) -> _Data:
    y = y * made.weights
    left = y - made.x @ (made.to_beta @ y)
    scores = jnp.concatenate([v.T @ (z.T @ left) for v, z in zip(made.vectors, made.z)])
    moving = made.eigenvalues > 0.0
    squares = jnp.where(moving, scores**2 / jnp.where(moving, made.eigenvalues, 1.0), 0.0)
    return _Data(scores, squares, jnp.maximum(left @ left - squares.sum(), 0.0))


def _log_like(made: Rotation, data: _Data, spread_: Array, log_noise: Array) -> Array:
    """Log likelihood; `spread_`: tau^2 d of each coordinate, (..., J); `log_noise`: (...)."""
    square = jnp.exp(2.0 * log_noise)[..., None]
    total = jnp.where(made.eigenvalues > 0.0, square + spread_, 1.0)
    each = jnp.log(total) + data.squares / total
    left = 2.0 * made.degrees * log_noise + data.residual * jnp.exp(-2.0 * log_noise)
    return -0.5 * (each.sum(-1) + left)


def _noise_mode(made: Rotation, data: _Data, spread_: Array) -> tuple[Array, Array]:
    """Mode of the log noise given the scales, and one over the root of the information there."""
    moving = made.eigenvalues > 0.0
    count = made.degrees + moving.sum()
    start = 0.5 * jnp.log((data.residual + data.squares.sum()) / count)

    def information(log_noise: Array) -> tuple[Array, Array]:
        square = jnp.exp(2.0 * log_noise)[..., None]
        share = jnp.where(moving, square / (square + spread_), 0.0)
        ratio = jnp.where(moving, data.squares / (square + spread_), 0.0)
        gradient = -made.degrees + data.residual * jnp.exp(-2.0 * log_noise)
        gradient += (share * (ratio - 1.0)).sum(-1)
        return gradient, 2.0 * made.degrees + 2.0 * (share**2).sum(-1)

    def step(_: int, log_noise: Array) -> Array:
        gradient, curvature = information(log_noise)
        return log_noise + jnp.clip(gradient / curvature, -0.7, 0.7)

    mode = jax.lax.fori_loop(0, 12, step, jnp.full(spread_.shape[:-1], start))
    return mode, information(mode)[1] ** -0.5


def _spread_of(made: Rotation, taus: list[Array]) -> Array:
    squares = jnp.stack(taus, -1) ** 2
    return squares[:, made.factor] * made.eigenvalues


def _inner_edges(made: Rotation, data: _Data) -> list[Array]:
    """Edges of each scale, from a first look with the noise at its mode."""
    factors = len(made.z)
    count, extra = ONE_SCALE if factors == 1 else TWO_SCALES
    inner = jnp.asarray(base_edges(LIMITS, made.unit, count))
    spread_ = _spread_of(made, grid([midpoints(inner)] * factors))
    if made.noise_known:
        log_like = _log_like(made, data, spread_, jnp.zeros(spread_.shape[0]))
    else:
        mode, deviation = _noise_mode(made, data, spread_)
        log_like = _log_like(made, data, spread_, mode) + jnp.log(deviation)
    log_like = log_like.reshape((count,) * factors)
    # The other scale under the vague prior as well.
    below = jnp.concatenate([jnp.zeros(1), inner / (inner + made.unit), jnp.ones(1)])
    vague = jnp.log(jnp.diff(below))
    marginals = [log_like]
    if factors == 2:
        marginals = [logsumexp(log_like + vague, 1), logsumexp(log_like + vague[:, None], 0)]
    return [spread(inner, each, made.unit, extra) for each in marginals]


def gaussian_table(made: Rotation, y: Array, truth: Array, rows: Rows) -> Table:
    """The table of one set of outcomes.

    **Arguments**: `y`, (N,); `truth`, the scored effects, (E,); `rows`, to predict.
    """
    data = _data(made, y)
    inner = _inner_edges(made, data)
    taus = grid([midpoints(each) for each in inner])
    spread_ = _spread_of(made, taus)
    cells = spread_.shape[0]
    if made.noise_known:
        log_noise, log_step = jnp.zeros((cells, 1)), jnp.zeros((cells, 1))
    else:
        mode, deviation = _noise_mode(made, data, spread_)
        log_noise = mode[:, None] + deviation[:, None] * NOISE_NODES
        log_step = jnp.log(deviation)[:, None]
    spread_ = spread_[:, None, :]
    log_like = _log_like(made, data, spread_, log_noise) + log_step
    square = jnp.exp(2.0 * log_noise)[..., None]
    variances = jnp.stack(taus, -1)[:, None, made.factor] ** 2
    shrink = variances / (square + spread_)
    w_mean, w_variance = shrink * data.scores, shrink * square
    first = sum(z.shape[1] for z in made.z[:-1])
    mean = w_mean[..., first:] @ made.scored.T
    variance = w_variance[..., first:] @ (made.scored**2).T
    # Rows: their coefficients in terms of w, given that the coefficients of x follow w.
    beta = made.to_beta @ (y * made.weights)
    slopes = [
        (known - rows.x @ (made.to_beta @ z)) @ v
        for known, z, v in zip(rows.z, made.z, made.vectors)
    ]
    c = jnp.concatenate(slopes, -1)
    row_mean = rows.x @ beta + w_mean @ c.T
    leverage = jnp.einsum("tp,pq,tq->t", rows.x, made.covariance, rows.x)
    row_variance = square * (rows.noise**2 + leverage) + w_variance @ (c**2).T
    for tau, fresh in zip(taus, rows.fresh):
        row_variance += tau[:, None, None] ** 2 * fresh
    shape = tuple(each.size + 1 for each in inner)
    flat = (
        log_like,
        mean,
        variance,
        below_normal(truth, mean, variance),
        log_normal_density(rows.y, row_mean, row_variance),
    )
    edges = tuple(closed(each) for each in inner)
    return Table(edges, *along_first(flat, shape), along_first({"log_noise": log_noise}, shape))
