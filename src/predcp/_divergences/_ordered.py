"""Ordered classes: an ordinal logistic model.

Class k has probability `S(a_(k-1)) - S(a_k)`, S the sigmoid, with the levels `a_k = f - c_k` of the
predictor f and the cutpoints c, infinite at both ends. This is `S(a_(k-1)) S(-a_k) (1 - e^-w_k)`
with the width `w_k = a_(k-1) - a_k`, so that its log ratio to the reference is a sum of log ratios of
two coins and of the widths, accurate near equality and at saturation.
"""

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array

from predcp._divergences import _bernoulli as coins
from predcp._divergences._divergence import Coordinates, Rule, register_family, register_rules
from predcp._numerics.class_sums import class_max, class_sum
from predcp._numerics.coin import Coin, coin
from predcp._numerics.special import log_mean_exp_zero


@register_family(dist.OrderedLogistic, dist.OrderedLogistic, class_axes=1)
def _coordinates(ordered: dist.OrderedLogistic) -> Coordinates:
    predictor = jnp.asarray(ordered.predictor)[..., None]
    return {"predictor": predictor, "cutpoints": jnp.asarray(ordered.cutpoints)}


class _Ordered(NamedTuple):
    """Two ordinal models: their coins by level, their widths, and by class log p, log p_0, log(p_0 / p)."""

    coins: Coin
    width: Array
    width_0: Array
    log_p: Array
    log_p0: Array
    t: Array


def _ends(below: Array, above: Array, between: Array) -> Array:
    """Sum by class of what belongs to the level below it, the level above it, and the width."""
    padded = ((below, (1, 0)), (above, (0, 1)), (between, (1, 1)))
    parts = (jnp.pad(each, [*[(0, 0)] * (each.ndim - 1), ends]) for each, ends in padded)
    return reduce(jnp.add, parts)


def _moves(direction: Coordinates) -> tuple[Array, Array]:
    """Changes of the levels, and of the widths: 0 where one number moves all levels."""
    cutpoints = direction["cutpoints"]
    widths = jnp.diff(cutpoints) if cutpoints.shape[-1] > 1 else jnp.zeros((), cutpoints.dtype)
    return direction["predictor"] - cutpoints, widths


def _pair(reference: Coordinates, direction: Coordinates, size: Array) -> _Ordered:
    levels, widths = _moves(direction)
    c = coin(_moves(reference)[0], levels * size)
    width_0, change = jnp.diff(reference["cutpoints"]), widths * size
    share, share_0 = (-jnp.expm1(-w) for w in (width_0 + change, width_0))
    narrower = -jnp.log1p(-jnp.exp(-width_0) * jnp.expm1(-change) / share_0)
    return _Ordered(
        c,
        width_0 + change,
        width_0,
        _ends(c.log_p, c.log_q, jnp.log(share)),
        _ends(c.log_p0, c.log_q0, jnp.log(share_0)),
        _ends(c.t_1, c.t_0, narrower),
    )


def _score(log_p: Array, log_q: Array, width: Array, velocity: Coordinates) -> Array:
    """Derivative of the log probability of each class along a velocity."""
    (levels, widths), odds = _moves(velocity), jnp.exp(-width) / -jnp.expm1(-width)
    return _ends(jnp.exp(log_q) * levels, -jnp.exp(log_p) * levels, odds * widths)


def _score_0(pair: _Ordered, velocity: Coordinates) -> Array:
    return _score(pair.coins.log_p0, pair.coins.log_q0, pair.width_0, velocity)


def _tiny(pair: _Ordered) -> Array:
    """Below rounding only the Fisher form is used: it does not underflow."""
    return class_max(jnp.abs(pair.coins.displacement)) < jnp.finfo(pair.t.dtype).eps


def _value(part: Callable[[Array, Array, Array], Array], curvature: float) -> Callable:
    def value(reference, direction, log_size):
        log_size = log_size[..., None]
        pair = _pair(reference, direction, jnp.exp(log_size))
        near = 0.5 * curvature * jnp.exp(pair.log_p0) * _score_0(pair, direction) ** 2
        tiny, far = _tiny(pair), part(pair.log_p, pair.log_p0, pair.t)
        return [(jnp.where(tiny, 2.0 * log_size, 0.0), class_sum(jnp.where(tiny, near, far)))]

    return value


def _kl_slope(reference, direction, log_size, velocity):
    """`sum_j p_j q_j a_j' (t_j - t_(j+1))` over the coins j of the levels."""
    log_size = log_size[..., None]
    pair = _pair(reference, direction, jnp.exp(log_size))
    tiny, score_0 = _tiny(pair), _score_0(pair, direction)
    step = jnp.where(tiny, score_0[..., 1:] - score_0[..., :-1], pair.t[..., :-1] - pair.t[..., 1:])
    log_weight = log_size + jnp.where(tiny, log_size, 0.0) + pair.coins.log_p + pair.coins.log_q
    return [(log_weight, step * _moves(velocity)[0])]


def _slope(pull: Callable[[_Ordered], tuple[Array, Array]], curvature: float) -> Callable:
    """The slope `-sum_k e^w_k g_k s_k` with the scores s, where `pull` gives w and g."""

    def slope(reference, direction, log_size, velocity):
        log_size = log_size[..., None]
        pair = _pair(reference, direction, jnp.exp(log_size))
        score = _score(pair.coins.log_p, pair.coins.log_q, pair.width, velocity)
        near = curvature * _score_0(pair, direction) * _score_0(pair, velocity)
        (log_weight, pulled), tiny = pull(pair), _tiny(pair)
        log_weight = log_size + jnp.where(tiny, pair.log_p0 + log_size, log_weight)
        return [(log_weight, jnp.where(tiny, near, -pulled * score))]

    return slope


# p (e^t - 1) = p_0 (1 - e^-t): use the one that does not overflow.
def _reverse_pull(pair: _Ordered) -> tuple[Array, Array]:
    step = jnp.expm1(-jnp.abs(pair.t))
    return jnp.where(pair.t > 0.0, pair.log_p0, pair.log_p), -jnp.sign(pair.t) * step


# sqrt(p p_0) - p = p (e^(t / 2) - 1)
def _hellinger_pull(pair: _Ordered) -> tuple[Array, Array]:
    step = jnp.expm1(-0.5 * jnp.abs(pair.t))
    log_weight = jnp.where(pair.t > 0.0, 0.5 * (pair.log_p + pair.log_p0), pair.log_p)
    return log_weight, -0.5 * jnp.sign(pair.t) * step


register_rules(
    dist.OrderedLogistic,
    kl=Rule(_value(coins.kl_part, 1.0), _kl_slope, bounded=True),
    **{
        name: Rule(_value(part, curvature), _slope(pull, curvature), bounded)
        for name, part, curvature, pull, bounded in (
            ("reverse_kl", coins.reversed_kl_part, 1.0, _reverse_pull, False),
            ("squared_hellinger", coins.hellinger_part, 0.25, _hellinger_pull, True),
            (
                "jensen_shannon", coins.jensen_shannon_part, 0.25,
                lambda pair: (pair.log_p, 0.5 * log_mean_exp_zero(pair.t)), True,
            ),
        )
    },
)  # fmt: skip
