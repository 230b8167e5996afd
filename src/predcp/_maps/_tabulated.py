"""A map as a table of polynomials: as cheap in a sampler as a prior in closed form."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from predcp._maps._complexity import Complexity, ScalarComplexity, Unit
from predcp._numerics.piecewise import look_up
from predcp._numerics.power_law import floating_range
from predcp._support.arrays import concrete

_DEGREE = 9
_CHUNK = 4096
_FIRST_WIDTH = 0.5
_MOST_PIECES = 2**15
# A bounded map has no mass left where the log elasticity is below this.
_NEGLIGIBLE = -120.0
_PROBE_WIDTH = 0.25
_DOUBLE, _SINGLE = 1e-8, 2e-4


class TabulatedComplexity(ScalarComplexity):
    """A map of one scale, interpolated in `log tau` (`ComplexityPrior.tabulated` makes one).

    `log D` and its log elasticity are polynomials of degree 9 on pieces of equal width, so that
    an evaluation costs one look-up whatever the map behind it costs. Below and above the pieces a map is a
    power law to all digits; a bounded one stays at its supremum.

    **Arguments**: `complexity`, a map of one scale (or a batch of them) with known arrays, smooth
    in `log tau`.
    """

    unit: Unit | None = None

    def __init__(self, complexity: ScalarComplexity):
        if not isinstance(complexity, Complexity):
            raise ValueError(f"complexity must be a map, got {type(complexity).__name__}")
        if complexity.event_dim:
            raise ValueError(
                f"complexity must be a map of one scale, got {type(complexity).__name__} of "
                f"{complexity.event_shape[0]}: a table of several scales has too many entries"
            )
        if not all(concrete(leaf) for leaf in jax.tree.leaves(complexity)):
            raise ValueError(
                "complexity must not be traced: a table is made once, outside of jit and of the model"
            )
        self.unit = complexity.unit
        self.signed = complexity.signed
        self.bounded = complexity.bounded
        ask = _Asked(complexity)
        low, high = _ends(complexity, ask)
        self.low = low
        self._fit(ask, low, high)
        self.log_bound = jnp.asarray(complexity.log_supremum(jnp.zeros(self.low.shape)))
        edges = np.stack([ask(low - 1.0), ask(low), ask(high), ask(high - 1.0)])
        dtype = self.low.dtype
        # Outside: log D continues with the elasticity at the edge, which is constant there.
        below, above = np.exp(edges[1, 1]), np.exp(edges[2, 1])
        fall = edges[2, 1] - edges[3, 1]
        self.outer_elasticity = jnp.asarray(np.stack([below, above], -1), dtype)
        self.outer_slope = jnp.asarray(fall if self.bounded else np.zeros_like(fall), dtype)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.low.shape

    @property
    def pieces(self) -> int:
        """Number of polynomials."""
        return self.coefficients.shape[-3]

    def _fit(self, ask: "_Asked", low: np.ndarray, high: np.ndarray) -> None:
        """Halve the pieces until the polynomials agree with the map between their nodes."""
        # A multiple of 32: tables of like maps have like shapes, and are compiled for once.
        pieces = 32 * int(np.ceil(np.max(high - low) / _FIRST_WIDTH / 32))
        allowed = 0.2 * ask.tolerance
        while True:
            width = (high - low) / pieces
            coefficients = _polynomials(ask, low, width, pieces)
            error = _largest_error(ask, coefficients, low, width, pieces)
            if error <= allowed:
                break
            pieces *= 2
            if pieces > _MOST_PIECES:
                raise ValueError(
                    f"complexity is not smooth enough for a table: with {pieces // 2} pieces the log "
                    f"elasticity is still wrong by {error:.2g}; use the map itself"
                )
        self.low = jnp.asarray(low, ask.dtype)
        self.width = jnp.asarray(width, ask.dtype)
        self.coefficients = jnp.asarray(coefficients, ask.dtype)

    def bind(self):
        table = (self.coefficients, self.low, self.width, self.outer_elasticity, self.outer_slope)
        return lambda log_tau: look_up(self.bounded, log_tau, *table)

    def guess(self, log_kappa):
        # Values in the middle of the pieces, and where they are.
        values = self.coefficients[:, 0, 0]
        middles = self.low + self.width * (jnp.arange(values.shape[0]) + 0.5)
        inner = jnp.interp(log_kappa, values, middles)
        below = (log_kappa - values[0]) / self.outer_elasticity[0]
        above = 0.0 if self.bounded else (log_kappa - values[-1]) / self.outer_elasticity[1]
        return inner + jnp.minimum(below, 0.0) + jnp.maximum(above, 0.0)

    def _single_log_supremum(self) -> Float[Array, ""]:
        return self.log_bound


class _Asked:
    """The map that is tabulated, asked in pieces of one size: one program."""

    def __init__(self, complexity: Complexity):
        self.complexity = complexity
        self.shape = complexity.batch_shape
        leaves = [leaf.dtype for leaf in jax.tree.leaves(complexity)]
        floating = [dtype for dtype in leaves if jnp.issubdtype(dtype, jnp.floating)]
        self.dtype = jnp.result_type(*floating) if floating else jnp.result_type(float)
        self.tolerance = _DOUBLE if jnp.finfo(self.dtype).eps < 1e-12 else _SINGLE

    def __call__(self, log_tau: Any) -> np.ndarray:
        """`log D` and log elasticity, shape (2, ...), at scales of shape (..., *batch)."""
        points = np.asarray(log_tau, float)
        count = int(np.prod(points.shape[: points.ndim - len(self.shape)], dtype=int))
        flat = points.reshape(count, *self.shape)
        padding = -count % _CHUNK
        padded = np.concatenate([flat, np.repeat(flat[-1:], padding, axis=0)])
        results = []
        for start in range(0, padded.shape[0], _CHUNK):
            asked = jnp.asarray(padded[start : start + _CHUNK], self.dtype)
            results.append(np.stack(self.complexity.log_value_and_elasticity(asked)))
        joined = np.concatenate(results, axis=1)[:, :count].astype(float)
        return joined.reshape(2, *points.shape)


def _ends(complexity: Complexity, ask: _Asked) -> tuple[np.ndarray, np.ndarray]:
    """Where the map is a power law to all digits, or where a bounded one has saturated."""
    bound = complexity.log_supremum(jnp.zeros(ask.shape, ask.dtype))
    target = jnp.minimum(0.0, bound - 0.7)
    centre = np.asarray(complexity.log_inverse(target), float)
    reach = floating_range(ask.dtype)
    first, last = np.minimum(centre, 0.0) - reach, np.maximum(centre, 0.0) + reach
    count = int(np.ceil(np.max(last - first) / _PROBE_WIDTH))
    fraction = np.linspace(0.0, 1.0, count).reshape(-1, *(1 for _ in ask.shape))
    probes = first + fraction * (last - first)
    log_elasticity = ask(probes)[1]
    # The deviation from a power law decays geometrically: what follows adds little to this.
    allowed = 1e-2 * ask.tolerance
    away_below = np.abs(log_elasticity - log_elasticity[:1]) > allowed
    away_above = np.abs(log_elasticity - log_elasticity[-1:]) > allowed
    if complexity.bounded:
        away_above = log_elasticity > _NEGLIGIBLE
    places = np.arange(count).reshape(fraction.shape)
    # A power law everywhere needs one piece, in the middle.
    middle = np.clip(np.argmin(np.abs(probes - centre), axis=0), 1, count - 2)
    begin = np.min(np.where(away_below, places, middle), axis=0) - 1
    end = np.max(np.where(away_above, places, middle), axis=0) + 1
    begin, end = np.clip(begin, 0, count - 2), np.clip(end, 1, count - 1)
    low = np.take_along_axis(probes, begin[None], 0)[0]
    high = np.take_along_axis(probes, end[None], 0)[0]
    return low, high


def _polynomials(ask: _Asked, low: np.ndarray, width: np.ndarray, pieces: int) -> np.ndarray:
    """Coefficients of log D and of the log elasticity, shape (*batch, pieces, 2, degree + 1)."""
    nodes = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    values = _in_pieces(ask, low, width, pieces, np.append(nodes, 0.0))
    middle = values[:, :, -1]
    # Of the differences from the middle: the large common part keeps its digits.
    inverse = np.linalg.inv(np.vander(nodes, increasing=True))
    coefficients = np.einsum("dn,vpn...->vpd...", inverse, values[:, :, :-1] - middle[:, :, None])
    coefficients[:, :, 0] += middle
    order = (*range(3, coefficients.ndim), 1, 0, 2)
    return coefficients.transpose(order)


def _in_pieces(
    ask: _Asked, low: np.ndarray, width: np.ndarray, pieces: int, x: np.ndarray
) -> np.ndarray:
    """The map at local coordinates x in [-1, 1] of every piece, shape (2, pieces, x, *batch)."""
    place = (np.arange(pieces)[:, None] + 0.5 * (1.0 + x)).reshape(-1, *(1 for _ in ask.shape))
    values = ask(low + width * place)
    return values.reshape(2, pieces, x.size, *ask.shape)


def _largest_error(
    ask: _Asked, coefficients: np.ndarray, low: np.ndarray, width: np.ndarray, pieces: int
) -> float:
    """Largest error of log D (relative, a hundredfold) and of its log elasticity between nodes."""
    x = np.linspace(-0.97, 1.0, 6)
    wanted = _in_pieces(ask, low, width, pieces, x)
    powers = np.vander(x, _DEGREE + 1, increasing=True)
    got = np.einsum("...pvd,nd->vpn...", coefficients, powers)
    error = np.abs(got - wanted)
    # Rates that are exponentials make log D an exponential: it has relative digits only.
    error[0] /= np.maximum(1.0, np.abs(wanted[0]))
    # A map whose log elasticity is -1000 has no density there to be wrong about.
    error[1] *= wanted[1] > _NEGLIGIBLE
    # The noise of single precision is not counted a hundredfold.
    weight = 100.0 if ask.tolerance == _DOUBLE else 1.0
    return float(max(weight * error[0].max(), error[1].max()))
