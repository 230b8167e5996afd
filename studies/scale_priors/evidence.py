"""Joint divergence of all observations (ECP), per observation."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from studies.scale_priors.group_sums import LINKS, log_constant, log_mixed
from studies.scale_priors.interpolated import Curve, Surface

LOG_TAU = np.linspace(np.log(1e-3), np.log(1e2), 58)
LOG_RATIO = np.linspace(-30.0, 30.0, 1201)
# Below this share of its smallest information the joint divergence is a fourth power of tau.
_POWER_LAW = 3e-3
# No sum is larger than e to this: there the divergence is far beyond any prior already.
_LARGEST = 25.0


def half_excess(log_v: Array) -> Array:
    """`(v - log(1 + v)) / 2`, the divergence of a normal with variance 1 + v from one with variance 1."""
    v = jnp.exp(jnp.minimum(log_v, 600.0))
    series = v**2 * (0.5 - v / 3.0 + v**2 / 4.0)
    return 0.5 * jnp.where(v < 1e-3, series, v - jnp.log1p(v))


def log_gaussian_kappa(log_tau: Array, eigenvalues: Array, count: float) -> Array:
    """Log of the joint divergence per observation; `eigenvalues`: of Z' W Z, (..., G)."""
    moving = eigenvalues > 0.0
    log_v = 2.0 * log_tau[..., None] + jnp.log(jnp.where(moving, eigenvalues, 1.0))
    # At least of the first non-zero size, so that the logarithm exists; below, D goes with tau^4.
    floor = jnp.maximum(log_v, -300.0)
    total = jnp.where(moving, half_excess(floor), 0.0).sum(-1)
    return jnp.log(jnp.maximum(total, 1e-300)) - jnp.log(count)


def gaussian_curve(eigenvalues: np.ndarray, count: float) -> Curve:
    """The same against the log of tau, for eigenvalues that are known."""
    values = log_gaussian_kappa(jnp.asarray(LOG_RATIO), jnp.asarray(eigenvalues), count)
    return Curve(LOG_RATIO, np.asarray(values))


def _poisson_nodes(middle: Array, tau: Array, exposure: Array) -> tuple[Array, Array]:
    """Sums of a group and their log weights: whole numbers, then quadrature in the log of the sum."""
    whole = jnp.arange(30.0)
    centre = middle + jnp.log(exposure)
    width = 8.0 * jnp.sqrt(tau**2 + 1.0 / jnp.maximum(jnp.exp(centre), 30.0))
    high = jnp.clip(centre + width, np.log(30.5), _LARGEST)
    low = jnp.clip(centre - width, np.log(29.5), high - 1e-6)
    x, w = np.polynomial.legendre.leggauss(160)
    log_s = low + (high - low) * (x + 1.0) / 2.0
    log_w = jnp.log((high - low) / 2.0 * w) + log_s
    return jnp.concatenate([whole, jnp.exp(log_s)]), jnp.concatenate([jnp.zeros(30), log_w])


def _binomial_nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers from 0 to the count with weights: all near the ends, some in the middle.

    Padded to a power of two, so that few programs serve all counts.
    """
    nodes = [0]
    while nodes[-1] < count:
        s = nodes[-1]
        step = max(1, int(0.4 * np.sqrt(s * (count - s) / count))) if s >= 20 else 1
        nodes.append(min(s + step, count))
    half = [s for s in nodes if s <= count / 2]
    both = np.array(sorted({*half, *(count - s for s in half)}), float)
    gaps = np.diff(both)
    weights = np.concatenate([[0.5], gaps / 2.0]) + np.concatenate([gaps / 2.0, [0.5]])
    padding = 2 ** int(np.ceil(np.log2(len(both)))) - len(both)
    return np.pad(both, (0, padding)), np.pad(weights, (0, padding))


def _divergence(log_mixture: Array, log_start: Array, log_weight: Array) -> Array:
    """Sum of `m log(m / p) - m + p`, whose terms are not negative."""
    r = log_mixture - log_start
    small = jnp.abs(r) < 1e-4
    series = 0.5 * r**2 * (1.0 + 2.0 * r / 3.0)
    # e^r r - e^r + 1, weighted by the larger of the two so that neither overflows.
    large = jnp.maximum(log_mixture, log_start) + log_weight
    far = jnp.exp(jnp.minimum(r, 0.0)) * (r - 1.0) + jnp.exp(jnp.minimum(-r, 0.0))
    term = jnp.where(small, series, far) * jnp.exp(large - jnp.where(small & (r > 0), r, 0.0))
    return term.sum()


def poisson_group(middle: Array, tau: Array, exposure: Array) -> Array:
    """Divergence of the sum of one group from a Poisson's."""
    s, log_w = _poisson_nodes(middle, tau, exposure)
    shift = middle + jnp.log(exposure)
    start = log_constant("poisson", s, 1.0) + s * shift - jnp.exp(shift)
    return _divergence(log_mixed("poisson", s, 1.0, shift, tau**2), start, log_w)


def binomial_group(middle: Array, tau: Array, count: Array, s: Array, w: Array) -> Array:
    """Divergence of the sum of one group from a binomial; `s`, `w`: sums and their weights."""
    start = log_constant("binomial", s, count) + s * middle
    start -= count * LINKS["binomial"].partition(middle)
    return _divergence(log_mixed("binomial", s, count, middle, tau**2), start, jnp.log(w))


@partial(jax.jit, static_argnums=0)
def _over_grid(group: Callable[..., Array], middles: Array, *arguments: Array) -> Array:
    def one(middle: Array) -> Array:
        return jax.vmap(lambda t: group(middle, jnp.exp(t), *arguments))(jnp.asarray(LOG_TAU))

    return jax.lax.map(one, middles)


def group_surface(family: str, exposures: np.ndarray, middles: np.ndarray) -> Surface:
    """Log joint divergence of all groups, against the intercept and log tau."""
    sizes, repeats = np.unique(exposures, return_counts=True)
    log_total = np.full((len(middles), len(LOG_TAU)), -np.inf)
    curvature = np.asarray(LINKS[family].curvature(jnp.asarray(middles)))
    for size, repeat in zip(sizes.astype(float), repeats):
        more = () if family == "poisson" else _binomial_nodes(int(size))
        group = poisson_group if family == "poisson" else binomial_group
        values = np.asarray(_over_grid(group, jnp.asarray(middles), jnp.asarray(size), *more))
        log_values = np.log(np.maximum(values, 1e-300))
        # Where the effect is small against the information in the group, tau^4 and no rounding.
        for row, information in zip(log_values, size * curvature):
            first = np.searchsorted(2.0 * LOG_TAU + np.log(information), np.log(_POWER_LAW))
            first = min(first, np.searchsorted(LOG_TAU, np.log(0.05)))
            row[:first] = row[first] + 4.0 * (LOG_TAU[:first] - LOG_TAU[first])
        log_total = np.logaddexp(log_total, log_values + np.log(repeat))
    return Surface(middles, LOG_TAU, np.maximum.accumulate(log_total, 1))


def log_binomial_supremum(exposures: np.ndarray, logits: Array) -> Array:
    """Log of the divergence where every group has only hits or only misses."""
    one = -0.5 * (jax.nn.log_sigmoid(logits) + jax.nn.log_sigmoid(-logits))
    return jnp.log(one * exposures.sum() - len(exposures) * np.log(2.0))
