"""Priors on a divergence: fifty digits, quantiles, draws, tails."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats
from tests.oracle import PRIORS, cdf, log_pi, relative_error

import predcp

QUANTILES = jnp.asarray([1e-3, 0.01, 0.2, 0.5, 0.8, 0.99, 0.999])


@pytest.mark.parametrize("name", PRIORS)
def test_density_and_cdf_match_fifty_digits(name):
    pi = PRIORS[name]
    points = np.logspace(-40, 2.3, 30)
    for kappa, density, below in zip(points, pi.log_prob(points), pi.cdf(points)):
        exact = mp.mpf(float(kappa))
        assert relative_error(density, log_pi(name, exact)) < 1e-13
        assert relative_error(below, cdf(name, exact)) < 1e-12


@pytest.mark.parametrize("name", PRIORS)
def test_quantiles_invert_the_cdf(name):
    pi = PRIORS[name]
    log_kappa = pi.icdf_log(QUANTILES)
    np.testing.assert_allclose(np.exp(pi.log_cdf_log(log_kappa)), QUANTILES, rtol=1e-12)
    np.testing.assert_allclose(np.exp(pi.log_survival_log(log_kappa)), 1.0 - QUANTILES, rtol=1e-10)


@pytest.mark.parametrize("name", PRIORS)
def test_draws_have_the_distribution(name):
    pi = PRIORS[name]
    draws = pi.sample_log(jax.random.key(3), (20_000,))
    uniform = np.exp(pi.log_cdf_log(draws))
    assert scipy.stats.kstest(uniform, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", PRIORS)
def test_draws_are_differentiable_in_every_parameter(name):
    pi = PRIORS[name]
    leaves, structure = jax.tree.flatten(pi)
    key = jax.random.key(1)

    def mean_draw(leaves):
        return jnp.mean(jnp.tanh(jax.tree.unflatten(structure, leaves).sample_log(key, (3000,))))

    def mean_by_quantiles(leaves):
        moved = jax.tree.unflatten(structure, leaves)
        q = (jnp.arange(300) + 0.5) / 300
        return jnp.mean(jnp.tanh(moved.icdf_log(q)))

    got = jax.jit(jax.grad(mean_draw))(leaves)
    mean_by_quantiles = jax.jit(mean_by_quantiles)
    for index, derivative in enumerate(got):
        step = [1e-5 * (i == index) for i in range(len(leaves))]
        ahead = mean_by_quantiles([a + s for a, s in zip(leaves, step)])
        behind = mean_by_quantiles([a - s for a, s in zip(leaves, step)])
        np.testing.assert_allclose(derivative, (ahead - behind) / 2e-5, rtol=0.1, atol=0.02)


@pytest.mark.parametrize(
    "family",
    [
        predcp.LogCauchy,
        predcp.HalfCauchy,
        predcp.Exponential,
        predcp.Gamma,
        predcp.GammaExponential,
    ],
)
@pytest.mark.parametrize("upper,probability", [(0.1, 0.05), (3.0, 0.5), (1e-3, 0.9), (2.0, 1e-12)])
def test_from_tail_keeps_its_word(family, upper, probability):
    pi = family.from_tail(upper=upper, probability=probability)
    got = np.exp(pi.log_survival_log(jnp.log(upper)))
    np.testing.assert_allclose(got, probability, rtol=1e-11)


def test_gamma_is_normalised_where_the_paper_is_not():
    kappa = np.linspace(1e-9, 200, 4_000_001) ** 1.0
    pi = predcp.Gamma(shape=2.5, scale=3.0)
    np.testing.assert_allclose(np.trapezoid(np.exp(pi.log_prob(kappa)), kappa), 1.0, rtol=1e-6)
    np.testing.assert_allclose(
        pi.log_prob(4.0), scipy.stats.gamma(2.5, scale=3.0).logpdf(4.0), rtol=1e-12
    )


def test_batches_broadcast():
    pi = predcp.Gamma(shape=jnp.asarray([0.2, 1.0, 3.0]), scale=jnp.asarray([[1.0], [2.0]]))
    assert pi.batch_shape == (2, 3)
    assert pi.sample(jax.random.key(0), (5,)).shape == (5, 2, 3)
    np.testing.assert_allclose(pi.cdf(pi.icdf(0.3 * jnp.ones((2, 3)))), 0.3, rtol=1e-12)


def test_another_distribution_is_accepted_and_a_wrong_one_refused():
    prior = predcp.ComplexityPrior(dist.LogNormal(0.0, 1.0), predcp.LinearEvidence(1.0))
    tau = jnp.asarray(1.7)
    kappa = (tau - jnp.log1p(tau)) / 2
    expected = dist.LogNormal(0.0, 1.0).log_prob(kappa) + jnp.log(tau / (1 + tau) / 2)
    np.testing.assert_allclose(prior.log_prob(tau), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="pi must be a distribution of positive numbers.*Normal"):
        predcp.ComplexityPrior(dist.Normal(0.0, 1.0), predcp.LinearEvidence(1.0))
    with pytest.raises(ValueError, match="pi must be a distribution"):
        predcp.ComplexityPrior(1.0, predcp.LinearEvidence(1.0))


@pytest.mark.parametrize(
    "make,message",
    [
        (lambda: predcp.LogCauchy(scale=-1.0), "scale must be positive"),
        (lambda: predcp.LogCauchy(scale=1.0, loc=np.nan), "loc must be finite"),
        (lambda: predcp.Gamma(shape=0.0, scale=1.0), "shape must be positive"),
        (lambda: predcp.Exponential(mean=0.0), "mean must be positive"),
        (lambda: predcp.GammaExponential(weight=1.5), "weight must be strictly between 0 and 1"),
        (lambda: predcp.LogCauchy.from_tail(0.1, 1.2), "probability must be strictly between"),
        (lambda: predcp.HalfCauchy.from_tail(-0.1, 0.2), "upper must be positive"),
        (lambda: predcp.HalfCauchy("wide"), "scale must be numbers"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
