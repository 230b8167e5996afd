"""The likelihood of one group's sum of counts, its effect integrated out."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp, sigmoid, softplus
from jax.scipy.special import gammaln
from jaxtyping import Array

# The trapezoidal rule converges geometrically on a smooth peak, once it reaches both of its ends.
NODES = 41
_PARTS = np.linspace(0.0, 1.0, NODES)
_NEWTON_STEPS = 10
# Ends are where the log density is so far below its peak, found by halving their logarithm.
_DROP = 18.0
_HALVINGS = 7


class Link(NamedTuple):
    """The log partition function of a family, its first two derivatives, and a start for Newton."""

    partition: Any
    mean: Any
    curvature: Any
    guess: Any  # from a sum and its exposure: location of its likelihood and information there


def _log_guess(total: Any, exposure: Any) -> tuple[Any, Any]:
    return jnp.log((total + 0.5) / (exposure + 1e-9)), total + 0.5


def _logit_guess(total: Any, exposure: Any) -> tuple[Any, Any]:
    hits, misses = total + 0.5, exposure - total + 0.5
    return jnp.log(hits) - jnp.log(misses), hits * misses / (hits + misses)


LINKS = {
    "poisson": Link(jnp.exp, jnp.exp, jnp.exp, _log_guess),
    "binomial": Link(softplus, sigmoid, lambda a: sigmoid(a) * sigmoid(-a), _logit_guess),
}


class Integrated(NamedTuple):
    """Log of the integral, and mean, variance and skewness of the effect."""

    log_value: Array
    mean: Array
    variance: Array
    skewness: Array


def effect_mode(family: str, total: Any, exposure: Any, middle: Any, variance: Any) -> Array:
    """Mode of the effect of a group by Newton steps, all arguments broadcast."""
    link = LINKS[family]
    place, information = link.guess(total, exposure)
    start = information * variance * (place - middle) / (information * variance + 1.0)

    def step(_: int, u: Array) -> Array:
        a = middle + u
        gradient = variance * (total - exposure * link.mean(a)) - u
        return u + jnp.clip(gradient / (variance * exposure * link.curvature(a) + 1.0), -3.0, 3.0)

    return jax.lax.fori_loop(0, _NEWTON_STEPS, step, start + 0.0 * (total + exposure))


def integrated(family: str, total: Any, exposure: Any, middle: Any, variance: Any) -> Integrated:
    """Integrate `exp(total a - exposure partition(a))` over `a = middle + u`, `u ~ normal(0, variance)`.

    The trapezoidal rule between the ends of the peak. All arguments broadcast.
    """
    link = LINKS[family]
    mode = effect_mode(family, total, exposure, middle, variance)
    curvature = exposure * link.curvature(middle + mode) + 1.0 / variance

    def log_f(u: Array) -> Array:
        a = middle + u
        return total * a - exposure * link.partition(a) - 0.5 * u**2 / variance

    peak = log_f(mode)
    # No end is farther than that of the normal alone: the likelihood is log-concave.
    widest = 0.5 * jnp.log(2.0 * _DROP * variance)
    least = 0.5 * jnp.log(0.04 / curvature)

    def end(sign: float) -> Array:
        def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bracket
            half = 0.5 * (low + high)
            inside = peak - log_f(mode + sign * jnp.exp(half)) < _DROP
            return jnp.where(inside, half, low), jnp.where(inside, high, half)

        start = jnp.broadcast_to(least, peak.shape), jnp.broadcast_to(widest, peak.shape)
        return jnp.exp(jax.lax.fori_loop(0, _HALVINGS, halve, start)[1])

    left, right = end(-1.0), end(1.0)

    def add(k: Any, sums: Array) -> Array:
        # In units of the width, from the mode, so that powers stay near 1.
        x = jnp.asarray(_PARTS)[k] - left / (left + right)
        w = jnp.exp(log_f(mode + (left + right) * x) - peak)
        return sums + w * jnp.stack([jnp.ones_like(x), x, x**2, x**3])

    sums = jax.lax.fori_loop(0, NODES, add, jnp.zeros((4, *peak.shape)), unroll=8)
    first, second, third = sums[1:] / sums[0]
    central = jnp.maximum(second - first**2, 1e-12)
    skewness = (third - 3.0 * first * second + 2.0 * first**3) / central**1.5
    width = left + right
    log_step = jnp.log(width / (NODES - 1)) - 0.5 * jnp.log(2.0 * jnp.pi * variance)
    return Integrated(
        jnp.log(sums[0]) + peak + log_step, mode + width * first, width**2 * central, skewness
    )


def log_constant(family: str, total: Any, trials: Any) -> Array:
    """What the log probability of one row has besides `total a - trials partition(a)`."""
    if family == "poisson":
        return -gammaln(total + 1.0)
    return gammaln(trials + 1.0) - gammaln(total + 1.0) - gammaln(trials - total + 1.0)


def log_mixed(family: str, y: Any, trials: Any, mean: Any, variance: Any) -> Array:
    """Log probability of a row whose linear predictor is normal."""
    return log_constant(family, y, trials) + integrated(family, y, trials, mean, variance).log_value


def normalised(log_values: Array, axis: int) -> Array:
    """Weights that add up to 1."""
    return jnp.exp(log_values - logsumexp(log_values, axis, keepdims=True))
