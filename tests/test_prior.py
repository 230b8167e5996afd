"""The prior as a NumPyro distribution: mass, quantiles, draws, models, batches, gradients."""

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.contrib.control_flow import scan
from numpyro.infer import MCMC, NUTS, Predictive
from numpyro.infer.util import constrain_fn, initialize_model, potential_energy

import predcp
from tests.catalogue import (
    DESIGN,
    NOISE,
    SCALAR_MAPS,
    VECTOR_MAPS,
    coin,
    names,
    scaled,
)
from tests.oracle import PRIORS


def priors_for(map_name):
    """Every pi on one map, the heaviest on the others: a map does not know which pi it has."""
    chosen = PRIORS if map_name == "linear" else ("log-cauchy",)
    if getattr(SCALAR_MAPS[map_name](), "logarithmic", False):
        # Divergences that grow as log tau: a log-Cauchy of them has no last scale to integrate to.
        chosen = ("gamma",)
    return {name: PRIORS[name] for name in chosen}


@pytest.mark.parametrize("map_name", names(SCALAR_MAPS, costly=("coin",)))
def test_density_integrates_to_the_cdf(map_name):
    complexity = SCALAR_MAPS[map_name]()
    for name, pi in priors_for(map_name).items():
        prior = predcp.ComplexityPrior(pi, complexity).log_scale()
        ends = np.asarray(prior.icdf(jnp.asarray([0.02, 0.3, 0.75, 0.98])))
        nodes, weights = np.polynomial.legendre.leggauss(60)
        for low, high in pairwise(ends):
            # Sixty nodes on each of forty panels.
            edges = np.linspace(low, high, 41)
            half = np.diff(edges) / 2
            points = (edges[:-1] + half)[:, None] + half[:, None] * nodes
            density = np.exp(prior.log_prob(points.reshape(-1))).reshape(points.shape)
            mass = np.sum(half[:, None] * weights * density)
            expected = prior.cdf(high) - prior.cdf(low)
            np.testing.assert_allclose(mass, expected, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("map_name", names(SCALAR_MAPS, costly=("coin",)))
def test_cdf_runs_from_zero_to_one_and_quantiles_invert_it(map_name):
    complexity = SCALAR_MAPS[map_name]()
    for pi in priors_for(map_name).values():
        prior = predcp.ComplexityPrior(pi, complexity)
        # Arrays of one size throughout: one program for each function.
        np.testing.assert_array_equal(prior.cdf(jnp.zeros(5)), 0.0)
        ends = prior.log_scale().cdf(jnp.asarray([-1e7, 1e7]))
        np.testing.assert_allclose(ends, [0.0, 1.0], atol=2e-6)
        q = jnp.asarray([0.02, 0.1, 0.5, 0.9, 0.98])
        tau = prior.icdf(q)
        np.testing.assert_allclose(prior.cdf(tau), q, rtol=1e-11)
        np.testing.assert_allclose(prior.icdf(prior.cdf(tau)), tau, rtol=1e-10)
        np.testing.assert_allclose(prior.survival(tau), 1.0 - q, rtol=1e-10)


@pytest.mark.parametrize("map_name", names(VECTOR_MAPS))
def test_vectors_of_scales_invert_entry_by_entry(map_name):
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=0.5), VECTOR_MAPS[map_name]())
    size = prior.event_shape[0]
    q = jax.random.uniform(jax.random.key(0), (6, size), minval=0.1, maxval=0.8)
    tau = prior.icdf(q)
    assert tau.shape == (6, size)
    np.testing.assert_allclose(prior.cdf(tau), q, rtol=1e-9)
    draws = prior.sample(jax.random.key(1), (4,))
    assert draws.shape == (4, size) and prior.log_prob(draws).shape == (4,)
    assert np.all(np.isfinite(prior.log_prob(tau)))


@pytest.mark.parametrize(
    "map_name,pi",
    [*(("linear", pi) for pi in PRIORS), ("coin", "log-cauchy"), ("logistic", "half-cauchy")],
)
def test_draws_have_the_distribution(map_name, pi):
    prior = predcp.ComplexityPrior(PRIORS[pi], SCALAR_MAPS[map_name]()).log_scale()
    draws = prior.sample(jax.random.key(5), (10_000,))
    assert scipy.stats.kstest(np.asarray(prior.cdf(draws)), "uniform").pvalue > 1e-3


def test_a_model_draws_its_scale_from_the_prior():
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), SCALAR_MAPS["coin"]()).log_scale()

    def model():
        numpyro.sample("log_tau", prior)

    drawn = Predictive(model, num_samples=3)(jax.random.key(0))["log_tau"]
    assert drawn.shape == (3,) and np.isfinite(drawn).all()
    # NumPyro names the argument outside a vectorised program.
    assert prior.sample(jax.random.key(0), sample_shape=(2,)).shape == (2,)
    numpyro.handlers.seed(model, 0)()


def test_a_million_draws_use_the_table_and_stay_exact():
    complexity = predcp.LinearEvidence(DESIGN)
    log_kappa = predcp.LogCauchy(scale=1.0).sample_log(jax.random.key(0), (100_000,))
    log_tau = complexity.log_inverse(log_kappa)
    back, _ = complexity.log_value_and_slope(log_tau)
    np.testing.assert_allclose(back, log_kappa, rtol=1e-12, atol=1e-10)


def test_truncation_makes_the_prior_proper():
    complexity = SCALAR_MAPS["coin"]()
    as_printed = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity, truncate=False)
    proper = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity)
    np.testing.assert_allclose(as_printed.cdf(1e30), 0.388, atol=5e-4)
    np.testing.assert_allclose(proper.cdf(1e30), 1.0, atol=1e-12)
    gap = proper.log_prob(0.3) - as_printed.log_prob(0.3)
    np.testing.assert_allclose(gap, -np.log(as_printed.cdf(1e30)), rtol=1e-10)
    lost = as_printed.sample(jax.random.key(0), (4000,))
    np.testing.assert_allclose(np.isinf(lost).mean(), 1 - 0.388, atol=0.03)
    assert np.all(np.isfinite(proper.sample(jax.random.key(0), (4000,))))


def test_a_pi_without_cdf_cannot_be_truncated():
    class Bare(dist.Distribution):
        support = dist.constraints.positive

        def log_prob(self, value, intermediates=None):
            return -value

    with pytest.raises(ValueError, match=r"Bare has no cdf.*truncate=False"):
        predcp.ComplexityPrior(Bare(), SCALAR_MAPS["coin"]())
    free = predcp.ComplexityPrior(Bare(), SCALAR_MAPS["coin"](), truncate=False)
    assert np.isfinite(free.log_prob(0.5))


def test_the_coefficient_prior_is_symmetric_and_proper():
    complexity = predcp.CoefficientEvidence(1.0, 1.0, 0.5)
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity)
    beta = jnp.asarray([0.1, 1.0, 7.0])
    np.testing.assert_allclose(prior.log_prob(beta), prior.log_prob(-beta))
    np.testing.assert_allclose(prior.cdf(beta) + prior.cdf(-beta), 1.0, rtol=1e-14)
    np.testing.assert_allclose(prior.icdf(prior.cdf(-beta)), -beta, rtol=1e-10)
    kappa = beta**2 / (2 * 1.25)
    expected = 0.5 * np.exp(predcp.LogCauchy(scale=1.0).log_prob(kappa)) * beta / 1.25
    np.testing.assert_allclose(np.exp(prior.log_prob(beta)), expected, rtol=1e-12)
    draws = prior.sample(jax.random.key(0), (5000,))
    assert scipy.stats.kstest(np.asarray(prior.cdf(draws)), "uniform").pvalue > 1e-3
    assert 0.45 < np.mean(draws > 0) < 0.55
    with pytest.raises(ValueError, match="log scale"):
        prior.log_scale()


def test_the_modes_of_the_coefficient_prior_are_where_they_should_be():
    scale = 1.2
    prior = predcp.ComplexityPrior(
        predcp.LogCauchy(scale=scale), predcp.CoefficientEvidence(2.0, 0.7)
    )
    expected = np.sqrt(2) * 0.7 / 2.0 * np.exp(-1 + np.sqrt(1 - scale**2 / 4))
    slope = jax.jit(jax.grad(prior.log_prob))
    np.testing.assert_allclose(slope(expected), 0.0, atol=1e-10)
    assert slope(0.9 * expected) > 0 > slope(1.1 * expected)


def test_second_mode_of_the_log_cauchy_evidence_prior():
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.LinearEvidence(1.0))
    tau = jnp.linspace(1.0, 4.0, 30_001)
    density = np.exp(prior.log_prob(tau))
    np.testing.assert_allclose(tau[np.argmax(density)], 2.455, atol=1e-3)
    np.testing.assert_allclose(density.max(), 0.149, atol=5e-4)


def test_penalised_complexity_is_an_exponential_on_the_standard_deviation():
    prior = predcp.ComplexityPrior(
        predcp.Exponential.from_tail(upper=2.0, probability=0.01), predcp.PenalisedComplexity()
    )
    np.testing.assert_allclose(prior.survival(4.0), 0.01, rtol=1e-12)
    sd = jnp.asarray(0.7)
    expected = dist.Exponential(-np.log(0.01) / 2.0).log_prob(sd) - jnp.log(2 * sd)
    np.testing.assert_allclose(prior.log_prob(sd**2), expected, rtol=1e-12)


def test_batches_expand_and_broadcast():
    design = jnp.asarray(np.random.default_rng(0).normal(size=(3, 1, 6, 2)))
    prior = predcp.ComplexityPrior(
        predcp.LogCauchy(scale=jnp.asarray([0.5, 1.0])), predcp.LinearEvidence(design)
    )
    assert prior.batch_shape == (3, 2)
    draws = prior.sample(jax.random.key(0), (7,))
    assert draws.shape == (7, 3, 2)
    density = prior.log_prob(draws)
    for row in range(3):
        for column, scale in enumerate((0.5, 1.0)):
            single = predcp.ComplexityPrior(
                predcp.LogCauchy(scale=scale), predcp.LinearEvidence(design[row, 0])
            )
            np.testing.assert_allclose(
                density[:, row, column], single.log_prob(draws[:, row, column]), rtol=1e-12
            )
    # Entries that share a pi are still drawn independently.
    assert len(np.unique(np.asarray(draws))) == draws.size
    single = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.LinearEvidence(DESIGN))
    wide = single.expand((4, 3))
    assert wide.sample(jax.random.key(0)).shape == (4, 3)
    assert wide.to_event(1).log_prob(jnp.ones((4, 3))).shape == (4,)


def test_draws_are_differentiable_in_pi_and_in_the_map():
    key = jax.random.key(2)

    def total(scale, noise):
        prior = predcp.ComplexityPrior(
            predcp.LogCauchy(scale=scale), predcp.LinearEvidence(DESIGN, noise)
        )
        return jnp.sum(jnp.tanh(prior.log_scale().sample(key, (50,))))

    slopes = jax.jit(jax.grad(total, (0, 1)))(0.7, 1.3)
    step = 1e-6
    np.testing.assert_allclose(
        slopes,
        [
            (total(0.7 + step, 1.3) - total(0.7 - step, 1.3)) / (2 * step),
            (total(0.7, 1.3 + step) - total(0.7, 1.3 - step)) / (2 * step),
        ],
        rtol=1e-6,
    )


def test_rebuilding_a_prior_never_retraces():
    traces = []

    @jax.jit
    def density(prior, tau):
        traces.append(None)
        return prior.log_prob(tau)

    for seed in range(3):
        draws = predcp.normal_noise(jax.random.key(seed), 4, (3,))
        complexity = predcp.PredictiveComplexity(
            coin, scaled, jnp.zeros(3), DESIGN * (seed + 1), draws
        )
        density(predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0 + seed), complexity), 0.5)
    assert len(traces) == 1


@pytest.mark.long
def test_nuts_recovers_the_prior_through_log_scale():
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=0.5), SCALAR_MAPS["coin"]())

    def model():
        numpyro.sample("log_tau", prior.log_scale())

    mcmc = MCMC(NUTS(model), num_warmup=500, num_samples=4000, progress_bar=False)
    mcmc.run(jax.random.key(0))
    uniform = prior.log_scale().cdf(mcmc.get_samples()["log_tau"])
    thinned = np.asarray(uniform)[::10]
    assert scipy.stats.kstest(thinned, "uniform").pvalue > 1e-3


def test_a_model_with_local_scales_plates_and_scan():
    x = DESIGN
    y = (x[:, 0] > 0).astype(float)

    def model():
        with numpyro.plate("columns", 3):
            local = numpyro.sample("local", dist.HalfCauchy(1.0))
            xi = numpyro.sample("xi", dist.Normal(0.0, 1.0))
        complexity = predcp.PredictiveComplexity(
            coin, lambda tau, noise: tau * local * noise, jnp.zeros(3), x, NOISE
        )
        tau = numpyro.sample("tau", predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity))
        with numpyro.plate("groups", 2):
            numpyro.sample(
                "group_tau",
                predcp.ComplexityPrior(predcp.Exponential(mean=1.0), predcp.LinearEvidence(x)),
            )

        def step(carry, _):
            prior = predcp.ComplexityPrior(predcp.Exponential(mean=1.0), predcp.LinearEvidence(x))
            return carry + numpyro.sample("walk", prior), carry

        scan(step, 0.0, jnp.arange(3))
        numpyro.sample("y", dist.Bernoulli(logits=x @ (tau * local * xi)), obs=y)

    # Compiled: NumPyro starts a chain one operation at a time, each of them a program.
    start = jax.jit(lambda key: initialize_model(key, model).param_info.z)(jax.random.key(0))
    potential = jax.jit(lambda position: potential_energy(model, (), {}, position))
    mcmc = MCMC(NUTS(potential_fn=potential), num_warmup=60, num_samples=60, progress_bar=False)
    mcmc.run(jax.random.key(0), init_params=start)
    samples = jax.jit(jax.vmap(partial(constrain_fn, model, (), {})))(mcmc.get_samples())
    assert samples["tau"].shape == (60,) and samples["group_tau"].shape == (60, 2)
    assert samples["walk"].shape == (60, 3)
    assert all(np.all(np.isfinite(value)) for value in samples.values())
    drawn = Predictive(model, num_samples=5)(jax.random.key(1))
    assert drawn["tau"].shape == (5,) and np.all(drawn["tau"] > 0)


@settings(max_examples=10, deadline=None)
@given(st.floats(0.05, 5.0), st.floats(-3.0, 3.0), st.floats(0.1, 10.0), st.floats(-25.0, 25.0))
def test_round_trip_and_monotonicity_hold_everywhere(scale, loc, noise, log_tau):
    prior = predcp.ComplexityPrior(
        predcp.LogCauchy(scale=scale, loc=loc), predcp.LinearEvidence(DESIGN, noise)
    ).log_scale()
    here, ahead = prior.cdf(jnp.asarray([log_tau, log_tau + 0.01]))
    assert 0.0 < here < ahead < 1.0
    np.testing.assert_allclose(prior.icdf(here), log_tau, rtol=1e-8, atol=1e-8)


def test_outside_the_support_the_density_is_zero():
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.LinearEvidence(1.0))
    np.testing.assert_array_equal(prior.log_prob(jnp.asarray([-1.0, 0.0])), -np.inf)
    np.testing.assert_array_equal(prior.cdf(jnp.asarray([-1.0, 0.0])), 0.0)
    with pytest.raises(ValueError, match="complexity must be one of predcp's maps"):
        predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), lambda tau: tau)
    with pytest.raises(ValueError, match="does not broadcast"):
        predcp.ComplexityPrior(
            predcp.LogCauchy(scale=jnp.ones(2)), predcp.LinearEvidence(jnp.ones((3, 2, 2)))
        )


def test_methods_take_their_arguments_by_name():
    prior = predcp.ComplexityPrior(
        predcp.LogCauchy(scale=1.0), predcp.LinearEvidence(jnp.ones((3, 2)))
    )
    key = jax.random.key(0)
    for distribution in (prior, prior.log_scale()):
        by_name = distribution.sample(key, sample_shape=(4,))
        np.testing.assert_array_equal(by_name, distribution.sample(key, (4,)))
        # As NumPyro's own handlers call it.
        drawn, _ = distribution.sample_with_intermediates(key, (4,))
        np.testing.assert_array_equal(drawn, by_name)


@pytest.mark.parametrize("complexity", [predcp.LinearEvidence, predcp.LogisticEvidence])
def test_single_precision_quantiles_of_a_double_precision_prior(complexity):
    x = np.random.default_rng(0).normal(size=(6, 2))
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity(x))
    # Numbers that both precisions have.
    q = np.array([0.125, 0.5])
    found = prior.icdf(q.astype(np.float32))
    # As exact as the question was.
    np.testing.assert_allclose(found, prior.icdf(q), rtol=1e-6)
