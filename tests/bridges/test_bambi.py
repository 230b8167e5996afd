"""Bambi models: their audit, and priors on their scales from one sentence; run by `make test-bambi`."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats
from tests.exports import posteriors

import predcp

bmb = pytest.importorskip("bambi", reason="the extra `bambi` is not installed")
import pandas as pd  # noqa: E402
import pymc as pm  # noqa: E402
from numpyro import handlers  # noqa: E402

from predcp.bridges import bambi as bridge  # noqa: E402
from predcp.bridges import pymc as graphs  # noqa: E402

RANDOM = np.random.default_rng(1)
GROUP = np.repeat(np.arange(6), 4)
DATA = pd.DataFrame({"g": GROUP.astype(str), "x": RANDOM.normal(size=24)})
DATA["y"] = RANDOM.binomial(1, 0.4, 24)
REST = {"Intercept": 0.3, "x": -0.2}
# The family, what rest it has besides, and its observations given the linear predictor.
FAMILIES = {
    "gaussian": ({"sigma": 1.5}, lambda eta: dist.Normal(eta, 1.5)),
    "poisson": ({}, lambda eta: dist.Poisson(jnp.exp(eta))),
    "bernoulli": ({}, lambda eta: dist.Bernoulli(logits=eta)),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_map_of_a_group_is_that_of_the_model_by_hand(family):
    rest, likelihood = FAMILIES[family]
    model = bmb.Model("y ~ x + (1|g)", DATA, family=family)
    model.build()
    # Bambi centres x where there is an intercept.
    centred = (DATA["x"] - DATA["x"].mean()).to_numpy()

    def by_hand():
        sigma = numpyro.sample("1|g_sigma", dist.HalfNormal(1.0))
        z = numpyro.sample("1|g_offset", dist.Normal().expand([6]))
        eta = REST["Intercept"] + REST["x"] * centred + (sigma * z)[GROUP]
        numpyro.sample("y", likelihood(eta), obs=DATA["y"].to_numpy())

    options = {"noise_draws": 4, "method": "plain"}
    found = graphs.complexity_of(model.backend.model, "1|g_sigma", rest=REST | rest, **options)
    wanted = predcp.complexity_of(by_hand, "1|g_sigma", **options)
    log_tau = jnp.log(jnp.geomspace(1e-3, 30.0, 9))
    for one, other in zip(
        found.log_value_and_elasticity(log_tau), wanted.log_value_and_elasticity(log_tau)
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def test_logits_are_read_behind_bambis_guards_of_probabilities():
    model = bmb.Model("y ~ x + (1|g)", DATA, family="bernoulli")
    model.build()
    program = handlers.seed(graphs.program(model.backend.model), 0)
    trace = handlers.trace(program).get_trace()
    assert isinstance(trace["y"]["fn"], dist.BernoulliLogits)
    # Bambi keeps the probability, too.
    np.testing.assert_allclose(trace["y"]["fn"].probs, trace["p"]["value"], rtol=1e-12)


def test_one_sentence_makes_the_prior_of_a_group():
    automatic = bmb.Model("y ~ x + (1|g)", DATA, family="bernoulli")
    before = bridge.audit(automatic, noise_draws=4, samples=64)
    assert "1|g_sigma" in [each.scale for each in before]
    sentence = predcp.tail(scale=0.5, probability=0.05)
    sigma = bridge.prior(automatic, "1|g_sigma", sentence, noise_draws=4, method="plain")
    effects = bmb.Prior("Normal", mu=0, sigma=sigma)
    model = bmb.Model("y ~ x + (1|g)", DATA, family="bernoulli", priors={"1|g": effects})
    model.build()
    drawn = np.ravel(pm.draw(model.backend.model["1|g_sigma"], 2000, random_seed=0))
    # Of 2000 draws 100 are beyond; ten more or fewer is one standard deviation.
    assert 60 < np.sum(drawn > 0.5) < 140
    logp = model.backend.model.compile_logp()
    assert np.isfinite(logp(model.backend.model.initial_point()))


def test_a_prior_made_by_hand_keeps_its_distribution():
    prior = posteriors.prior_of(posteriors.EXAMPLES["poisson"])
    effects = bmb.Prior("Normal", mu=0, sigma=bridge.prior(prior))
    model = bmb.Model("y ~ 1 + (1|g)", DATA, family="poisson", priors={"1|g": effects})
    model.build()
    drawn = pm.draw(model.backend.model["1|g_sigma"], 1000, random_seed=0)
    assert stats.kstest(np.ravel(drawn), lambda v: np.asarray(prior.cdf(v))).pvalue > 1e-3


def test_a_scale_of_a_common_term_takes_a_prior():
    term = "hsgp(x, m=6, c=1.5)"
    model = bmb.Model(f"y ~ 1 + {term}", DATA.assign(y=RANDOM.normal(size=24)))
    model.build()
    fixed = {"sigma": 1.0, f"{term}_ell": 0.3, "Intercept": 0.0}
    options = {"rest": fixed, "noise_draws": 2, "method": "plain"}
    pi = predcp.HalfCauchy(0.4)
    sigma = bridge.prior(model, f"{term}_sigma", pi, **options)
    length = bmb.Prior("InverseGamma", alpha=3, beta=1)
    stated = bmb.Model(model.formula, model.data, priors={term: {"sigma": sigma, "ell": length}})
    stated.build()
    found = stated.backend.model
    prior = graphs.prior_of(model.backend.model, f"{term}_sigma", pi, **options)
    tau = np.array([0.01, 0.5, 3.0])
    density = pm.logp(found[f"{term}_sigma"], tau).eval()
    np.testing.assert_allclose(density, prior.log_prob(jnp.asarray(tau)), rtol=0, atol=1e-6)
    assert np.isfinite(found.compile_logp()(found.initial_point()))


def test_what_it_cannot_take_is_refused():
    on_variance = predcp.ComplexityPrior(
        predcp.HalfCauchy(0.4), predcp.LinearEvidence(jnp.ones((3, 1)))
    )
    with pytest.raises(ValueError, match="source must be on a standard deviation"):
        bridge.prior(on_variance)
    with pytest.raises(ValueError, match="source must be a bambi.Model or a ComplexityPrior"):
        bridge.prior(dist.HalfNormal())
    model = bmb.Model("y ~ x + (1|g)", DATA, family="poisson")
    with pytest.raises(ValueError, match="needs scale, a name, and statement"):
        bridge.prior(model)
    with pytest.raises(ValueError, match="model must be a bambi.Model"):
        bridge.audit(pm.Model())
