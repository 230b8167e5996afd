"""Logs of exponentials are read off the exponents, and nothing else about a program changes."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.stats import norm

from predcp._divergences import members
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
    slope = jax.jit(jax.grad(lambda eta: jnp.sum(rewritten(eta))))(ETA)
    np.testing.assert_allclose(slope, np.full(4, expected[3] - expected[2]) / (ETA[3] - ETA[2]))


WIDE = jnp.asarray([-2000.0, -30.0, -1.0, 0.0, 0.5, 30.0, 2000.0])


@pytest.mark.parametrize(
    "function,exact",
    [
        (lambda a: jnp.log(jax.nn.softplus(a)), lambda a: mp.log(mp.log(1 + mp.exp(a)))),
        (lambda a: jnp.log(jnp.log1p(jnp.exp(a))), lambda a: mp.log(mp.log(1 + mp.exp(a)))),
        (lambda a: jnp.log(jnp.log(1.0 + jnp.exp(a))), lambda a: mp.log(mp.log(1 + mp.exp(a)))),
        (lambda a: jnp.log(jax.nn.sigmoid(a)), lambda a: -mp.log(1 + mp.exp(-a))),
        (lambda a: jnp.log1p(-jax.nn.sigmoid(a)), lambda a: -mp.log(1 + mp.exp(a))),
        (lambda a: jnp.log(3.0 * (1.0 - jax.nn.sigmoid(a))), lambda a: mp.log(3 / (1 + mp.exp(a)))),
        (lambda a: jnp.log(1.0 / jax.nn.sigmoid(a) - 1.0), lambda a: -a),
        (lambda a: jnp.log(2.0 / (1.0 + jnp.exp(-a))), lambda a: mp.log(2 / (1 + mp.exp(-a)))),
        (lambda a: jnp.log(jnp.sqrt(jnp.exp(a)) * jnp.exp(a) ** 2), lambda a: mp.mpf(2.5) * a),
        (
            lambda a: jnp.log(jax.nn.softmax(jnp.stack([a, 0.0 * a], -1))[:, 0]),
            lambda a: -mp.log(1 + mp.exp(-a)),
        ),
        (
            lambda a: dist.Bernoulli(probs=jax.nn.sigmoid(a)).logits,
            lambda a: a,
        ),
    ],
    ids=["softplus", "log1p", "log-1+", "sigmoid", "log1p-minus", "rest", "odds", "division",
         "powers", "softmax", "numpyro"],
)  # fmt: skip
def test_links_keep_their_digits_where_the_value_does_not(function, exact):
    rewritten = without_overflow(function)
    program = jax.jit(jax.vmap(jax.value_and_grad(lambda a: rewritten(a[None])[0])))
    values, slopes = program(WIDE)
    for a, value, slope in zip(WIDE, values, slopes):
        with mp.workdps(2000):
            point = mp.mpf(float(a))
            step = mp.mpf(10) ** -600
            derivative = (exact(point + step) - exact(point)) / step
            # A log near 0 needs its digits relative to 1 only.
            assert abs(mp.mpf(float(value)) - exact(point)) < 2e-15 * max(1, abs(exact(point))), a
            assert abs(mp.mpf(float(slope)) - derivative) < 2e-15, a


@pytest.mark.parametrize(
    "probability,exact",
    [
        (lambda a: 1.0 - jnp.exp(-jnp.exp(a)), lambda a: mp.log(mp.expm1(mp.exp(a)))),
        (lambda a: -jnp.expm1(-2.0 * jnp.exp(a)), lambda a: mp.log(mp.expm1(2 * mp.exp(a)))),
        (lambda a: jnp.exp(-jnp.exp(-a)), lambda a: -mp.log(mp.expm1(mp.exp(-a)))),
        (norm.cdf, lambda a: mp.log(mp.ncdf(a) / mp.ncdf(-a))),
    ],
    ids=["complementary log-log", "expm1", "log-log", "probit"],
)
def test_links_of_probabilities_keep_their_log_odds(probability, exact):
    rewritten = without_overflow(lambda a: dist.Bernoulli(probs=probability(a)).logits)
    points = jnp.asarray([-40.0, -8.0, -1.0, 0.3, 4.0, 40.0])
    program = jax.jit(jax.vmap(jax.value_and_grad(lambda a: rewritten(a[None])[0])))
    values, slopes = program(points)
    for a, value, slope in zip(points, values, slopes):
        with mp.workdps(2000):
            point = mp.mpf(float(a))
            np.testing.assert_allclose(value, float(exact(point)), rtol=1e-13)
            np.testing.assert_allclose(slope, float(mp.diff(exact, point)), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_keep_their_logits_inside_of_jit(dtype):
    """NumPyro's and our clips to within rounding of 0 and 1 are known there too."""

    def read(a):
        (member,) = members(dist.Bernoulli(probs=jax.nn.sigmoid(a)))
        return member.coordinates["logits"]

    eta = jnp.asarray([-1e4, -90.0, 90.0, 1e4], dtype)
    np.testing.assert_array_equal(jax.jit(without_overflow(read))(eta), eta)


@pytest.mark.parametrize("other", [2.0, 0.0, -2.0])
def test_a_traced_term_beside_an_exponential_that_overflows(other):
    """Inside of `jit` nothing is known of the term: its sign is found when the program runs."""
    rewritten = without_overflow(lambda a, term: jnp.log(term + jnp.exp(a)))
    program = jax.jit(jax.vmap(jax.value_and_grad(rewritten), (0, None)))
    values, slopes = program(WIDE, other)
    for a, value, slope in zip(WIDE, values, slopes):
        with mp.workdps(2000):
            exponential = mp.exp(mp.mpf(float(a)))
            total = other + exponential
            if total <= 0:
                assert np.isnan(value)
                continue
            assert abs(mp.mpf(float(value)) - mp.log(total)) < 1e-15 * max(1, abs(mp.log(total)))
            assert abs(mp.mpf(float(slope)) - exponential / total) < 2e-15


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


def test_a_factor_that_overflows_is_capped_with_its_slope():
    rewritten = without_overflow(lambda a: jnp.exp(a) * jnp.asarray([-1.0, 0.0, 2.0]))
    value, slope = jax.jvp(rewritten, (jnp.asarray(1e4),), (jnp.asarray(1.0),))
    assert np.all(np.isfinite(value)) and value[0] < -1e150 and value[1] == 0.0
    np.testing.assert_array_equal(slope, 0.0)
    np.testing.assert_array_equal(rewritten(jnp.asarray(0.5)), np.exp(0.5) * np.array([-1, 0, 2]))
