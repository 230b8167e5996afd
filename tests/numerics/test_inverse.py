"""The root search: it brackets and converges across plateaus and jumps, or says that it did not."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import predcp
from predcp._numerics.inverse import invert

XI = jnp.asarray(np.random.default_rng(0).normal(size=5))


def steps(beta, x):
    """A coin that saturates long before the location moves: D has a plateau at log 2."""
    return dist.Bernoulli(logits=1e4 * beta), dist.Normal(1e-6 * beta, 1.0)


def test_a_plateau_is_crossed():
    complexity = predcp.PredictiveComplexity(steps, lambda tau, xi: tau * xi, 0.0, None, XI)
    beyond = jnp.asarray([-1e-3, -1e-8, 1e-12, 1e-8, 1e-3, 10.0, 1e20])
    log_kappa = jnp.log(jnp.log(2.0) + beyond)
    log_tau = complexity.log_inverse(log_kappa)
    back, _ = complexity.log_value_and_elasticity(log_tau)
    np.testing.assert_allclose(back, log_kappa, rtol=0, atol=1e-13)
    # Above the plateau only the location moves: kappa - log 2 = 1e-12 tau^2 mean(xi^2) / 2.
    expected = 0.5 * np.log(2e12 * beyond[3:] / np.mean(np.asarray(XI) ** 2))
    # kappa - log 2 has half of the digits of kappa at 1e-8.
    np.testing.assert_allclose(log_tau[3:], expected, rtol=1e-8)


def test_many_plateaus_from_any_start():
    def staircase(log_tau):
        # Ten steps of width 1/50, ten apart, on a slope of 1e-6.
        edges = 10.0 * jnp.arange(-5, 5)
        value = 1e-6 * log_tau + jnp.sum(jnp.tanh(50.0 * (log_tau - edges)))
        slope = 1e-6 + jnp.sum(50.0 / jnp.cosh(50.0 * (log_tau - edges)) ** 2)
        return value, jnp.log(slope)

    targets = jnp.linspace(-9.9, 9.9, 34)

    @jax.jit
    def values_at_roots(start):
        roots = invert(staircase, targets, jnp.full_like(targets, start), jnp.asarray(jnp.inf))
        return jax.vmap(staircase)(roots)[0]

    for start in (-300.0, -1.0, 0.0, 40.0, 1e4):
        got = values_at_roots(start)
        np.testing.assert_allclose(got, targets, rtol=0, atol=1e-9, err_msg=f"from {start}")


def test_what_is_never_reached_is_not_found():
    def levels_off(log_tau):
        return jnp.tanh(log_tau), -2.0 * jnp.log(jnp.cosh(log_tau))

    targets = jnp.asarray([0.5, 2.0, -0.5])
    found = invert(levels_off, targets, jnp.zeros(3), jnp.asarray(jnp.inf))
    np.testing.assert_allclose(found, [np.arctanh(0.5), np.nan, -np.arctanh(0.5)], rtol=1e-14)

    def jumps_to_nothing(log_tau):
        return jnp.where(log_tau < 1.0, log_tau, jnp.nan), jnp.zeros(())

    found = invert(jumps_to_nothing, targets, jnp.zeros(3), jnp.asarray(jnp.inf))
    np.testing.assert_array_equal(np.isnan(found), [False, True, False])


def test_a_missing_root_raises_outside_of_jit_and_is_nan_inside():
    class LevelsOff(predcp.ScalarComplexity):
        """D = tau / (1 + tau), without saying that it is bounded."""

        unit = "standard deviation"

        def bind(self):
            return lambda log_tau: (-jax.nn.softplus(-log_tau), -jax.nn.softplus(log_tau))

    complexity = LevelsOff()
    prior = predcp.ComplexityPrior(predcp.Exponential(mean=1.0), complexity)
    for call in (
        lambda: complexity.inv(2.0),
        lambda: complexity.log_inverse(jnp.asarray([-3.0, 3.0])),
        lambda: prior.icdf(0.99),
        lambda: prior.log_scale().icdf(0.99),
        lambda: prior.sample(jax.random.key(0), (100,)),
    ):
        with pytest.raises(RuntimeError, match="no root was found for .* of the"):
            call()
    assert np.isnan(jax.jit(lambda prior, q: prior.icdf(q))(prior, 0.99))
    assert np.isfinite(prior.icdf(0.05))
    # No question, no complaint.
    assert np.isnan(prior.icdf(jnp.nan)) and np.isnan(complexity.inv(jnp.nan))
