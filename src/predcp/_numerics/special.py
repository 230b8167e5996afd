"""Special functions in which the leading terms have cancelled on paper, not in floating point."""

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax.nn import log_sigmoid, softplus
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

# Terms of a sum kept apart: the term is exp(log_weight) * coefficient.
Terms = tuple[Float[Array, "..."], Float[Array, "..."]]


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Horner's rule; coefficients from the constant upwards."""
    result = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = result * x + coefficient
    return result


def capped_exp(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`exp(x)`, capped at the square root of overflow, so that zero times it is zero."""
    return jnp.exp(jnp.minimum(x, 0.5 * math.log(float(jnp.finfo(x.dtype).max))))


def tangent_exp(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`exp(x)`, continued by its tangent where `capped_exp` is capped: finite, and increasing."""
    most = 0.5 * math.log(float(jnp.finfo(x.dtype).max))
    return capped_exp(x) * (1.0 + jnp.maximum(x - most, 0.0))


# Coefficients of `(-1 / (2 x^2))^k` in the asymptotic series of erfc; 24 terms reach rounding at 6.5.
_ERFC_SERIES = [float(math.prod(range(1, 2 * k, 2))) for k in range(24)]
_ERFC_FAR = 6.5


@jax.custom_jvp
def log_erfc(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`log erfc(x)`, finite with its derivatives however large x is."""
    far = x > _ERFC_FAR
    near = jnp.log(jax.lax.erfc(jnp.where(far, 0.0, x)))
    large = jnp.where(far, x, _ERFC_FAR)
    series = _polynomial(-0.5 / large**2, _ERFC_SERIES)
    tail = jnp.log(series) - large**2 - jnp.log(large) - 0.5 * math.log(math.pi)
    return jnp.where(far, tail, near)


# The second derivative of log(erfc) divides by erfc^2, which underflows where erfc does not.
@log_erfc.defjvp
def _log_erfc_jvp(primals, tangents):
    (x,), (speed,) = primals, tangents
    far = x > _ERFC_FAR
    inner, large = jnp.where(far, 0.0, x), jnp.where(far, x, _ERFC_FAR)
    near = 2.0 / math.sqrt(math.pi) * jnp.exp(-(inner**2) - log_erfc(inner))
    tail = 2.0 * large / _polynomial(-0.5 / large**2, _ERFC_SERIES)
    return log_erfc(x), -jnp.where(far, tail, near) * speed


def over_argument(function: Callable[[Array], Array], x: Array, slope: float) -> Array:
    """`function(x) / x` for a function `x + slope x^2 + ...`.

    The derivative of the quotient divides by x^2, which may underflow: below rounding the series is used.
    """
    tiny = jnp.abs(x) < jnp.finfo(x.dtype).eps
    inner = jnp.where(tiny, 1.0, x)
    return jnp.where(tiny, 1.0 + slope * x, function(inner) / inner)


_INVERSE_FACTORIALS = [1 / math.factorial(k) for k in range(2, 17)]
_ODD_RECIPROCALS = [1 / (2 * k + 3) for k in range(14)]


@jax.custom_jvp
def _expm1_minus_near(t: Array) -> Array:
    """`exp(t) - 1 - t` for `|t| < 0.4`; its derivative costs an addition."""
    return t**2 * _polynomial(t, _INVERSE_FACTORIALS)


@_expm1_minus_near.defjvp
def _expm1_minus_near_jvp(primals, tangents):
    (t,), (t_dot,) = primals, tangents
    value = _expm1_minus_near(t)
    return value, (value + t) * t_dot


def expm1_minus(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """`exp(t) - 1 - t`, with relative accuracy at every t that does not overflow exp(t)."""
    small = jnp.abs(t) < 0.4
    near = jnp.where(small, t, 0.0)
    far = jnp.where(small, 1.0, t)
    return jnp.where(small, _expm1_minus_near(near), jnp.expm1(far) - far)


def expm1_minus_scaled(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """`exp(-t) (exp(t) - 1 - t)` for t >= 0, which tends to 1 and never overflows."""
    return scaled_from(t, expm1_minus(-t))


def scaled_from(t: Array, other: Array) -> Array:
    """The same from `exp(-t) - 1 + t`: the two add up to `t (1 - exp(-t))`."""
    return jnp.where(t < 1.0, t * (t - other) - other, 1.0 - (1.0 + t) * jnp.exp(-t))


def relative_entropy_part(
    log_p: Float[Array, "..."], log_p0: Float[Array, "..."], t: Float[Array, "..."]
) -> Float[Array, "..."]:
    """`p (exp(t) - 1 - t)` with `p_0 = p exp(t)`: one outcome's share of KL, never negative."""
    small, p = jnp.abs(t) < 0.4, jnp.exp(log_p)
    near = jnp.where(small, t, 0.0)
    series = p * _expm1_minus_near(near)
    return jnp.where(small, series, jnp.exp(log_p0) - p * (1.0 + t))


def product_in_units(a: Float[Array, "..."], b: Float[Array, "..."]) -> Terms:
    """The product of two numbers, in units in which it does not underflow where neither factor does.

    Where one point moves by 1e20 and has saturated, others are that much smaller in its units.
    """
    tiny = float(jnp.finfo(a.dtype).tiny)
    small = jnp.maximum(jnp.abs(a), jnp.abs(b)) < tiny**0.25
    factor = jnp.where(small, tiny**-0.5, 1.0).astype(a.dtype)
    return jnp.where(small, math.log(tiny), 0.0).astype(a.dtype), (a * factor) * (b * factor)


def half(terms: list[Terms]) -> list[Terms]:
    """Half of every term."""
    return [(weight, 0.5 * coefficient) for weight, coefficient in terms]


def exponential_excess(
    direction: Float[Array, "..."], log_size: Float[Array, "..."]
) -> list[Terms]:
    """Terms of `exp(d) - 1 - d` at `d = exp(log_size) direction`, of any size."""
    d = direction * capped_exp(log_size)
    tiny = jnp.abs(d) < jnp.finfo(d.dtype).eps
    # exp(d) overflows long before d does: keep it in the log weight when it grows.
    up = jnp.maximum(d, 0.0)
    far = jnp.where(d > 0.0, expm1_minus_scaled(up), expm1_minus(jnp.minimum(d, 0.0)))
    return [(jnp.where(tiny, 2.0 * log_size, up), jnp.where(tiny, 0.5 * direction**2, far))]


def exponential_excess_slope(
    direction: Float[Array, "..."], log_size: Float[Array, "..."], velocity: Float[Array, "..."]
) -> list[Terms]:
    """Terms of `(exp(d) - 1) d'` with `d' = exp(log_size) velocity`, weighted as those of the value."""
    size = capped_exp(log_size)
    d = direction * size
    tiny = jnp.abs(d) < jnp.finfo(d.dtype).eps
    up = jnp.maximum(d, 0.0)
    step = -jnp.expm1(-jnp.abs(d)) * jnp.sign(d)
    return [
        (
            jnp.where(tiny, 2.0 * log_size, up),
            velocity * jnp.where(tiny, direction, step * size),
        )
    ]


def minus_log1p(v: Float[Array, "..."]) -> Float[Array, "..."]:
    """`v - log(1 + v)` for v > -1, with relative accuracy near 0."""
    small = jnp.abs(v) < 0.5
    near = jnp.where(small, v, 0.0)
    far = jnp.where(small, 1.0, v)
    # log1p(v) = 2 atanh(r) with r = v / (2 + v), and v - 2 r = v r.
    r = near / (2.0 + near)
    series = near * r - 2.0 * r**3 * _polynomial(r**2, _ODD_RECIPROCALS)
    return jnp.where(small, series, far - jnp.log1p(far))


@jax.custom_jvp
def log_minus_log1p(w: Float[Array, "..."]) -> Float[Array, "..."]:
    """`log(v - log(1 + v))` at `v = exp(w)`, for every real w (v itself may over- or underflow)."""
    small = w < -0.7
    near = jnp.where(small, w, -1.0)
    far = jnp.where(small, 0.0, w)
    v = jnp.exp(near)
    half = 1.0 / (2.0 + v)
    series = half - 2.0 * v * half**3 * _polynomial((v * half) ** 2, _ODD_RECIPROCALS)
    return jnp.where(
        small, 2.0 * near + jnp.log(series), far + jnp.log1p(-softplus(far) * jnp.exp(-far))
    )


@log_minus_log1p.defjvp
def _log_minus_log1p_jvp(primals, tangents):
    (w,), (w_dot,) = primals, tangents
    value = log_minus_log1p(w)
    return value, jnp.exp(2.0 * w - softplus(w) - value) * w_dot


@jax.custom_jvp
def log_softplus(w: Float[Array, "..."]) -> Float[Array, "..."]:
    """`log log(1 + exp(w))`, for every real w."""
    small = w < 0.5 * math.log(float(jnp.finfo(w.dtype).eps))
    return jnp.where(small, w - 0.5 * jnp.exp(w), jnp.log(softplus(jnp.where(small, 0.0, w))))


@log_softplus.defjvp
def _log_softplus_jvp(primals, tangents):
    (w,), (w_dot,) = primals, tangents
    value = log_softplus(w)
    return value, jnp.exp(jnp.minimum(log_sigmoid(w) - value, 0.0)) * w_dot


def log_cosh(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`log cosh(x)`, with relative accuracy near 0 and no overflow."""
    small = jnp.abs(x) < 1.0
    near = jnp.where(small, x, 0.0)
    far = jnp.abs(jnp.where(small, 1.0, x))
    return jnp.where(
        small,
        jnp.log1p(2.0 * jnp.sinh(near / 2.0) ** 2),
        far + jnp.log1p(jnp.exp(-2.0 * far)) - math.log(2.0),
    )


def log_mean_exp_zero(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """`log((1 + exp(t)) / 2)`, with relative accuracy near 0."""
    small = jnp.abs(t) < 1.0
    near = jnp.where(small, t, 0.0)
    return jnp.where(small, jnp.log1p(jnp.expm1(near) / 2.0), softplus(t) - math.log(2.0))


def fair_coin_divergence(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """`(t/2) tanh(t/2) - log cosh(t/2)`: KL of a coin with logit t from a fair one, at most log 2."""
    small = jnp.abs(t) < 1.0
    near = jnp.where(small, t, 0.0) / 2.0
    far = jnp.abs(jnp.where(small, 1.0, t))
    decay = jnp.exp(-far)
    return jnp.where(
        small,
        near * jnp.tanh(near) - log_cosh(near),
        math.log(2.0) - jnp.log1p(decay) - far * decay / (1.0 + decay),
    )


def log_gamma_1p(log_a: Float[Array, "..."]) -> Float[Array, "..."]:
    """`log Gamma(a + 1)` at `a = exp(log_a)`; extrapolated by its tangent where it would overflow."""
    most = 0.4 * math.log(float(jnp.finfo(log_a.dtype).max))
    held = jnp.minimum(log_a, most)
    return gammaln(1.0 + jnp.exp(held)) + math.exp(most) * most * (log_a - held)


def log_fermi(log_ratio: Array) -> Array:
    """Log of `int_0^inf sqrt(u) / (1 + e^(u - R)) du` up to a constant, by Sommerfeld's expansion.

    The slope of JS in the log ratio R of the scales is that integral times e^-R; R is at least 17 here.
    """
    inverse = 1.0 / jnp.maximum(log_ratio, 10.0)
    square = inverse**2
    series = square * (1.2337005501361697 + square * (1.0654340652 + square * 9.7015185))
    return jnp.log1p(series) - 1.5 * jnp.log(inverse)


# A count with a log mean above 10 has no zeros to rounding: cap the log mean there.
LARGEST_LOG_COUNT = 10.0


def log_share(log_total: Array) -> Array:
    """`log((1 - e^-A) / A)`"""
    small = log_total < math.log(0.1)
    total = jnp.exp(jnp.clip(jnp.where(small, 0.0, log_total), None, LARGEST_LOG_COUNT))
    exact = jnp.log(-jnp.expm1(-total)) - jnp.where(small, 0.0, log_total)
    near = jnp.exp(jnp.where(small, log_total, -1.0))
    series = near * (-0.5 + near * _polynomial(near**2, [1 / 24, -1 / 2880, 1 / 181440]))
    return jnp.where(small, series, exact)


# Coefficients of 1 / b^(2 k - 1) in log Gamma(b) less Stirling's formula: B_2k / (2k (2k - 1)).
_STIRLING = [
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
]
_SHIFT = 10  # from here on those terms leave an error below rounding


def _stirling_parts(inverse: Array) -> tuple[Array, Array]:
    """The series above at `b = 1 / inverse`, and its derivative in b times b."""
    square = inverse**2
    series = inverse * _polynomial(square, _STIRLING)
    slopes = [-(2 * k + 1) * coefficient for k, coefficient in enumerate(_STIRLING)]
    return series, inverse * _polynomial(square, slopes)


def digamma_1p(log_a: Float[Array, "..."]) -> Float[Array, "..."]:
    """`digamma(a + 1)` at `a = exp(log_a)`, for every real log_a."""
    large = log_a > math.log(_SHIFT)
    far, a = jnp.where(large, log_a, 10.0), jnp.exp(jnp.where(large, 0.0, log_a))
    # digamma(b) = log b - 1 / (2 b) + R'(b), with b = a + 1 or shifted upwards
    log_b = far + jnp.log1p(jnp.exp(-far))
    inverse = jnp.exp(-log_b)
    above = log_b - 0.5 * inverse + _stirling_parts(inverse)[1] * inverse
    shifted = a + 1.0 + _SHIFT
    below = jnp.log(shifted) - 0.5 / shifted + _stirling_parts(1.0 / shifted)[1] / shifted
    below = below - jnp.sum(1.0 / (a[..., None] + jnp.arange(1.0, _SHIFT + 1, dtype=a.dtype)), -1)
    return jnp.where(large, above, below)


def log_digamma_excess(log_a: Float[Array, "..."]) -> Float[Array, "..."]:
    """`log(digamma(a + 1) - log a)` at `a = exp(log_a)`, for every real log_a."""
    large = log_a > math.log(_SHIFT)
    far, near = jnp.where(large, log_a, 10.0), jnp.where(large, 0.0, log_a)
    # digamma(a + 1) = log a + 1 / (2 a) + R'(a)
    above = jnp.log(0.5 + _stirling_parts(jnp.exp(-far))[1]) - far
    return jnp.where(large, above, jnp.log(digamma_1p(near) - near))


def stirling_gap(log_a: Float[Array, "..."]) -> Float[Array, "..."]:
    """`a digamma(a + 1) - log Gamma(a + 1) - a` at `a = exp(log_a)`, without cancellation."""
    large = log_a > math.log(_SHIFT)
    far, a = jnp.where(large, log_a, 10.0), jnp.exp(jnp.where(large, 0.0, log_a))
    log_b = far + jnp.log1p(jnp.exp(-far))
    inverse = jnp.exp(-log_b)
    series, slope = _stirling_parts(inverse)
    constant = 0.5 - 0.5 * math.log(2.0 * math.pi)
    above = constant - 0.5 * log_b + 0.5 * inverse + (1.0 - inverse) * slope - series
    shifted = a + 1.0 + _SHIFT
    series, slope = _stirling_parts(1.0 / shifted)
    # log Gamma(shifted) less a, and a digamma(shifted)
    log_gamma = (shifted - 0.5) * jnp.log(shifted) - shifted + 0.5 * math.log(2.0 * math.pi)
    psi = jnp.log(shifted) - 0.5 / shifted + slope / shifted
    below = a * psi - log_gamma - series - a
    steps = a[..., None] + jnp.arange(1.0, _SHIFT + 1, dtype=a.dtype)
    below = below + jnp.sum(jnp.log(steps) - a[..., None] / steps, -1)
    return jnp.where(large, above, below)


def stirling_rest_gap(
    log_a0: Float[Array, "..."], change: Float[Array, "..."]
) -> Float[Array, "..."]:
    """`(F(a) + F(a_0)) / 2 - F((a + a_0) / 2)` at `a = a_0 e^change`.

    `F(a) = log Gamma(a) - a log a + a` is what Stirling's formula leaves.
    """

    def rest(log_a: Array) -> Array:
        """`F(a) + log(a) / 2` up to a constant"""
        return jnp.exp(log_a + log_digamma_excess(log_a)) - stirling_gap(log_a) - 0.5 * log_a

    bend = log_cosh(0.5 * change)
    ends = rest(log_a0 + change) + rest(log_a0)
    return 0.5 * (bend + ends) - rest(log_a0 + 0.5 * change + bend)


def log_abs_sum_and_ratio(
    below: Sequence[Terms], above: Sequence[Terms], keep: int = 0
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Log of one sum, and of the ratio of another to it: exact however large both logs are.

    A sum is `|sum of exp(log_weight) * coefficient|` over all but the leading `keep` axes, and `-inf`
    in logs if every coefficient is 0.

    **Arguments**: the terms of the two sums, pairs that broadcast against each other; all pairs share
    the leading `keep` axes.
    """
    top, log_rest = _top_and_rest(below, keep)
    other_top, other_rest = _top_and_rest(above, keep)
    return top + log_rest, (other_top - top) + (other_rest - log_rest)


def _top_and_rest(terms: Sequence[Terms], keep: int) -> tuple[Array, Array]:
    """The largest log weight, and the log of the sum in units of it."""
    pairs = []
    for log_weight, coefficient in terms:
        shape = jnp.broadcast_shapes(jnp.shape(log_weight), jnp.shape(coefficient))
        flat = (*shape[:keep], -1)
        if jnp.ndim(log_weight) == 0 and len(shape) > keep:
            # One weight for all: add up the coefficients first.
            coefficient = jnp.reshape(coefficient, flat).sum(-1, keepdims=True)
            shape = coefficient.shape
        pairs.append(
            (
                jnp.broadcast_to(log_weight, shape).reshape(flat),
                jnp.broadcast_to(coefficient, shape).reshape(flat),
            )
        )
    log_weight = jnp.concatenate([pair[0] for pair in pairs], axis=-1)
    coefficient = jnp.concatenate([pair[1] for pair in pairs], axis=-1)
    # A small coefficient counts half of the range of its exponents, so that neither the sum in units
    # of the top nor its inverse, a factor of the derivative, leaves floating point.
    tiny = float(jnp.finfo(coefficient.dtype).tiny)
    size = jnp.abs(coefficient)
    present = ~(size < tiny)  # a NaN stays
    level = jnp.where(size < tiny**0.5, 0.5 * math.log(tiny), 0.0).astype(coefficient.dtype)
    top = jnp.max(jnp.where(present, log_weight + level, -jnp.inf), axis=-1, keepdims=True)
    top = jax.lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0.0))
    shifted = jnp.where(present, log_weight - top, 0.0)
    # A program may compute a weight twice, with other rounding: at 1e10, a thousand above the largest.
    shifted = shifted - jax.lax.stop_gradient(jnp.maximum(shifted + level, 0.0))
    kept = jnp.where(present, coefficient, 0.0)
    total = jnp.abs(jnp.sum(jnp.exp(shifted) * kept, axis=-1))
    # Where nothing is left of a sum, its log has no derivative.
    empty = total == 0.0
    log_rest = jnp.where(empty, -jnp.inf, jnp.log(jnp.where(empty, 1.0, total)))
    return jnp.squeeze(top, -1), log_rest


def log_softplus_less(x: Array) -> Array:
    """`log softplus(x) - x`, without cancellation below 0."""
    below = x < 0.0
    ratio = over_argument(jnp.log1p, jnp.exp(jnp.where(below, x, 0.0)), -0.5)
    return jnp.where(below, jnp.log(ratio), log_softplus(jnp.where(below, 0.0, x)) - x)
