"""A budget through the door: the scales of a program under one prior."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import Predictive
from numpyro.infer.util import log_density
from scipy import stats

import predcp
from tests.program import budget_calibration

GROUP, SITE = np.asarray([0, 0, 1, 1, 2, 2, 0, 1]), np.asarray([0, 1, 0, 1, 0, 1, 2, 2])
Y = jnp.asarray([1.2, 0.7, -0.3, 0.4, 2.0, 1.1, 0.9, 0.2])
NAMES = ("tau_a", "tau_b")
BUDGET = predcp.Budget({"tau_a": 1.0, "tau_b": 2.0}, predcp.Exponential(mean=0.2))


def model(y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    tau_a = numpyro.sample("tau_a", dist.HalfNormal(1.0))
    tau_b = numpyro.sample("tau_b", dist.HalfNormal(1.0))
    with numpyro.plate("groups", 3):
        a = numpyro.sample("a", dist.Normal(0.0, tau_a))
    with numpyro.plate("sites", 3):
        b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(level + a[GROUP] + tau_b * b[SITE], 0.5), obs=y)


def test_the_program_has_the_density_of_the_budget():
    program = predcp.with_complexity(model, BUDGET, noise_draws=8)
    rest = {"level": jnp.asarray(0.2), "a": jnp.asarray([0.1, -0.4, 0.3]), "b": jnp.ones(3)}
    log_tau = jnp.asarray([-1.0, -0.4])
    ours, _ = log_density(program, (Y,), {}, {**rest, "log_scales": log_tau})
    values = dict(zip(NAMES, jnp.exp(log_tau)))
    theirs, _ = log_density(model, (Y,), {}, {**rest, **values})
    own = sum(dist.HalfNormal(1.0).log_prob(value) for value in values.values())
    prior = predcp.budget_of(model, BUDGET, Y, noise_draws=8, rest={"level": 0.2}).log_scale()
    np.testing.assert_allclose(ours, theirs - own + prior.log_prob(log_tau), rtol=1e-9)


def test_draws_spend_the_budget():
    program = predcp.with_complexity(model, BUDGET, noise_draws=8)
    draws = Predictive(program, num_samples=400)(jax.random.key(0))
    prior = predcp.budget_of(model, BUDGET, Y, noise_draws=8)
    kappa = np.asarray(prior.complexity(jnp.stack([draws[name] for name in NAMES], -1)))
    np.testing.assert_allclose(draws["log_scales"][:, 0], np.log(draws["tau_a"]), rtol=1e-12)
    assert stats.kstest(kappa.sum(-1), stats.expon(scale=0.2).cdf).pvalue > 1e-3
    assert stats.kstest(kappa[:, 0] / kappa.sum(-1), stats.beta(1.0, 2.0).cdf).pvalue > 1e-3


def test_the_program_says_how_far_its_components_are_from_adding_up():
    prior = predcp.budget_of(model, BUDGET, observed=["y"], noise_draws=64)
    tau = jnp.asarray([0.3, 0.2])
    # Effects add up in a normal model: the expected divergence is the sum of the two.
    np.testing.assert_allclose(
        prior.complexity.together(tau), prior.complexity(tau).sum(), rtol=0.15
    )
    for total in ("sum", "together"):
        found = predcp.diagnose(predcp.BudgetPrior(BUDGET, prior.complexity, total))
        assert found.verdict == "accept" and "off the budget" in found.reasons[-1]
        assert max(map(abs, found.budget_errors)) < 0.15


def test_components_in_order_may_be_non_centred():
    pi = predcp.Exponential(mean=0.2)
    program = predcp.with_complexity(model, {"tau_a": pi, "tau_b": pi}, noise_draws=8)
    rest = {"level": jnp.asarray(0.2), "a": jnp.zeros(3), "b": jnp.ones(3)}
    tau = {"tau_a": jnp.asarray(0.3), "tau_b": jnp.asarray(0.4)}
    ours, _ = log_density(program, (Y,), {}, {**rest, **tau})
    theirs, _ = log_density(model, (Y,), {}, {**rest, **tau})
    own = sum(dist.HalfNormal(1.0).log_prob(value) for value in tau.values())
    first = predcp.complexity_of(
        model, "tau_a", Y, rest={"level": 0.2}, off=["tau_b"], noise_draws=8
    )
    known = {"level": 0.2, "a": jnp.zeros(3), "tau_a": 0.3}
    second = predcp.complexity_of(model, "tau_b", Y, rest=known, noise_draws=8)
    expected = predcp.ComplexityPrior(pi, first).log_prob(0.3)
    expected += predcp.ComplexityPrior(pi, second).log_prob(0.4)
    np.testing.assert_allclose(ours, theirs - own + expected, rtol=1e-9)


def test_bad_budgets_are_refused():
    pi = predcp.Exponential(mean=0.2)
    with pytest.raises(ValueError, match="'tau_c', which is not a site of the program"):
        predcp.budget_of(model, predcp.Budget({"tau_a": 1.0, "tau_c": 1.0}, pi), Y)
    with pytest.raises(ValueError, match="'a', a site of shape"):
        predcp.budget_of(model, predcp.Budget({"tau_b": 1.0, "a": 1.0}, pi), Y)
    with pytest.raises(ValueError, match="budget must be a Budget, got dict"):
        predcp.budget_of(model, {"tau_a": 1.0}, Y)


@pytest.mark.long
def test_posteriors_of_three_components_are_calibrated():
    """At full size: `python -m benchmarks.budget_sbc`, which also measures the power."""
    found = budget_calibration.verdict(budget_calibration.ranks(80))
    assert found["calibrated"], found


@pytest.mark.parametrize("rest", ["given", {"level": 0.2}])
def test_the_total_of_a_program_may_be_that_of_all_its_components(rest):
    program = predcp.with_complexity(model, BUDGET, noise_draws=64, total="together", rest=rest)
    values = {"level": jnp.asarray(0.2), "a": jnp.zeros(3), "b": jnp.ones(3)}
    log_tau = jnp.asarray([-1.0, -0.4])
    ours, _ = log_density(program, (Y,), {}, {**values, "log_scales": log_tau})
    scales = dict(zip(NAMES, jnp.exp(log_tau)))
    theirs, _ = log_density(model, (Y,), {}, {**values, **scales})
    own = sum(dist.HalfNormal(1.0).log_prob(value) for value in scales.values())
    known = {"level": 0.2}
    prior = predcp.budget_of(
        model, BUDGET, Y, noise_draws=64, rest=known, total="together"
    ).log_scale()
    np.testing.assert_allclose(ours, theirs - own + prior.log_prob(log_tau), rtol=1e-9)


def test_only_a_budget_has_a_total():
    pi = predcp.Exponential(mean=0.2)
    with pytest.raises(ValueError, match='"together" of a Budget'):
        predcp.with_complexity(model, {"tau_a": pi}, total="together")
