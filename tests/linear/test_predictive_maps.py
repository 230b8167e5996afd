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
@pytest.mark.parametrize("log_tau", [-200.0, -12.0, -1.0, 0.7, 3.0, 25.0])
def test_density_and_gradient_equal_the_general_maps(name, log_tau):
    ours, observed = MAPS[name]

    def density(make):
        def of(local, log_tau):
            prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), make(local))
            return prior.log_scale().log_prob(log_tau)

        return jax.jit(jax.value_and_grad(of, (0, 1)))(LAMBDA, jnp.asarray(log_tau))

    mine, theirs = density(ours), density(lambda local: general(observed, local))
    for got, expected in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs)):
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)


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
@pytest.mark.parametrize("family", ["bernoulli", "normal", "categorical"])
def test_a_prior_along_a_line_of_local_scales_is_the_prior(prior, family):
    """Two columns in the place of all of them give the same divergence."""
    random = np.random.default_rng(5)
    x, outputs = jnp.asarray(random.normal(size=(6, 9))), 3 if family == "categorical" else 1
    setting = Setting(x, family, outputs, 0.7 if family == "normal" else 1.0)
    scales = jnp.asarray(np.exp(random.normal(size=setting.shape)))
    chosen = jnp.arange(9).reshape(-1, *[1] * (scales.ndim - 1)) < 3
    still, moving = jnp.where(chosen, 0.0, scales), jnp.where(chosen, scales, 0.0)
    along = prior.log_scale_along(setting, still, moving)
    for factor in (1e-6, 0.3, 1.0, 1e6):
        whole = prior.log_scale(setting, still + factor * moving)
        for log_tau in (-9.0, -1.0, 3.0):
            seen = along(jnp.asarray(factor)).log_prob(log_tau)
            np.testing.assert_allclose(seen, whole.log_prob(log_tau), rtol=1e-9, atol=1e-9)
