"""Draws: right distribution, antithetic pairs, low discrepancy, any pytree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import predcp

METHODS = ["plain", "antithetic", "sobol"]


@pytest.mark.parametrize("method", METHODS)
def test_every_column_is_standard_normal(method):
    draws = predcp.normal_noise(jax.random.key(0), 4096, (3,), method)
    assert draws.shape == (4096, 3)
    for column in np.asarray(draws).T:
        assert scipy.stats.kstest(column, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(draws.T)[0, 1]) < 0.05


def test_antithetic_pairs_cancel():
    draws = predcp.normal_noise(jax.random.key(0), 7, (2,), "antithetic")
    np.testing.assert_array_equal(draws[0:6:2], -draws[1:6:2])


def test_sobol_beats_plain_draws_by_far():
    def error(method):
        means = [
            float(jnp.mean(predcp.normal_noise(jax.random.key(s), 4096, (4,), method) ** 2))
            for s in range(10)
        ]
        return np.sqrt(np.mean((np.asarray(means) - 1.0) ** 2))

    assert error("sobol") < 0.1 * error("plain")


def test_sobol_stratifies_each_dimension_even_beyond_its_direction_numbers():
    draws = predcp.normal_noise(jax.random.key(1), 16, (21_203,), "sobol")
    strata = np.floor(16 * scipy.stats.norm.cdf(np.asarray(draws[:, [0, 5, 21_202]]))).astype(int)
    for column in strata.T:
        assert sorted(column) == list(range(16))


@pytest.mark.parametrize("method", METHODS)
def test_pytrees_keep_structure_and_precision(method):
    like = {"w": jnp.zeros((2, 3), jnp.float32), "b": (4,)}
    draws = predcp.normal_noise(jax.random.key(0), 8, like, method)
    assert draws["w"].shape == (8, 2, 3) and draws["w"].dtype == jnp.float32
    assert draws["b"].shape == (8, 4) and draws["b"].dtype == jnp.float64
    traced = jax.jit(lambda key: predcp.normal_noise(key, 8, like, method))(jax.random.key(0))
    for got, expected in zip(jax.tree.leaves(traced), jax.tree.leaves(draws)):
        np.testing.assert_allclose(got, expected, rtol=1e-6 if got.dtype == jnp.float32 else 1e-14)


def test_single_precision_sobol_stays_finite():
    draws = predcp.normal_noise(jax.random.key(0), 2048, (50,), "sobol", dtype=jnp.float32)
    assert draws.dtype == jnp.float32 and np.all(np.isfinite(draws))


@pytest.mark.parametrize(
    "arguments,message",
    [
        ((0, (2,)), "count must be a whole number"),
        ((3, (2,), "halton"), "method must be one of"),
        ((3, {}), "shape must be a tuple"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        predcp.normal_noise(jax.random.key(0), *arguments)
