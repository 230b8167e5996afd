"""Complexity priors in PyMC and Bambi; run by `make test-pymc`."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import predcp

pm = pytest.importorskip("pymc", reason="the extra `pymc` is not installed")
from predcp.bridges import pymc as bridge  # noqa: E402

GROUPS = np.repeat(np.arange(8), 5)
RANDOM = np.random.default_rng(1)
EFFECTS = 0.7 * RANDOM.normal(size=8)
COUNTS = RANDOM.poisson(np.exp(EFFECTS[GROUPS]))
PIS = {
    "log-cauchy": predcp.LogCauchy(scale=0.7, loc=-1.0),
    "half-cauchy": predcp.HalfCauchy(0.4),
    "exponential": predcp.Exponential(mean=0.3),
    "gamma": predcp.Gamma(shape=0.4, scale=1.5),
    "mixture": predcp.GammaExponential(weight=0.3),
}


def effects(family):
    noise = predcp.normal_noise(jax.random.key(0), 32, (8,))
    return predcp.PredictiveComplexity(
        lambda theta, g: family(theta[g]),
        lambda tau, xi: tau * xi,
        jnp.zeros(8),
        jnp.arange(8),
        noise,
        unit="standard deviation",
    )


COUNT_MAP = effects(lambda eta: dist.Poisson(jnp.exp(eta)))
COIN_MAP = effects(lambda eta: dist.Bernoulli(logits=eta))


@pytest.mark.parametrize("pi", PIS)
@pytest.mark.parametrize("complexity", [COUNT_MAP, COIN_MAP], ids=["unbounded", "bounded"])
def test_densities_and_gradients_are_the_priors(pi, complexity):
    prior = predcp.ComplexityPrior(PIS[pi], complexity)
    log_tau = np.linspace(-30.0, 12.0, 121)
    wanted = np.asarray(prior.log_scale().log_prob(jnp.asarray(log_tau)))
    slopes = np.asarray(jax.vmap(jax.grad(prior.log_scale().log_prob))(jnp.asarray(log_tau)))
    counted = wanted > wanted.max() - 100.0
    with pm.Model() as model:
        bridge.scale("tau", prior, shape=log_tau.size)
    point = {"log_tau": log_tau}
    each = model.compile_fn(model.logp(vars=model.free_RVs, sum=False)[0])(point)
    np.testing.assert_allclose(each[counted], wanted[counted], rtol=0, atol=1e-7)
    got = model.compile_dlogp()(point)
    np.testing.assert_allclose(got[counted], slopes[counted], rtol=1e-5, atol=1e-6)
    scale = bridge.dist(prior)
    tau = np.exp(log_tau[counted][20:50])
    density = pm.logp(scale, tau).eval()
    np.testing.assert_allclose(density, prior.log_prob(jnp.asarray(tau)), rtol=0, atol=1e-7)
    assert pm.logp(scale, -1.0).eval() == -np.inf


def test_draws_have_the_distribution():
    prior = predcp.ComplexityPrior(PIS["half-cauchy"], COUNT_MAP)
    drawn = pm.draw(bridge.dist(prior), 2000, random_seed=3)
    assert stats.kstest(drawn, lambda v: np.asarray(prior.cdf(v))).pvalue > 1e-3
    with pm.Model(coords={"site": ["a", "b"]}):
        bridge.scale("tau", prior, dims="site")
        found = pm.sample_prior_predictive(500, random_seed=1)
    tau = np.asarray(found.prior["tau"])
    assert found.prior["tau"].dims[-1] == "site" and tau.shape[-1] == 2
    assert stats.kstest(tau[..., 0].ravel(), lambda v: np.asarray(prior.cdf(v))).pvalue > 1e-3


def test_what_it_cannot_take_is_refused():
    linear = predcp.LinearEvidence(jnp.ones((3, 1)))
    with pytest.raises(ValueError, match="prior must be a ComplexityPrior"):
        bridge.dist(dist.HalfNormal())
    with pytest.raises(ValueError, match="of one positive scale"):
        bridge.dist(predcp.ComplexityPrior(predcp.HalfCauchy(jnp.ones(2)), linear))
    with pytest.raises(ValueError, match="pi must be LogCauchy"):
        bridge.dist(predcp.ComplexityPrior(dist.LogNormal(), linear))


def numpyro_draws(prior):
    def model():
        log_tau = numpyro.sample("log_tau", prior.tabulated().log_scale())
        z = numpyro.sample("z", dist.Normal().expand([8]).to_event(1))
        rate = jnp.exp(jnp.exp(log_tau) * z[GROUPS])
        numpyro.sample("y", dist.Poisson(rate), obs=jnp.asarray(COUNTS))

    kernel = numpyro.infer.NUTS(model, target_accept_prob=0.95)
    mcmc = numpyro.infer.MCMC(
        kernel, num_warmup=1000, num_samples=1500, num_chains=4, progress_bar=False
    )
    mcmc.run(jax.random.key(0))
    return np.asarray(mcmc.get_samples(group_by_chain=True)["log_tau"])


@pytest.mark.long
@pytest.mark.parametrize("sampler", ["pymc", "nutpie", "numpyro", "blackjax"])
def test_every_sampler_of_pymc_finds_the_posterior_of_numpyro(sampler):
    if sampler != "pymc":
        pytest.importorskip(sampler)
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0, loc=-2.0), COUNT_MAP)
    with pm.Model():
        tau = bridge.scale("tau", prior)
        z = pm.Normal("z", shape=8)
        pm.Poisson("y", pm.math.exp(tau * z[GROUPS]), observed=COUNTS)
        found = pm.sample(
            1500,
            tune=1000,
            chains=4,
            cores=1,
            target_accept=0.95,
            nuts_sampler=sampler,
            progressbar=False,
            random_seed=2,
        )
    theirs = np.asarray(found.posterior["log_tau"])
    ours = numpyro_draws(prior)
    for q in (0.1, 0.5, 0.9):
        # Forty batches of 150 draws: their spread is the Monte Carlo error of their mean.
        each = [np.quantile(chains.reshape(40, -1), q, axis=1) for chains in (ours, theirs)]
        error = np.hypot(*(np.std(values, ddof=1) / np.sqrt(40) for values in each))
        assert abs(each[0].mean() - each[1].mean()) < 3.0 * error, (q, error)


def test_bambi_takes_a_prior_for_a_group():
    bmb = pytest.importorskip("bambi", reason="the extra `bambi` is not installed")
    pandas = pytest.importorskip("pandas")
    from predcp.bridges.bambi import prior as bambi_prior

    prior = predcp.ComplexityPrior(predcp.HalfCauchy(0.4), COUNT_MAP)
    data = pandas.DataFrame({"y": COUNTS, "g": GROUPS.astype(str)})
    effect = bmb.Prior("Normal", mu=0, sigma=bambi_prior(prior))
    model = bmb.Model("y ~ 1 + (1|g)", data, family="poisson", priors={"1|g": effect})
    model.build()
    name = next(rv.name for rv in model.backend.model.free_RVs if rv.name.endswith("_sigma"))
    drawn = pm.draw(model.backend.model[name], 1000, random_seed=0)
    assert stats.kstest(np.ravel(drawn), lambda v: np.asarray(prior.cdf(v))).pvalue > 1e-3
    on_variance = predcp.ComplexityPrior(
        predcp.HalfCauchy(0.4), predcp.LinearEvidence(jnp.ones((3, 1)))
    )
    with pytest.raises(ValueError, match="on a standard deviation"):
        bambi_prior(on_variance)
