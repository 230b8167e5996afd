"""The closed-form maps of a linear predictor against the general map, and against many digits."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import numpyro.distributions as dist
import pytest

import predcp
from predcp.linear import (
    ECP,
    GaussianPredictive,
    Horseshoe,
    LogisticPredictive,
    PredCP,
    _predictive,
)
from predcp.linear._coefficient_prior import Setting

RANDOM = np.random.default_rng(0)
X = jnp.asarray(RANDOM.normal(size=(6, 4)))
LAMBDA = jnp.asarray(RANDOM.exponential(size=4))
XI = jnp.asarray(RANDOM.normal(size=(3, 4)))


def general(observed, local):
    return predcp.PredictiveComplexity(
        observed, lambda tau, xi: tau * local * xi, jnp.zeros(4), X, XI
    )


def logistic(beta, x):
    return dist.Bernoulli(logits=x @ beta)


def gaussian(beta, x):
    return dist.Normal(x @ beta, 0.7)


MAPS = {
    "logistic": (lambda local: LogisticPredictive(X, local, XI), logistic),
    "gaussian": (lambda local: GaussianPredictive(X, local, XI, 0.7), gaussian),
}


@pytest.mark.parametrize("name", MAPS)
def test_density_and_gradient_equal_the_general_maps(name):
    ours, observed = MAPS[name]
    log_tau = jnp.asarray([-200.0, -12.0, -1.0, 0.7, 3.0, 25.0])

    def density(make):
        def of(local, log_tau):
            prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), make(local))
            return prior.log_scale().log_prob(log_tau)

        return jax.jit(jax.vmap(jax.value_and_grad(of, (0, 1)), (None, 0)))(LAMBDA, log_tau)

    mine, theirs = density(ours), density(lambda local: general(observed, local))
    for got, expected in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs)):
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("at_once", [1, 13])
@pytest.mark.parametrize("name", MAPS)
def test_products_that_are_not_held_give_the_same_map(name, at_once, monkeypatch):
    """Value and gradient, with one noise vector at a time and with two."""
    ours, _ = MAPS[name]
    log_tau = jnp.asarray([-12.0, 0.7, 25.0])

    def found():
        def density(local, log_tau):
            prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), ours(local))
            return prior.log_scale().log_prob(log_tau)

        return jax.jit(jax.vmap(jax.value_and_grad(density, (0, 1)), (None, 0)))(LAMBDA, log_tau)

    held = found()
    assert name == "gaussian" or ours(LAMBDA).products.held is not None
    monkeypatch.setattr(_predictive, "_MOST_HELD", at_once)
    assert name == "gaussian" or ours(LAMBDA).products.held is None
    for got, expected in zip(jax.tree.leaves(found()), jax.tree.leaves(held)):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    some = LogisticPredictive(X.at[2].set(0.0), LAMBDA, XI)
    np.testing.assert_allclose(some.supremum, 5 / 6 * np.log(2.0), rtol=1e-12)
    np.testing.assert_allclose(some(some.inv(0.1)), 0.1, rtol=1e-9)


def test_memory_does_not_grow_with_the_noise(monkeypatch):
    """Of the program of a value and its gradient: 8 or 128 noise vectors for 1000 rows."""
    x = jnp.asarray(RANDOM.normal(size=(1000, 3)))

    def bytes_of(draws):
        noise = jnp.asarray(np.random.default_rng(0).normal(size=(draws, 3)))

        def value(local, log_tau):
            return LogisticPredictive(x, local, noise).log_value_and_elasticity(log_tau)[0]

        arguments = jnp.ones(3), jnp.asarray(0.3)
        program = jax.jit(jax.value_and_grad(value, (0, 1))).lower(*arguments).compile()
        return program.memory_analysis().temp_size_in_bytes

    assert bytes_of(128) > 8 * bytes_of(8)
    monkeypatch.setattr(_predictive, "_MOST_HELD", 4000)
    assert bytes_of(128) < 1.3 * bytes_of(8)


@pytest.mark.parametrize("log_tau", [-60.0, -3.0, 0.0, 2.0, 4.5])
def test_logistic_map_against_many_digits(log_tau):
    with mpmath.workdps(120):
        tau = mpmath.exp(log_tau)
        products = np.asarray((XI * LAMBDA) @ X.T).ravel()
        logits = [abs(mpmath.mpf(float(p))) * tau for p in products]

        def kl(a):
            p, q = 1 / (1 + mpmath.exp(-a)), 1 / (1 + mpmath.exp(a))
            return p * mpmath.log(2 * p) + q * mpmath.log(2 * q)

        kappa = sum(kl(a) for a in logits) / len(logits)
        slope = sum(a**2 / (2 * mpmath.cosh(a / 2)) ** 2 for a in logits) / len(logits)
        expected = float(mpmath.log(kappa)), float(mpmath.log(slope / kappa))
    got = LogisticPredictive(X, LAMBDA, XI).log_value_and_elasticity(jnp.asarray(log_tau))
    np.testing.assert_allclose(got, expected, rtol=1e-11)


def test_single_precision_stays_finite_everywhere():
    local = LAMBDA.astype(jnp.float32)
    x, xi = X.astype(jnp.float32), XI.astype(jnp.float32)

    @jax.jit
    @jax.vmap
    def slopes(log_tau):
        def density(local, log_tau):
            prior = predcp.ComplexityPrior(
                predcp.LogCauchy(scale=1.0), LogisticPredictive(x, local, xi)
            )
            return prior.log_scale().log_prob(log_tau)

        return jax.value_and_grad(density, (0, 1))(local, log_tau)

    for leaf in jax.tree.leaves(slopes(jnp.linspace(-300.0, 35.0, 41, dtype=jnp.float32))):
        assert leaf.dtype == jnp.float32
        assert np.isfinite(leaf).all()


def test_inverse_and_supremum():
    complexity = LogisticPredictive(X.at[2].set(0.0), LAMBDA, XI)
    np.testing.assert_allclose(complexity.supremum, 5 / 6 * np.log(2.0), rtol=1e-12)
    kappa = jnp.asarray([1e-30, 1e-3, 0.1, 0.5])
    np.testing.assert_allclose(complexity(complexity.inv(kappa)), kappa, rtol=1e-9)
    gauss = GaussianPredictive(X, LAMBDA, XI)
    np.testing.assert_allclose(gauss(gauss.inv(kappa)), kappa, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[0], LAMBDA, XI), "x must have shape"),
        ((X, LAMBDA[:3], XI), "local_scales"),
        ((X, -LAMBDA, XI), "local_scales must be positive"),
        ((X, LAMBDA, XI[:, :3]), "noise must have shape"),
        ((X * 0.0, LAMBDA, XI), "x is all zero"),
        ((X.at[0, 0].set(jnp.nan), LAMBDA, XI), "x must be finite"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        LogisticPredictive(*arguments)


def test_row_evidence_is_the_logistic_one_at_the_probit_scale():
    log_tau = jnp.asarray([-3.0, 0.0, 2.0])
    row = predcp.RowEvidence(X, LAMBDA, np.sqrt(8 / np.pi))
    np.testing.assert_allclose(
        row.log_value_and_elasticity(log_tau),
        predcp.LogisticEvidence(X, LAMBDA).log_value_and_elasticity(log_tau),
        rtol=1e-12,
    )


def test_row_evidence_of_one_row_is_the_linear_evidence():
    tau = jnp.asarray([0.1, 1.0, 7.0])
    row = predcp.RowEvidence(X[:1], 1.0, 0.5)
    joint = predcp.LinearEvidence(X[:1], 0.5)
    # One takes a standard deviation, the other a variance.
    np.testing.assert_allclose(row(tau), joint(tau**2), rtol=1e-10)


@pytest.mark.parametrize(
    "prior",
    [ECP(), PredCP(noise_draws=3), Horseshoe()],
    ids=["ecp", "predcp", "half-cauchy"],
)
@pytest.mark.parametrize("family", ["bernoulli", "normal"])
def test_a_prior_from_sums_over_parts_of_the_columns_is_the_prior(prior, family):
    """Sums over two parts, one multiplied, in the place of the design give the same divergence."""
    random = np.random.default_rng(5)
    x = jnp.asarray(random.normal(size=(6, 9)))
    setting = Setting(x, family, 1, 0.7 if family == "normal" else 1.0)
    scales, noise = jnp.asarray(np.exp(random.normal(size=9))), prior.reading_noise(9)
    log_tau = jnp.asarray([-9.0, -1.0, 3.0])

    @jax.jit
    def both(factor):
        local = jnp.where(jnp.arange(9) < 3, factor * scales, scales)
        moving, still = (
            prior.sums(x[:, part], scales[part], None if noise is None else noise[:, part])
            for part in (slice(3), slice(3, 9))
        )
        sums = still + factor**prior.sums_power * moving
        whole = prior.log_scale(setting, local)
        from_sums = prior.log_scale_of_sums(setting, local, sums)
        return from_sums.log_prob(log_tau), whole.log_prob(log_tau)

    for factor in (1e-6, 0.3, 1.0, 1e6):
        seen, expected = both(jnp.asarray(factor))
        np.testing.assert_allclose(seen, expected, rtol=1e-9, atol=1e-9)
