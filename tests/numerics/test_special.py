"""Special functions against fifty digits, from far below rounding to far above overflow."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from tests.oracle import relative_error

from predcp._numerics import special as _special

ARGUMENTS = [s * v for v in np.logspace(-18, 2.6, 62) for s in (1.0, -1.0)]
CASES = {
    "expm1_minus": (lambda t: mp.expm1(t) - t, ARGUMENTS),
    "expm1_minus_scaled": (lambda t: 1 - (1 + t) * mp.exp(-t), np.logspace(-18, 4, 60)),
    "minus_log1p": (lambda v: v - mp.log1p(v), [v for v in ARGUMENTS if v > -0.99]),
    "log_minus_log1p": (
        lambda w: mp.log(mp.exp(w) - mp.log1p(mp.exp(w))),
        np.linspace(-60, 60, 241),
    ),
    "log_cosh": (lambda x: mp.log(mp.cosh(x)), ARGUMENTS),
    "log_mean_exp_zero": (lambda t: mp.log((1 + mp.exp(t)) / 2), ARGUMENTS),
    "fair_coin_divergence": (
        lambda t: t / 2 * mp.tanh(t / 2) - mp.log(mp.cosh(t / 2)),
        np.logspace(-18, 2, 60),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_match_fifty_digits(name):
    reference, arguments = CASES[name]
    function = getattr(_special, name)
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(function)))(jnp.asarray(arguments))
    for argument, value, slope in zip(arguments, values, slopes):
        with mp.workdps(140):
            exact = mp.mpf(float(argument))
            assert relative_error(value, reference(exact)) < 1e-13, argument
            expected = mp.diff(reference, exact, h=(abs(exact) or 1) * mp.mpf(10) ** -25)
            # A derivative that is itself tiny against its parts is held to rounding of those.
            scale = max(abs(expected), abs(reference(exact)))
            assert abs(mp.mpf(float(slope)) - expected) < 1e-13 * scale, argument


def test_log_sums_survive_weights_outside_floating_point():
    weights = jnp.asarray([-1e7, -1e7 + 1.0, 2e5])
    terms = [(weights, jnp.asarray([1.0, -0.5, 0.0]))]
    total, ratio = _special.log_abs_sum_and_ratio(terms, [(w + 3.0, c) for w, c in terms])
    np.testing.assert_allclose(total, -1e7 + np.log(abs(1.0 - 0.5 * np.e)), rtol=1e-14)
    np.testing.assert_allclose(ratio, 3.0, rtol=1e-14)
    nothing = [(weights, jnp.zeros(3))]
    assert _special.log_abs_sum_and_ratio(nothing, terms)[0] == -jnp.inf
    unknown = [(w, jnp.nan * c) for w, c in terms]
    assert jnp.isnan(_special.log_abs_sum_and_ratio(unknown, terms)[0])


@pytest.mark.parametrize("function", [_special.log_softplus_less, _special.log_softplus])
def test_slopes_are_those_of_both_sides_where_forms_join(function):
    before, at, after = jax.vmap(jax.grad(function))(jnp.array([-1e-9, 0.0, 1e-9]))
    np.testing.assert_allclose([before, after], at, rtol=1e-8)


@pytest.mark.parametrize("dtype,rtol", [("float32", 3e-5), ("float64", 1e-11)])
def test_a_tail_of_the_normal_has_three_derivatives(dtype, rtol):
    """Probit links take them: erfc squared underflows in single precision where erfc does not."""

    def exact(x):
        slope = -2 / mp.sqrt(mp.pi) * mp.exp(-(x**2)) / mp.erfc(x)
        second = -slope * (2 * x + slope)
        return mp.log(mp.erfc(x)), slope, second, -2 * (slope + (x + slope) * second)

    functions = [_special.log_erfc]
    for _ in range(3):
        functions.append(jax.grad(functions[-1]))
    x = jnp.asarray(np.concatenate([np.linspace(-4.0, 9.0, 131), [40.0, 1e3, 1e5]]), dtype)
    found = jax.jit(jax.vmap(lambda x: [function(x) for function in functions]))(x)
    with mp.workdps(60):
        wanted = np.array([[float(each) for each in exact(mp.mpf(float(at)))] for at in x]).T
    for order, (got, expected) in enumerate(zip(found, wanted)):
        assert got.dtype == dtype
        # The second and third derivative are differences of terms as large as x^order.
        scale = np.maximum(np.abs(expected), np.maximum(1.0, np.abs(np.asarray(x))) ** order)
        scale = np.abs(expected) if order < 2 else scale
        np.testing.assert_array_less(np.abs(np.asarray(got) - expected), rtol * scale + 1e-30)


def test_sums_of_tiny_coefficients_keep_value_and_slope():
    """One class has saturated, and what is left of another is near the smallest number."""
    weights = jnp.asarray([0.0, -85.0, 3.0], jnp.float32)
    coefficients = jnp.asarray([2e-37, 85.0, 0.0], jnp.float32)

    def log_sum(weights, coefficients):
        return _special.log_abs_sum_and_ratio([(weights, coefficients)], [(weights, weights)])[0]

    value, slopes = jax.jit(jax.value_and_grad(log_sum, (0, 1)))(weights, coefficients)
    terms = np.exp(np.asarray(weights, float)) * np.asarray(coefficients, float)
    np.testing.assert_allclose(value, np.log(terms.sum()), rtol=1e-6)
    np.testing.assert_allclose(slopes[0], terms / terms.sum(), rtol=1e-4)
    assert np.all(np.isfinite(slopes[1]))
    # A coefficient without all its digits is left out, and the inverse of the sum does not overflow.
    weights, coefficients = jnp.float32([0.0, -95.0, 3.0]), jnp.float32([5e-39, 85.0, 0.0])
    value, slopes = jax.jit(jax.value_and_grad(log_sum, (0, 1)))(weights, coefficients)
    np.testing.assert_allclose(value, np.log(85.0) - 95.0, rtol=1e-6)
    assert all(np.all(np.isfinite(slope)) for slope in slopes)


def test_products_of_tiny_factors_do_not_underflow():
    a = jnp.asarray([3e-25, -2e-20, 0.5, 0.0], jnp.float32)
    b = jnp.asarray([2e-24, 4e-18, 1e-12, 1e-30], jnp.float32)
    log_unit, product = _special.product_in_units(a, b)
    exact = np.asarray(a, float) * np.asarray(b, float)
    np.testing.assert_allclose(np.exp(np.asarray(log_unit, float)) * product, exact, rtol=1e-5)
    assert np.all(np.asarray(product[:3]) != 0.0)
