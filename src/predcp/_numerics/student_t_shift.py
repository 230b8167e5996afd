"""The divergence between Student-t variables that differ in location alone, from a table.

It is a function g of one number a, the shift in units of `sqrt(df)` scales. With `s = asinh(a / 2)`,

    g(a) = (df + 1) log cosh s + tanh(s)^2 C(s)

where C is even in s, bounded, and tends to a constant. Its singularities nearest to the real line
are those of `log(1 + a^2 / 4)`, and for many degrees of freedom nearly those of `log(1 + a^2)`:
at i pi / 6. In t, `s = sinh(t) / 2`, polynomials on pieces of one width resolve it. They are of degree
14 and exact to 1e-11 where the integral is.
"""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp._numerics.special import log_cosh
from predcp._support.check import known

# From degrees of freedom and the shift to the divergence, by its integral.
Integral = Callable[[Array, Array], Array]

_PIECES = 24
_DEGREES = {"float32": 7, "float64": 14}
# Making a table costs 360 integrals. Scales that are evaluated together share it, so that it pays
# already for fewer shifts than that.
FEWEST = 128


@jax.custom_jvp
def _asinh_half(a: Array) -> Array:
    """`asinh(a / 2)`; its derivative does not overflow."""
    return jnp.arcsinh(0.5 * a)


@_asinh_half.defjvp
def _asinh_half_jvp(primals, tangents):
    s = _asinh_half(*primals)
    return s, 0.5 * tangents[0] / jnp.cosh(s)


def _last(df: Array) -> Array:
    """Where C is constant to rounding, in t: its last terms fall as `exp(-df s)` and `exp(-2 s)`."""
    depth = -1.05 * math.log(float(jnp.finfo(df.dtype).eps))
    return jnp.arcsinh(2.0 * depth / jnp.minimum(df, 2.0))


def _table(integral: Integral, df: Array) -> Array:
    """Chebyshev coefficients of C, shape (degree + 1, pieces), for one number of degrees of freedom."""
    count = _DEGREES[df.dtype.name] + 1
    angles = np.pi * (np.arange(count) + 0.5) / count
    place = np.arange(_PIECES) + 0.5 * (1.0 + np.cos(angles))[:, None]
    s = 0.5 * jnp.sinh(_last(df) / _PIECES * jnp.asarray(place, df.dtype))
    values = integral(jnp.broadcast_to(df, s.shape), 2.0 * jnp.sinh(s))
    values = (values - (df + 1.0) * log_cosh(s)) / jnp.tanh(s) ** 2
    transform = 2.0 / count * np.cos(np.arange(count)[:, None] * angles)
    transform[0] *= 0.5
    return jnp.matmul(jnp.asarray(transform, df.dtype), values, precision="highest")


def _from_table(table: Array, df: Array, a: Array) -> Array:
    s = _asinh_half(jnp.abs(a))
    width = _last(df) / _PIECES
    position = jnp.clip(jnp.arcsinh(2.0 * s) / width, 0.0, _PIECES)
    piece = jnp.minimum(jax.lax.stop_gradient(position).astype(jnp.int32), _PIECES - 1)
    x = 2.0 * (position - piece) - 1.0
    # Clenshaw's sum.
    after, last = jnp.zeros_like(x), jnp.zeros_like(x)
    for row in table[:0:-1]:
        after, last = 2.0 * x * after - last + row[piece], after
    return (df + 1.0) * log_cosh(s) + jnp.tanh(s) ** 2 * (x * after - last + table[0][piece])


def _derivative(order: int, function: Callable[[Array], Array], a: Array) -> Array:
    for _ in range(order):
        function = partial(_slope, function)
    return function(a)


def _slope(function: Callable[[Array], Array], a: Array) -> Array:
    return jax.jvp(function, (a,), (jnp.ones_like(a),))[1]


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _shifted(integral: Integral, order: int, df: Array, a: Array) -> Array:
    """The derivative of some order of g in a."""
    first = df.reshape(-1)[0]

    def by_table(df: Array, a: Array) -> Array:
        table = _table(integral, first)
        return _derivative(order, lambda a: _from_table(table, first, a), a)

    def by_integral(df: Array, a: Array) -> Array:
        return _derivative(order, lambda a: integral(df, a), a)

    return jax.lax.cond(jnp.all(df == first), by_table, by_integral, df, a)


# The table is for one df: a derivative in df is taken of the integral, and only if it is needed.
@partial(_shifted.defjvp, symbolic_zeros=True)
def _shifted_jvp(integral, order, primals, tangents):
    df, a = primals
    result = _shifted(integral, order, df, a)
    slope = jnp.zeros_like(result)
    if not isinstance(tangents[1], jax.custom_derivatives.SymbolicZero):
        slope = slope + _shifted(integral, order + 1, df, a) * tangents[1]
    if not isinstance(tangents[0], jax.custom_derivatives.SymbolicZero):
        _, by_df = jax.jvp(
            lambda df: _derivative(order, lambda a: integral(df, a), a), (df,), (tangents[0],)
        )
        slope = slope + by_df
    return result, slope


def shift_divergence(integral: Integral, df: Array, a: Array) -> Array:
    """`integral(df, a)` for many shifts a, by a table if all degrees of freedom are equal."""
    df, a = jnp.broadcast_arrays(df, a)
    return integral(df, a) if a.size < FEWEST else _shifted(integral, 0, df, a)


def stays(change: Array) -> bool:
    """Whether the change of a coordinate is known to be 0 while the program is traced."""
    numbers = known(change)
    return numbers is not None and not np.any(numbers)
