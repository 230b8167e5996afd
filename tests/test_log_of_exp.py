"""Logs of exponentials are read off the exponents, and nothing else about a program changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from predcp._numerics.log_of_exp import without_overflow

ETA = jnp.asarray([-2000.0, -1.0, 0.5, 2000.0])


@pytest.mark.parametrize(
    "log_rate,expected",
    [
        (lambda eta: jnp.log(jnp.exp(eta)), ETA),
        (lambda eta: jnp.log(3.0 * jnp.exp(eta)), ETA + np.log(3.0)),
        (lambda eta: jnp.log(jnp.exp(eta) * jnp.exp(eta)), 2 * ETA),
        (lambda eta: jnp.log(jnp.exp(eta)[None].T).reshape(-1), ETA),
        (lambda eta: jnp.log(jax.jit(lambda a: 2.0 * jnp.exp(a))(eta)), ETA + np.log(2.0)),
    ],
    ids=["plain", "exposure", "product", "reshaped", "jitted"],
)
def test_the_log_of_an_exponential_is_its_exponent(log_rate, expected):
    assert not np.all(np.isfinite(log_rate(ETA)))
    rewritten = without_overflow(log_rate)
    np.testing.assert_allclose(rewritten(ETA), expected, rtol=1e-15)
    np.testing.assert_allclose(jax.jit(rewritten)(ETA), expected, rtol=1e-15)
    slope = jax.grad(lambda eta: jnp.sum(rewritten(eta)))(ETA)
    np.testing.assert_allclose(slope, np.full(4, expected[3] - expected[2]) / (ETA[3] - ETA[2]))


def test_a_factor_that_is_not_positive_has_no_log():
    rewritten = without_overflow(lambda a: jnp.log(a * jnp.exp(a)))
    np.testing.assert_array_equal(rewritten(jnp.asarray([-1.0, 0.0])), [np.nan, -np.inf])


def test_other_programs_and_other_results_are_left_alone():
    @jax.custom_jvp
    def odd(x):
        return jnp.log(jnp.exp(x) + 1.0)

    # A derivative that is not the program's own shows whether it was kept.
    odd.defjvp(lambda primals, tangents: (odd(*primals), 7.0 * tangents[0]))

    def both(x):
        return {"rate": jnp.exp(x), "log": jnp.log(jnp.exp(x)), "odd": odd(x)}

    x = jnp.asarray(0.3)
    np.testing.assert_equal(jax.tree.map(float, without_overflow(both)(x)), {
        "rate": float(jnp.exp(x)), "log": 0.3, "odd": float(odd(x)),
    })  # fmt: skip
    assert jax.grad(lambda x: without_overflow(both)(x)["odd"])(x) == 7.0
    assert without_overflow(jnp.log)(x) == jnp.log(x)
