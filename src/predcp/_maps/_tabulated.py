"""A map as a table of polynomials: as cheap in a sampler as a prior in closed form."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from predcp._maps._complexity import Complexity, ScalarComplexity, Unit
from predcp._numerics.fitted_pieces import halved, in_pieces, polynomials
from predcp._numerics.piecewise import Above, look_up
from predcp._numerics.power_law import floating_range
from predcp._support.arrays import concrete

_DEGREE = 9
_CHUNK = 512
_FIRST_WIDTH = 4.0
_MOST_PIECES = 2**15
# A bounded map has no mass where the log elasticity is below this.
_NEGLIGIBLE = -120.0
_PROBE_WIDTH = 1.25
_DOUBLE, _SINGLE = 1e-8, 2e-4
# The share of these errors that a piece may have.
_AIM = 0.2


class TabulatedComplexity(ScalarComplexity):
    """A map of one scale, interpolated in `log tau` (`ComplexityPrior.tabulated` makes one).

    `log D` and its log elasticity are polynomials of degree 9 on pieces of equal width, so that
    an evaluation costs one look-up, whatever the original map costs. Below and above the pieces a map
    is a power law to all digits; a bounded one stays at its supremum, and one whose log D grows as a
    power of tau (rates that are exponentials) continues so.

    **Arguments**: `complexity`, a map of one scale (or a batch of them) with known arrays, smooth
    in `log tau`.
    """

    unit: Unit | None = None
    asked_at_once = _CHUNK

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
        dtype = self.low.dtype
        # Outside: the elasticity of log D continues from the edge as a constant or as a power.
        elasticity = np.exp(ask(np.stack([low, high]))[1])
        self.outer_elasticity = jnp.asarray(np.moveaxis(elasticity, 0, -1), dtype)
        slope = _slope_above(complexity, ask, high)
        self.outer_slope = jnp.asarray(slope, dtype)
        self.above = _kind_above(elasticity[1], slope, np.finfo(dtype).eps)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.low.shape

    @property
    def pieces(self) -> int:
        """Number of polynomials."""
        return self.coefficients.shape[-3]

    def _fit(self, ask: "_Asked", low: np.ndarray, high: np.ndarray) -> None:
        """Halve the pieces until the polynomials agree with the map between their nodes.

        A piece whose polynomial agrees is halved without asking the map again.
        """
        # A multiple of 4: tables of similar maps have equal shapes and share one compiled program.
        pieces = 4 * int(np.ceil(np.max(high - low) / _FIRST_WIDTH / 4))
        coefficients = np.empty((*ask.shape, pieces, 2, _DEGREE + 1))
        rough, before = np.arange(pieces), np.full(pieces, np.inf)
        while True:
            width = (high - low) / pieces
            fitted = polynomials(ask, _DEGREE, low, width, rough)
            coefficients[..., rough, :, :] = fitted
            errors = _largest_errors(ask, fitted, low, width, rough)
            # What halving does not improve is rounding noise.
            noise = (errors > 0.5 * before) & (errors <= ask.tolerance)
            done = noise | (errors <= _AIM * ask.tolerance)
            if np.all(done):
                break
            coefficients, pieces = halved(coefficients), 2 * pieces
            rough = (2 * rough[~done, None] + np.arange(2)).reshape(-1)
            before = np.repeat(errors[~done], 2)
            if pieces > _MOST_PIECES:
                raise ValueError(
                    f"complexity is not smooth enough for a table: with {pieces // 2} pieces the log "
                    f"elasticity is still wrong by {np.max(errors):.2g}; use the map itself"
                )
        self.low = jnp.asarray(low, ask.dtype)
        self.width = jnp.asarray(width, ask.dtype)
        self.coefficients = jnp.asarray(coefficients, ask.dtype)

    def bind(self) -> Any:
        table = (self.coefficients, self.low, self.width, self.outer_elasticity, self.outer_slope)
        return lambda log_tau: look_up(self.above, log_tau, *table)

    def guess(self, log_kappa: Any) -> Array:
        # Values in the middle of the pieces, and where they are.
        values = self.coefficients[:, 0, 0]
        middles = self.low + self.width * (jnp.arange(values.shape[0]) + 0.5)
        inner = jnp.interp(log_kappa, values, middles)
        below = (log_kappa - values[0]) / self.outer_elasticity[0]
        above = jnp.maximum(log_kappa - values[-1], 0.0) / self.outer_elasticity[1]
        slope = jnp.maximum(self.outer_slope, 1e-30)
        above = 0.0 if self.bounded else jnp.log1p(slope * above) / slope
        return inner + jnp.minimum(below, 0.0) + above

    def _single_log_supremum(self) -> Float[Array, ""]:
        return self.log_bound


class _Asked:
    """The map that is tabulated, evaluated at chunks of one size by one program."""

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
    target = np.asarray(jnp.minimum(0.0, bound - 0.7), float)
    reach = floating_range(ask.dtype)
    probes = _spread(-reach, reach, ask.shape)
    log_kappa, log_elasticity = ask(probes)
    below = np.sum(log_kappa < target, axis=0)
    centre = probes.reshape(len(probes), -1)[np.clip(below, 0, len(probes) - 1), 0]
    if np.any((below == 0) | (below == len(probes)) | (np.abs(centre) > 0.5 * reach)):
        # The map bends far from tau = 1.
        centre = np.asarray(complexity.log_inverse(jnp.asarray(target, ask.dtype)), float)
        probes = _spread(
            np.minimum(centre, 0.0) - reach, np.maximum(centre, 0.0) + reach, ask.shape
        )
        log_kappa, log_elasticity = ask(probes)
    count = len(probes)
    # The deviation from a power law decays geometrically: later terms add little to this one.
    allowed = 1e-2 * ask.tolerance
    away_below = np.abs(log_elasticity - log_elasticity[:1]) > allowed
    if complexity.bounded:
        away_above = log_elasticity > _NEGLIGIBLE
    else:
        away_above = np.abs(log_elasticity - log_elasticity[-1:]) > allowed
        away_above &= log_kappa < _largest_log_kappa(ask)
    places = np.arange(count).reshape(-1, *(1 for _ in ask.shape))
    # A power law everywhere needs one piece, in the middle.
    middle = np.clip(np.argmin(np.abs(probes - centre), axis=0), 1, count - 2)
    begin = np.min(np.where(away_below, places, middle), axis=0) - 1
    end = np.max(np.where(away_above, places, middle), axis=0) + 1
    begin, end = np.clip(begin, 0, count - 2), np.clip(end, 1, count - 1)
    low = np.take_along_axis(probes, begin[None], 0)[0]
    high = np.take_along_axis(probes, end[None], 0)[0]
    return low, high


def _spread(first: Any, last: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Log scales from `first` to `last`, at most `_PROBE_WIDTH` apart, shape (count, *batch)."""
    chunks = int(np.ceil(np.max(last - first) / _PROBE_WIDTH / _CHUNK))
    fraction = np.linspace(0.0, 1.0, chunks * _CHUNK).reshape(-1, *(1 for _ in shape))
    return np.broadcast_to(first + fraction * (last - first), (chunks * _CHUNK, *shape))


def _largest_log_kappa(ask: _Asked) -> float:
    """Where log D grows as a power of tau, its log elasticity deviates from a line by its inverse."""
    return float(jnp.finfo(ask.dtype).eps) ** -0.75


def _slope_above(complexity: Complexity, ask: _Asked, high: np.ndarray) -> np.ndarray:
    """The slope of the log elasticity above the pieces, 0 for a power law."""
    edge, before = ask(high), ask(high - 1.0)
    grows = complexity.bounded | (edge[0] >= _largest_log_kappa(ask))
    return np.where(grows, edge[1] - before[1], 0.0)


def _kind_above(elasticity: np.ndarray, slope: np.ndarray, eps: float) -> Above:
    """What log D does above the pieces: a line, a constant to all digits, or an exponential."""
    if np.all(slope == 0.0):
        return "line"
    # From here on log D rises by the elasticity over the slope of its log.
    return "level" if np.all((slope < 0.0) & (elasticity < -eps * slope)) else "exponential"


def _largest_errors(
    ask: _Asked, coefficients: np.ndarray, low: np.ndarray, width: np.ndarray, pieces: np.ndarray
) -> np.ndarray:
    """Largest error in each piece: of log D (relative, a hundredfold) and of its log elasticity."""
    x = np.linspace(-0.97, 1.0, 6)
    wanted = in_pieces(ask, low, width, pieces, x)
    powers = np.vander(x, _DEGREE + 1, increasing=True)
    got = np.einsum("...pvd,nd->vpn...", coefficients, powers)
    error = np.abs(got - wanted)
    # For rates that are exponentials, log D is an exponential: only its relative error can be small.
    error[0] /= np.maximum(1.0, np.abs(wanted[0]))
    # Where the log elasticity is -1000 the density is 0: its error does not matter.
    error[1] *= wanted[1] > _NEGLIGIBLE
    # In single precision the factor of a hundred would count rounding noise.
    error[0] *= 100.0 if ask.tolerance == _DOUBLE else 1.0
    return error.max(axis=(0, *range(2, error.ndim)))
