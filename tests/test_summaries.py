"""What a prior means: marginals, shrinkage, tails, predictions, and the paper's own inversion."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.integrate
from scipy.special import exp1

import predcp
from tests.catalogue import (
    DESIGN,
    HIDDEN,
    NOISE,
    OUTPUT,
    PHI,
    PHI_NOISE,
    WEIGHTS,
    network,
    normal,
    scaled,
)


def test_the_marginal_of_a_horseshoe_is_its_closed_form():
    beta = np.asarray([1e-3, 0.1, 1.0, 10.0, 100.0])
    # p(beta) = exp(b^2 / 2) E1(b^2 / 2) / sqrt(2 pi^3), with the scaled form where exp overflows.
    half = beta[:4] ** 2 / 2
    expected = np.exp(half) * exp1(half) / np.sqrt(2 * np.pi**3)
    got = predcp.marginal(dist.HalfCauchy(1.0), beta, unit="standard deviation")
    np.testing.assert_allclose(got[:4], expected, rtol=1e-8)
    np.testing.assert_allclose(got[4], 2 / 1e4 / np.sqrt(2 * np.pi**3), rtol=1e-3)


def test_summaries_obey_the_unit_of_the_map():
    prior = predcp.ComplexityPrior(
        predcp.LogCauchy(scale=1.0), predcp.LogisticEvidence(np.ones((5, 1)))
    )
    # beta ~ N(0, tau^2): integrate over the quantiles of tau.
    expected, _ = scipy.integrate.quad(
        lambda u: float(
            np.exp(prior.log_scale().log_prob(u) + dist.Normal(0, np.exp(u)).log_prob(0.5))
        ),
        -8,
        40,
        limit=200,
    )
    np.testing.assert_allclose(predcp.marginal(prior, 0.5), expected, rtol=1e-6)
    np.testing.assert_allclose(predcp.marginal(prior.log_scale(), 0.5), expected, rtol=1e-6)
    # The same prior stated on the variance, through a power of the scale.
    on_variance = dist.TransformedDistribution(prior, dist.transforms.PowerTransform(2.0))
    values = np.asarray([0.1, 0.6])
    np.testing.assert_allclose(
        predcp.shrinkage_profile(prior, values),
        predcp.shrinkage_profile(on_variance, values, unit="variance"),
        rtol=1e-10,
    )


def test_the_unit_is_found_from_the_program_or_asked_for():
    def made(parameters, **options):
        return predcp.PredictiveComplexity(
            normal, parameters, jnp.zeros(3), DESIGN, NOISE, **options
        )

    assert made(scaled).unit == "standard deviation"
    assert made(lambda tau, xi: jnp.sqrt(tau) * xi).unit == "variance"
    unclear = made(lambda tau, xi: jnp.log1p(tau) * xi)
    assert unclear.unit is None
    prior = predcp.ComplexityPrior(predcp.Exponential(mean=1.0), unclear)
    with pytest.raises(ValueError, match="unit must be given for a prior through Predictive"):
        predcp.marginal(prior, 1.0)
    stated = made(lambda tau, xi: jnp.log1p(tau) * xi, unit="standard deviation")
    again = predcp.ComplexityPrior(predcp.Exponential(mean=1.0), stated)
    np.testing.assert_allclose(
        predcp.marginal(prior, 1.0, unit="standard deviation"), predcp.marginal(again, 1.0)
    )
    with pytest.raises(ValueError, match="is a standard deviation"):
        predcp.marginal(again, 1.0, unit="variance")
    with pytest.raises(ValueError, match='unit must be "variance"'):
        made(scaled, unit="precision")


@pytest.mark.parametrize("x", [0.25, 1.0])
def test_the_marginal_of_an_evidence_prior_integrates_to_one(x):
    prior = predcp.ComplexityPrior(predcp.Exponential(mean=0.5), predcp.LinearEvidence(x))
    beta = np.concatenate([[0.0], np.logspace(-6, 2.5, 800)])
    mass = 2 * np.trapezoid(predcp.marginal(prior, beta), beta)
    np.testing.assert_allclose(mass, 1.0, atol=2e-3)
    expected, _ = scipy.integrate.quad(
        lambda t: float(np.exp(prior.log_prob(t) + dist.Normal(0, np.sqrt(t)).log_prob(0.8))),
        0,
        np.inf,
    )
    np.testing.assert_allclose(predcp.marginal(prior, 0.8), expected, rtol=1e-7)


def test_the_shrinkage_profile_of_a_horseshoe_is_a_beta():
    values = np.asarray([0.01, 0.3, 0.9])
    got = predcp.shrinkage_profile(dist.HalfCauchy(1.0), values, unit="standard deviation")
    np.testing.assert_allclose(got, np.exp(dist.Beta(0.5, 0.5).log_prob(values)), rtol=1e-10)


def test_small_features_are_shrunk_less():
    def heavily_shrunk(x):
        prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.LinearEvidence(x))
        return 1.0 - predcp.tail_probability(prior, 1.0)

    assert heavily_shrunk(0.1) < heavily_shrunk(1.0) < heavily_shrunk(3.0)


def test_tails_keep_their_digits_however_far():
    prior = predcp.ComplexityPrior(predcp.Exponential(mean=1.0), predcp.LinearEvidence(1.0))
    tau = 200.0
    expected = -(tau - np.log1p(tau)) / 2
    np.testing.assert_allclose(np.log(predcp.tail_probability(prior, tau)), expected, rtol=1e-12)


def test_prior_predictive_draws_have_the_shapes_of_the_data():
    key = jax.random.key(0)
    predictive = predcp.PredictiveComplexity(normal, scaled, jnp.zeros(3), DESIGN, NOISE)
    depth = predcp.DepthComplexity(HIDDEN, WEIGHTS, OUTPUT)
    modular = predcp.ModularComplexity(network, PHI, DESIGN, PHI_NOISE)
    for complexity, shape in ((predictive, (8,)), (depth, (6, 2)), (modular, (8, 2))):
        prior = predcp.ComplexityPrior(predcp.Exponential(mean=0.5), complexity)
        draws = predcp.prior_predictive(prior, key, 20)
        assert draws.shape == (20, *shape) and np.all(np.isfinite(draws))
    evidence = predcp.ComplexityPrior(predcp.Exponential(mean=0.5), predcp.LinearEvidence(DESIGN))
    with pytest.raises(ValueError, match="holds no model of the data"):
        predcp.prior_predictive(evidence, key, 3)
    drawn = predcp.prior_predictive(
        evidence, key, 4000, lambda tau, key: jnp.sqrt(tau) * jax.random.normal(key)
    )
    expected = np.mean(np.asarray(evidence.sample(jax.random.key(9), (200_000,))))
    np.testing.assert_allclose(np.var(drawn), expected, rtol=0.2)


def test_the_papers_algorithm_hardly_moves():
    complexity = predcp.LinearEvidence(1.0)
    kappa = jnp.asarray([0.01, 2.0, 100.0])
    left = np.abs(complexity(predcp.paper.algorithm_1(complexity, kappa)) - kappa) / kappa
    assert np.all(left > 0.25)
    solved = np.abs(complexity(complexity.inv(kappa)) - kappa) / kappa
    assert np.all(solved < 1e-14)
    many = predcp.paper.algorithm_1(complexity, kappa, step_size=0.5, steps=200)
    np.testing.assert_allclose(many, complexity.inv(kappa), rtol=1e-6)


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda p: predcp.marginal("p", 1.0), "prior must be a distribution"),
        (lambda p: predcp.marginal(p, np.nan), "beta must be finite"),
        (lambda p: predcp.shrinkage_profile(p, 1.5), "shrinkage must lie"),
        (lambda p: predcp.prior_predictive(dist.HalfCauchy(1.0), None, 1), "ComplexityPrior"),
    ],
)
def test_bad_arguments_are_named(call, message):
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.LinearEvidence(1.0))
    with pytest.raises(ValueError, match=message):
        call(prior)
