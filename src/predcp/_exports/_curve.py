"""A tabulated map with as few pieces as its prior needs: what an export writes down."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from predcp._divergence_priors import DivergencePrior
from predcp._maps import TabulatedComplexity

# Pieces are left out where the tails give the log density to this error, and where it is this far
# below its maximum.
_ERROR, _DEPTH = 1e-9, 150.0
# Points of comparison are at most so far apart, in log tau.
_STEP = 0.125
# The log density cannot tell larger exponents of log kappa apart.
FARTHEST = 300.0


class Curve(NamedTuple):
    """Pieces, and how log kappa continues: with a constant elasticity below, a power of tau above."""

    coefficients: np.ndarray
    low: float
    width: float
    elasticity_below: float
    elasticity_above: float
    slope: float

    @property
    def high(self) -> float:
        return self.low + self.width * self.coefficients.shape[0]


def shortened(pi: DivergencePrior, table: TabulatedComplexity) -> Curve:
    """The table with the fewest pieces whose tails agree with it wherever the density is not negligible."""
    low, width, pieces = float(table.low), float(table.width), table.pieces
    dtype = table.coefficients.dtype
    allowed = _ERROR if np.finfo(dtype).eps < 1e-12 else 1e4 * _ERROR

    def at(log_tau: np.ndarray) -> np.ndarray:
        return np.asarray(table.log_value_and_elasticity(jnp.asarray(log_tau, dtype)), float)

    def density(log_kappa: np.ndarray, log_elasticity: np.ndarray) -> np.ndarray:
        known = np.minimum(log_kappa, 0.5 * float(jnp.finfo(dtype).max))
        return np.asarray(pi.log_prob_log(jnp.asarray(known, dtype)), float) + log_elasticity

    far = 2.0 * _DEPTH * np.linspace(0.0, 1.0, 101)
    each = max(4, int(np.ceil(width / _STEP)))
    inner = low + width / each * np.arange(each * pieces)
    points = np.concatenate([low - far[:0:-1], inner, low + width * pieces + far])
    wanted = density(*at(points))
    floor = np.max(wanted) - _DEPTH

    def agrees(tail: np.ndarray, outside: np.ndarray) -> bool:
        got, known = density(*tail), wanted[outside]
        counted = np.maximum(got, known) > floor
        # Both may be -inf where they do not count.
        gap = np.subtract(got, known, out=np.zeros_like(got), where=counted)
        return bool(np.all(np.abs(gap) <= allowed))

    edges = low + width * np.arange(pieces + 1)
    log_kappa, log_elasticity = at(edges)
    slopes = np.diff(log_elasticity, prepend=log_elasticity[0]) / width
    slopes[np.abs(slopes) < 1e-10] = 0.0
    slopes[-1] = float(table.outer_slope)

    def begins(piece: int) -> bool:
        outside = points <= edges[piece]
        away = points[outside] - edges[piece]
        elasticity = np.exp(log_elasticity[piece])
        tail = log_kappa[piece] + elasticity * away, np.full(away.shape, log_elasticity[piece])
        return agrees(np.stack(tail), outside)

    def ends(piece: int) -> bool:
        outside = points >= edges[piece]
        away = points[outside] - edges[piece]
        slope = slopes[piece] or 1e-30
        exponent = np.minimum(slope * away, FARTHEST)
        tail = log_kappa[piece] + np.exp(log_elasticity[piece]) * np.expm1(exponent) / slope
        return agrees(np.stack([tail, log_elasticity[piece] + exponent]), outside)

    first = _farthest(begins, 0, pieces - 1)
    last = _farthest(ends, pieces, first + 1)
    return Curve(
        np.asarray(table.coefficients, float)[first:last],
        float(edges[first]),
        width,
        float(np.exp(log_elasticity[first])),
        float(np.exp(log_elasticity[last])),
        float(slopes[last]),
    )


def _farthest(holds: Callable[[int], bool], sure: int, limit: int) -> int:
    """The place nearest to `limit` where a condition holds, which does at `sure`, by halving."""
    beyond = limit + (1 if limit >= sure else -1)
    while abs(beyond - sure) > 1:
        middle = (sure + beyond) // 2
        if holds(middle):
            sure = middle
        else:
            beyond = middle
    return sure
