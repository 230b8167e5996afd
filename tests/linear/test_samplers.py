"""Samplers against posteriors that are known by other means."""

import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from tests.clock import slowness

import predcp
from predcp._numerics.chains import bulk_ess, rank_normalised_rhat
from predcp.linear import (
    ECP,
    Horseshoe,
    MeanField,
    Nuts,
    PredCP,
    Target,
    logistic_regression,
)
from predcp.linear._layout import _PROGRAMS
from predcp.linear._processes import _WORKERS, can_travel, close_workers

RANDOM = np.random.default_rng(3)
MEAN = jnp.asarray([1.0, -2.0, 0.5])
SCALE = jnp.asarray([0.3, 2.0, 1.0])
DESIGN = jnp.asarray(RANDOM.normal(size=(12, 1)) * np.ones(2) + 0.1 * RANDOM.normal(size=(12, 2)))
CLASSES = jnp.asarray(RANDOM.integers(0, 2, size=12))


# An exponential pi has no tail that would need millions of draws to see.
PI = predcp.Exponential(mean=0.2)
PRIOR = ECP(PI)


def normal(mean):
    numpyro.sample("theta", dist.Normal(mean, SCALE).to_event(1))


SHORT = {"chains": 2, "warmup": 600, "draws": 500}
SAMPLERS = {
    "nuts": Nuts(**SHORT),
    "vectorised": Nuts(**SHORT, layout="vectorised"),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_normal_is_recovered(name):
    (draws,) = SAMPLERS[name].sample(Target(normal, (MEAN,)))
    theta = draws.values["theta"]
    assert theta.shape == (2, 500, 3)
    error = np.asarray(SCALE) / np.sqrt(bulk_ess(theta))
    assert np.all(np.abs(theta.mean((0, 1)) - MEAN) < 5.0 * error)
    np.testing.assert_allclose(theta.std((0, 1)), SCALE, rtol=0.2)
    assert draws.leapfrogs > 0 and draws.divergences == 0.0


def test_several_problems_in_one_program():
    shifts = jnp.stack([MEAN, MEAN + 10.0])
    first, second = Nuts(**SHORT).sample(Target(normal, (shifts,), problems=2))
    np.testing.assert_allclose(first.values["theta"].mean((0, 1)), MEAN, atol=0.5)
    np.testing.assert_allclose(second.values["theta"].mean((0, 1)), MEAN + 10.0, atol=0.5)


def test_same_seed_same_bits_and_no_second_compilation():
    sampler = Nuts(chains=2, warmup=20, draws=20, chunk=20)
    first = sampler.sample(Target(normal, (MEAN,)))[0].values["theta"]
    held = len(_PROGRAMS)
    second = sampler.sample(Target(normal, (MEAN,)))[0].values["theta"]
    other = sampler.sample(Target(normal, (MEAN + 1.0,)))[0].values["theta"]
    assert len(_PROGRAMS) == held
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_chains_go_on_until_they_have_mixed():
    hardly = Nuts(chains=2, warmup=50, draws=50, chunk=50, max_depth=1, max_draws=200, rhat=1.0001)
    (draws,) = hardly.sample(Target(normal, (MEAN,)))
    assert draws.values["theta"].shape[1] == 200 and draws.missing == 0
    easily = replace(hardly, rhat=10.0)
    (short,) = easily.sample(Target(normal, (MEAN,)))
    np.testing.assert_array_equal(short.values["theta"], draws.values["theta"][:, :50])


@pytest.mark.parametrize("layout", ["sequential", "vectorised"])
def test_a_limit_on_time_is_kept_and_said(layout):
    """Chains of equal length, the steps of a run without a limit, and the number left out."""
    whole = Nuts(chains=2, warmup=200, draws=200, layout=layout)
    (all_draws,) = whole.sample(Target(normal, (MEAN,)))
    hurried = replace(whole, draws=10**7, max_draws=10**8, max_seconds=0.5)
    began = time.monotonic()
    (draws,) = hurried.sample(Target(normal, (MEAN,)))
    assert time.monotonic() - began < 2.0 * slowness()
    kept = draws.values["theta"].shape[1]
    assert draws.missing == 10**7 - kept and kept > 200
    np.testing.assert_array_equal(draws.values["theta"][:, :200], all_draws.values["theta"])
    with pytest.raises(TimeoutError, match="steps of a chain, which say"):
        replace(whole, max_seconds=1e-9).sample(Target(normal, (MEAN,)))


def slow(mean):
    """A normal whose density takes about a millisecond."""
    theta = numpyro.sample("theta", dist.Normal(mean, SCALE).to_event(1))
    work, _ = jax.lax.scan(lambda a, _: (jnp.tanh(a), None), theta[0] * jnp.ones(5000), length=10)
    numpyro.factor("work", 1e-12 * jnp.sum(work))


@pytest.mark.parametrize("layout", ["sequential", "processes", "vectorised"])
def test_progress_moves_every_two_seconds_and_names_compilation(layout):
    seen = []

    def report(done, total, words=None):
        seen.append((time.monotonic(), done, total, words))

    sampler = Nuts(chains=2, warmup=100, draws=100, max_depth=3, layout=layout)
    sampler.sample(Target(slow, (MEAN,)), report)
    assert seen[0][1:] == (0, 200 if layout == "vectorised" else 400, "compiling")
    times, done, totals, words = (list(column) for column in zip(*seen[1:]))
    assert set(words) == {"sampling"}
    assert done == sorted(set(done)) and done[-1] == totals[-1]
    assert len(done) > 5
    assert np.max(np.diff(times)) < 2.0


def test_progress_reaches_a_function_of_two_arguments():
    seen = []
    Nuts(chains=2, warmup=20, draws=20).sample(
        Target(normal, (MEAN,)), lambda done, total: seen.append((done, total))
    )
    assert seen[0] == (0, 80) and seen[-1] == (80, 80)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def kept(sites, x, y):
    return {"log_tau": sites["log_tau"], "beta": sites["beta"], "logits": x @ sites["beta"]}


def fitted(prior, sampler):
    target = Target(
        logistic_regression, (DESIGN, CLASSES), {"prior": prior, "intercept": False}, keep=kept
    )
    return sampler.sample(target)[0]


def gap(first, second):
    """Difference of means in standard errors."""
    variance = first.var((0, 1)) / bulk_ess(first) + second.var((0, 1)) / bulk_ess(second)
    return np.abs(first.mean((0, 1)) - second.mean((0, 1))) / np.sqrt(variance)


# By default both are part of test_calibration.
@pytest.mark.long
@pytest.mark.parametrize("prior", [ECP(PI), PredCP(PI)], ids=["ecp", "predcp"])
def test_coordinates_leave_the_posterior_alone(prior):
    plain = replace(prior, coordinates="log", centring=0.0)
    reference = fitted(plain, Nuts(chains=4, warmup=300, draws=1500, target_acceptance=0.95))
    ours = fitted(prior, Nuts(chains=4, warmup=500, draws=2000, seed=1))
    for name in ("log_tau", "logits"):
        mine, theirs = ours.values[name], reference.values[name]
        assert np.max(rank_normalised_rhat(mine)) < 1.02
        assert np.all(gap(np.tanh(mine / 4.0), np.tanh(theirs / 4.0)) < 4.5)


@pytest.mark.parametrize("rule", ["advi", "converged"])
def test_mean_field_finds_a_normal(rule):
    (draws,) = MeanField(rule=rule, draws=4000, max_steps=4000).sample(Target(normal, (MEAN,)))
    theta = draws.values["theta"][0]
    # Stan's rule stops early by design; only the converged one is held to digits.
    tolerance = 0.35 if rule == "advi" else 0.05
    np.testing.assert_allclose(theta.mean(0), MEAN, atol=tolerance * np.asarray(SCALE).max())
    np.testing.assert_allclose(theta.std(0), SCALE, rtol=0.5 if rule == "advi" else 0.06)
    # A normal fits a normal: the ELBO is the log evidence, 0.
    assert abs(draws.figures["elbo"]) < (1.0 if rule == "advi" else 0.02)


def test_log_of_the_scale_keeps_a_half_cauchy_in_single_precision():
    from predcp.linear._coefficient_prior import LogOf, Setting

    prior = Horseshoe().log_scale(Setting(DESIGN, "bernoulli"), jnp.ones(2))
    assert isinstance(prior, LogOf)
    value = jnp.asarray([-80.0, 0.0, 80.0], jnp.float32)
    expected = np.log(2 / np.pi) - np.logaddexp(value, -value.astype(float))
    np.testing.assert_allclose(prior.log_prob(value), expected, rtol=1e-6)


def test_a_complexity_prior_stays_in_floating_point():
    """exp(log tau) is 0 or infinite at the ends; the density of log tau is not."""
    from predcp.linear._coefficient_prior import Setting
    from predcp.linear._priors import as_coefficient_prior

    given = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.LogisticEvidence(DESIGN))
    setting = Setting(DESIGN, "bernoulli")
    for prior in (given, lambda x, local_scales: given):
        log_scale = as_coefficient_prior(prior).log_scale(setting, jnp.ones(2))
        log_tau = jnp.asarray([-2e3, -300.0, 0.0, 300.0, 2e3])
        values, slopes = jax.jit(jax.vmap(jax.value_and_grad(log_scale.log_prob)))(log_tau)
        assert np.all(np.isfinite(values)) and np.all(np.isfinite(slopes))
        np.testing.assert_allclose(values, given.log_scale().log_prob(log_tau), rtol=1e-14)


def test_a_prior_of_a_variance_is_one_of_the_standard_deviation():
    """tau is a standard deviation here; LinearEvidence has a variance."""
    from predcp.linear._coefficient_prior import Setting
    from predcp.linear._priors import as_coefficient_prior

    given = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.LinearEvidence(DESIGN))
    setting = Setting(DESIGN, "normal")
    log_scale = as_coefficient_prior(given).log_scale(setting, jnp.ones(2))
    # P(tau < t) = P(tau^2 < t^2), so the density of log tau is that of log tau^2, twice.
    expected = given.log_prob(0.7**2) + np.log(0.7**2) + np.log(2.0)
    np.testing.assert_allclose(log_scale.log_prob(jnp.log(0.7)), expected, rtol=1e-12)
    drawn = log_scale.sample(jax.random.key(0), (5,))
    np.testing.assert_allclose(2.0 * drawn, given.log_scale().sample(jax.random.key(0), (5,)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Nuts(chains=0), "chains must be at least 1"),
        (lambda: Nuts(max_depth=0), "max_depth"),
        (lambda: Nuts(target_acceptance=1.0), "target_acceptance"),
        (lambda: Nuts(max_draws=10), "max_draws"),
        (lambda: Nuts(max_seconds=0.0), "max_seconds"),
        (lambda: MeanField(rule="best"), "rule must be"),
    ],
)
def test_bad_settings_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("layout", ["sequential", "processes"])
def test_chains_of_their_own_refuse_several_problems(layout):
    target = Target(normal, (jnp.stack([MEAN, MEAN]),), problems=2)
    with pytest.raises(ValueError, match=layout):
        Nuts(layout=layout).sample(target)


def test_processes_give_what_one_process_gives():
    """One chain per core: the same draws, progress, and workers that serve a second fit."""
    target = Target(normal, (MEAN,))
    seen = []
    sampler = Nuts(chains=3, warmup=1, draws=39, chunk=10, layout="processes")
    (far,) = sampler.sample(target, lambda done, total: seen.append((done, total)))
    (near,) = replace(sampler, layout="sequential").sample(target)
    assert seen[0] == (0, 120) and seen[-1] == (120, 120)
    # Rounding may differ where sums are split among threads, and chains amplify it.
    np.testing.assert_allclose(far.values["theta"][:, 0], near.values["theta"][:, 0], rtol=1e-6)
    assert far.values["theta"].shape == near.values["theta"].shape
    workers = list(_WORKERS)
    (again,) = sampler.sample(target)
    assert workers == _WORKERS
    np.testing.assert_array_equal(again.values["theta"], far.values["theta"])
    # Chains that are never content go on to the end, in the same processes.
    (longer,) = replace(sampler, max_draws=156, rhat=0.0).sample(target)
    assert workers == _WORKERS
    assert longer.values["theta"].shape == (3, 156, 3)
    np.testing.assert_array_equal(longer.values["theta"][:, :39], far.values["theta"])


@pytest.mark.long
def test_a_lost_process_is_said_and_replaced():
    target = Target(normal, (MEAN,))
    sampler = Nuts(chains=2, warmup=20, draws=20, chunk=10, layout="processes")
    sampler.sample(target)

    def kill(done, total):
        for worker in _WORKERS:
            worker._process.kill()

    with pytest.raises(RuntimeError, match="has died"):
        sampler.sample(target, kill)
    assert not _WORKERS
    assert sampler.sample(target)[0].values["theta"].shape == (2, 20, 3)
    close_workers()


def test_only_what_can_be_imported_travels():
    sampler = Nuts()
    assert can_travel(sampler, Target(logistic_regression, (DESIGN, CLASSES), {"prior": PRIOR}))

    def local(x, y, prior):
        return None

    assert not can_travel(sampler, Target(local, (DESIGN, CLASSES), {"prior": PRIOR}))


def test_single_precision_follows_double():
    arrays = DESIGN.astype(jnp.float32), CLASSES
    target = Target(logistic_regression, arrays, {"prior": PredCP(PI), "intercept": False})
    double = Target(
        logistic_regression, (DESIGN, CLASSES), {"prior": PredCP(PI), "intercept": False}
    )
    position = double.start(jax.random.key(0))
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), position)
    np.testing.assert_allclose(
        jax.jit(target.potential(*arrays))(single),
        jax.jit(double.potential(DESIGN, CLASSES))(position),
        rtol=1e-5,
    )


@pytest.mark.parametrize("rule", ["advi", "converged"])
def test_progress_of_a_mean_field_fit_moves(rule):
    seen = []

    def report(done, total, words=None):
        seen.append((done, total, words))

    # A tolerance that is never met: the fit goes on to its last step.
    method = MeanField(rule=rule, max_steps=950, tolerance=0.0, draws=4)
    (draws,) = method.sample(Target(normal, (MEAN,)), report)
    blocks = 9 if rule == "advi" else 10
    assert seen[0] == (0, blocks, "compiling")
    assert len(seen) > 4 and seen[-1] == (blocks, blocks, "fitting")
    assert [done for done, *_ in seen] == sorted(done for done, *_ in seen)
    assert draws.figures["steps"] == (900 if rule == "advi" else 950)
