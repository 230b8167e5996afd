"""Complexity priors as distributions of PyMC; run by `make test-pymc`."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats
from tests.exports import posteriors

import predcp

pm = pytest.importorskip("pymc", reason="the extra `pymc` is not installed")
from predcp.bridges import _pymc_process  # noqa: E402
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

LAYERS = predcp.ComplexityPrior(
    predcp.LogCauchy(scale=1.0),
    predcp.DepthComplexity(
        RANDOM.normal(size=(6, 4)), RANDOM.normal(size=(4, 3, 4, 4)), RANDOM.normal(size=(4, 1))
    ),
)
LINEAR = predcp.LinearEvidence(jnp.ones((3, 1)))
# Each of two scales has its own pi; three scales given those before them; a pi that is not ours.
SEVERAL = {
    "several": predcp.ComplexityPrior(predcp.HalfCauchy(jnp.array([0.3, 2.0])), LINEAR),
    "ordered": LAYERS,
    "another pi": predcp.ComplexityPrior(dist.LogNormal(), LINEAR),
    "several maps": predcp.ComplexityPrior(
        predcp.GammaExponential(weight=jnp.array([0.3, 0.6])),
        predcp.LinearEvidence(jnp.ones((2, 3, 1)) * jnp.array([1.0, 5.0])[:, None, None]),
    ),
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
    with pytest.raises(ValueError, match="prior must be a ComplexityPrior"):
        bridge.dist(dist.HalfNormal())
    with pytest.raises(ValueError, match="prior must be of positive scales"):
        bridge.dist(predcp.ComplexityPrior(PIS["gamma"], predcp.CoefficientEvidence(1.0)))
    with pm.Model(), pytest.raises(ValueError, match="depend on each other: use scale"):
        bridge.named_dist("tau", LAYERS)


def test_quantiles_of_a_scale_and_of_its_logarithm():
    prior = predcp.ComplexityPrior(PIS["log-cauchy"], COUNT_MAP)
    q = np.array([0.01, 0.3, 0.99])
    wanted = np.asarray(prior.icdf(jnp.asarray(q)))
    np.testing.assert_allclose(pm.icdf(bridge.dist(prior), q).eval(), wanted, rtol=1e-6)
    with pm.Model() as model:
        bridge.scale("tau", prior, shape=3)
    found = pm.icdf(model["log_tau"], q).eval()
    np.testing.assert_allclose(found, np.log(wanted), rtol=0, atol=1e-6)


def test_log_densities_of_the_prior_are_kept_for_power_scaling():
    prior = predcp.ComplexityPrior(PIS["half-cauchy"], COUNT_MAP)
    with pm.Model():
        tau = bridge.scale("tau", prior)
        pm.Normal("y", 0.0, tau, observed=np.ones(3))
        drawn = pm.sample_prior_predictive(50, random_seed=0)
        if hasattr(drawn, "children"):
            draws = type(drawn).from_dict({"posterior": drawn.prior.to_dataset()})
        else:  # ArviZ before 1.0
            draws = type(drawn)(posterior=drawn.prior)
        draws = pm.stats.compute_log_prior(draws, progressbar=False)
    log_tau = jnp.asarray(draws.posterior["log_tau"].to_numpy())
    wanted = np.asarray(prior.log_scale().log_prob(log_tau))
    np.testing.assert_allclose(draws.log_prior["log_tau"], wanted, rtol=0, atol=1e-7)


def test_samplers_start_at_the_median():
    prior = predcp.ComplexityPrior(PIS["gamma"], COIN_MAP)
    with pm.Model() as model:
        bridge.scale("tau", prior, shape=2)
        bridge.named_dist("other", prior)
    point = model.initial_point()
    median = float(prior.icdf(jnp.asarray(0.5)))
    np.testing.assert_allclose(np.exp(point["log_tau"]), [median, median], rtol=1e-6)
    np.testing.assert_allclose(np.exp(point["other_log__"]), median, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
@pytest.mark.parametrize("name", SEVERAL)
def test_priors_of_several_scales_and_of_other_pi_are_the_same_in_pymc(name):
    prior = SEVERAL[name]
    log_prior = prior.log_scale()
    [count] = prior.shape() or (1,)
    with pm.Model(coords={"part": range(count)}) as model:
        bridge.scale("tau", prior, dims="part")
        drawn = pm.sample_prior_predictive(400, random_seed=1).prior["tau"]
    median = np.broadcast_to(log_prior.icdf(jnp.full(prior.shape(), 0.5)), count)
    np.testing.assert_allclose(model.initial_point()["log_tau"], median, rtol=1e-6)
    assert drawn.dims[-1] == "part" and drawn.shape[-1] == count
    # The first scale depends on no other: half of its draws are below the median.
    below = np.mean(np.log(np.asarray(drawn)[0, :, 0]) < median[0])
    assert abs(below - 0.5) < 0.1  # four standard deviations

    log_tau = median + np.linspace(-1.0, 2.0, count)
    together = jax.value_and_grad(lambda each: jnp.sum(log_prior.log_prob(each)))
    wanted, slopes = jax.jit(together)(jnp.asarray(log_tau))
    point = {"log_tau": log_tau}
    # Tables are right to 1e-8 in the log density.
    np.testing.assert_allclose(model.compile_logp()(point), wanted, rtol=0, atol=1e-7)
    np.testing.assert_allclose(model.compile_dlogp()(point), slopes, rtol=1e-6, atol=1e-7)
    scale, tau = bridge.dist(prior), np.exp(log_tau).reshape(prior.shape())
    found = pm.logp(scale, tau).eval()
    np.testing.assert_allclose(found, prior.log_prob(jnp.asarray(tau)), rtol=0, atol=1e-7)
    if not prior.event_shape:
        q = np.full(prior.shape(), 0.3)
        found = pm.icdf(scale, q).eval()
        np.testing.assert_allclose(found, prior.icdf(jnp.asarray(q)), rtol=1e-6)


SAMPLING = """
import numpy as np, numpyro.distributions as dist, pymc as pm, predcp
from predcp.bridges import pymc as bridge
linear = predcp.LinearEvidence(np.ones((3, 1)))
with pm.Model():
    tau = bridge.scale("tau", predcp.ComplexityPrior({pi}, linear))
    pm.Normal("y", 0.0, tau{index}, observed=np.ones(3))
    found = pm.sample(20, tune=20, chains=2, cores=2, nuts_sampler="pymc", progressbar=False, random_seed=1)
assert found.posterior["tau"].shape[:2] == (2, 20)
print("sampled")
"""


def sampled_with_two_processes(**given):
    """A program that samples, in a process of its own that may not take long."""
    program = SAMPLING.format(**given)
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=240.0)


@pytest.mark.long
def test_several_scales_are_sampled_by_two_processes():
    done = sampled_with_two_processes(pi="predcp.HalfCauchy(np.array([0.3, 2.0]))", index="[0]")
    assert "sampled" in done.stdout, done.stderr


@pytest.mark.long
def test_a_prior_that_calls_jax_says_how_to_sample_instead_of_hanging():
    done = sampled_with_two_processes(pi="dist.LogNormal()", index="")
    assert done.returncode and "cannot run in a forked process" in done.stderr


def test_a_prior_that_calls_jax_refuses_to_run_in_a_forked_process(monkeypatch):
    with pm.Model() as model:
        bridge.scale("tau", SEVERAL["another pi"])
    function, point = model.compile_dlogp(), {"log_tau": np.zeros(())}
    function(point)
    monkeypatch.setattr(_pymc_process, "_PROCESS", -1)
    with pytest.raises(RuntimeError, match="cannot run in a forked process: sample with cores=1"):
        function(point)


def test_a_prior_that_calls_jax_says_that_it_has_no_second_derivatives():
    with pm.Model() as model:
        bridge.scale("tau", SEVERAL["another pi"])
    with pytest.raises(NotImplementedError, match="has no second derivatives"):
        model.d2logp()


@pytest.mark.parametrize("name", ["table", "several"])
def test_draws_refuse_to_run_in_a_forked_process(name, monkeypatch):
    """Sequential Monte Carlo draws from the prior in its processes."""
    table = predcp.ComplexityPrior(PIS["half-cauchy"], LINEAR)
    drawn = bridge.dist({"table": table, **SEVERAL}[name])
    monkeypatch.setattr(_pymc_process, "_PROCESS", -1)
    with pytest.raises(RuntimeError, match="a draw of this prior calls JAX, which cannot run"):
        pm.draw(drawn, random_seed=0)


@pytest.mark.long
@pytest.mark.parametrize("name", posteriors.EXAMPLES)
def test_pymc_finds_the_posterior_that_numpyro_finds(name):
    example = posteriors.EXAMPLES[name]
    apart = posteriors.differences(posteriors.in_pymc(example), posteriors.in_numpyro(example))
    assert np.max(np.abs(apart)) < posteriors.farthest_of(apart.size), apart


@pytest.mark.long
@pytest.mark.parametrize("sampler", ["nutpie", "numpyro", "blackjax"])
def test_every_sampler_of_pymc_finds_the_posterior_of_numpyro(sampler):
    pytest.importorskip(sampler)
    example = posteriors.EXAMPLES["poisson"]
    found = posteriors.in_pymc(example, sampler=sampler)
    apart = posteriors.differences(found, posteriors.in_numpyro(example))
    assert np.max(np.abs(apart)) < posteriors.farthest_of(apart.size), apart
