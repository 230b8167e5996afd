"""Gamma draws: their distribution at every concentration, precision, and an end to the rounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from predcp._numerics.gamma_draws import log_gamma_draws

DRAWS = jax.jit(log_gamma_draws, static_argnums=2)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("concentration", [0.02, 0.2, 0.999, 1.0, 4.0, 300.0])
def test_draws_have_the_distribution(concentration, dtype):
    drawn = DRAWS(jax.random.key(3), jnp.asarray(concentration, dtype), (20_000,))
    assert drawn.dtype == dtype
    # Of the log, which small concentrations need: their draws underflow.
    exact = scipy.stats.loggamma(concentration)
    assert scipy.stats.kstest(np.asarray(drawn, float), exact.cdf).pvalue > 1e-3


def test_elements_are_independent_and_follow_their_own_concentration():
    concentration = jnp.asarray([0.3, 30.0])
    drawn = np.exp(DRAWS(jax.random.key(0), concentration, (20_000, 2)))
    np.testing.assert_allclose(drawn.mean(0), concentration, rtol=0.05)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.03
    assert len(np.unique(drawn)) == drawn.size


def test_the_same_key_gives_the_same_draws_and_nan_ends():
    again = [DRAWS(jax.random.key(1), jnp.asarray(0.7), (50,)) for _ in range(2)]
    np.testing.assert_array_equal(*again)
    assert np.all(np.isnan(DRAWS(jax.random.key(1), jnp.asarray(jnp.nan), (5,))))
