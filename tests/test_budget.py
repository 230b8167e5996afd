"""A budget: exact density of the vector of scales, draws, quantiles, truncation, what does not add up."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import predcp
from tests.catalogue import DESIGN, predictive

# A gamma with the sum of the concentrations as its shape makes all divergences independent gammas.
CONCENTRATIONS = {"a": 0.8, "b": 1.5, "c": 2.0}
TREE = {"a": 0.8, "rest": (3.5, {"b": 1.5, "c": 2.0})}
GAMMA = predcp.Gamma(shape=4.3, scale=0.2)
MAPS = {
    "a": predcp.PenalisedComplexity(0.5),
    "b": predcp.LinearEvidence(DESIGN, 0.8),
    "c": predcp.RowEvidence(DESIGN, 0.7, 1.3),
}
TAU = jnp.asarray([[0.02, 0.1, 0.3], [0.5, 0.03, 1.2], [1e-5, 2.0, 1e-3]])


def independent_gammas(tau):
    total = 0.0
    for place, (name, a) in enumerate(CONCENTRATIONS.items()):
        own = predcp.ComplexityPrior(predcp.Gamma(shape=a, scale=0.2), MAPS[name])
        total = total + own.log_prob(tau[..., place])
    return total


@pytest.mark.parametrize("shares", [CONCENTRATIONS, TREE], ids=["flat", "tree"])
def test_density_is_that_of_independent_gammas(shares):
    prior = predcp.BudgetPrior(predcp.Budget(shares, GAMMA), MAPS)
    expected = independent_gammas(TAU)
    np.testing.assert_allclose(prior.log_prob(TAU), expected, rtol=1e-10)
    log = prior.log_scale()
    np.testing.assert_allclose(
        log.log_prob(jnp.log(TAU)), expected + jnp.log(TAU).sum(-1), rtol=1e-10
    )
    assert np.isneginf(prior.log_prob(TAU.at[0, 1].set(-1.0))[0])


@pytest.mark.parametrize(
    "shares",
    [CONCENTRATIONS, pytest.param(TREE, marks=pytest.mark.long)],
    ids=["flat", "tree"],
)
def test_quantiles_and_draws_are_those_of_independent_gammas(shares):
    prior = predcp.BudgetPrior(predcp.Budget(shares, GAMMA), MAPS)
    q = jnp.asarray([0.05, 0.5, 0.95])
    found = prior.complexity(prior.quantile(q))
    kappa = np.asarray(prior.complexity(prior.sample(jax.random.key(0), (2000,))))
    for place, a in enumerate(CONCENTRATIONS.values()):
        own = stats.gamma(a, scale=0.2)
        np.testing.assert_allclose(own.cdf(found[:, place]), q, atol=1e-3)
        assert stats.kstest(kappa[:, place], own.cdf).pvalue > 1e-3
    assert stats.kstest(kappa.sum(-1), stats.gamma(4.3, scale=0.2).cdf).pvalue > 1e-3
    np.testing.assert_allclose(prior.tail(1.0), stats.gamma(4.3, scale=0.2).sf(1.0), rtol=1e-9)


def mass(prior, ranges, step):
    """The trapezoid rule in log tau, which converges fast for a smooth density."""
    axes = [np.arange(low, high, step) for low, high in ranges]
    grid = jnp.asarray(np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes)))
    log = prior.log_scale()
    total = sum(float(jnp.exp(log.log_prob(part)).sum()) for part in jnp.array_split(grid, 8))
    return total * step ** len(axes)


def test_density_integrates_to_one_in_two_and_three_dimensions():
    two = predcp.Budget({"b": 1.5, "c": 2.0}, predcp.Exponential(mean=0.3))
    prior = predcp.BudgetPrior(two, {"b": MAPS["b"], "c": MAPS["c"]})
    np.testing.assert_allclose(mass(prior, [(-16.0, 4.0), (-9.0, 4.0)], 0.1), 1.0, atol=1e-7)
    three = predcp.Budget(
        {"a": 2.0, "rest": (2.0, {"b": 3.0, "c": 2.0})}, predcp.Gamma(shape=2.0, scale=0.2)
    )
    maps = {
        name: predcp.RowEvidence(DESIGN[:, :1], scale)
        for name, scale in zip("abc", (0.5, 1.0, 2.0))
    }
    prior = predcp.BudgetPrior(three, maps)
    np.testing.assert_allclose(mass(prior, [(-6.0, 4.0)] * 3, 0.12), 1.0, atol=1e-6)


def test_bounded_components_keep_their_shares_and_the_mass():
    maps = {"coin": predictive(), "b": predcp.RowEvidence(DESIGN, 0.7)}
    prior = predcp.BudgetPrior(
        predcp.Budget({"coin": 1.5, "b": 2.0}, predcp.Exponential(mean=1.0)), maps
    )
    assert prior.complexity.bounded and np.isfinite(prior.complexity.supremum).tolist() == [
        True,
        False,
    ]
    # The density has a kink where both components would saturate together.
    np.testing.assert_allclose(mass(prior, [(-10.0, 9.0), (-8.0, 5.0)], 0.1), 1.0, atol=2e-4)
    draws = prior.sample(jax.random.key(2), (1500,))
    kappa = np.asarray(prior.complexity(draws))
    assert np.all(kappa[:, 0] < prior.complexity.supremum[0])
    assert stats.kstest(kappa[:, 0] / kappa.sum(-1), stats.beta(1.5, 2.0).cdf).pvalue > 1e-3
    np.testing.assert_allclose(np.mean(kappa.sum(-1) > 0.5), prior.tail(0.5), atol=0.04)


def test_a_stated_tail_holds_after_truncation():
    maps = {"coin": predictive(), "other": predictive(divergence=predcp.jensen_shannon)}
    shares = {"coin": 1.0, "other": 1.0}
    prior = predcp.BudgetPrior.from_tail(predcp.HalfCauchy, shares, maps, 0.2, 0.3)
    kappa = prior.complexity(prior.sample(jax.random.key(3), (2000,)))
    np.testing.assert_allclose(prior.tail(0.2), 0.3, rtol=1e-9)
    np.testing.assert_allclose(np.mean(kappa.sum(-1) > 0.2), 0.3, atol=0.035)
    with pytest.raises(ValueError, match="smaller upper or probability"):
        predcp.BudgetPrior.from_tail(predcp.HalfCauchy, shares, maps, 3.0, 0.9)


def interacting(tau):
    kappa = jnp.sqrt(tau) / jnp.asarray([0.5, 2.0])
    return kappa.sum(-1) + 3.0 * kappa.prod(-1)


def test_the_total_may_be_the_divergence_of_all_components():
    maps = predcp.SeparateComplexity(
        [predcp.PenalisedComplexity(0.5), predcp.PenalisedComplexity(2.0)], interacting
    )
    budget = predcp.Budget({"a": 1.5, "b": 2.0}, predcp.Gamma(shape=2.0, scale=0.3))
    prior = predcp.BudgetPrior(budget, maps, total="together")
    np.testing.assert_allclose(mass(prior, [(-28.0, 4.0), (-24.0, 7.0)], 0.2), 1.0, atol=1e-6)
    tau = prior.sample(jax.random.key(4), (1000,))
    total = np.asarray(jax.jit(jax.vmap(interacting))(tau))
    assert stats.kstest(total, stats.gamma(2.0, scale=0.3).cdf).pvalue > 1e-3
    kappa = np.asarray(maps(tau))
    assert stats.kstest(kappa[:, 0] / kappa.sum(-1), stats.beta(1.5, 2.0).cdf).pvalue > 1e-3
    assert "together" in predcp.diagnose(prior).reasons[-1]


def test_the_error_of_the_noise_of_a_total_is_measured_with_other_noise():
    single = [predcp.PenalisedComplexity(0.5), predcp.PenalisedComplexity(2.0)]
    budget = predcp.Budget({"a": 1.5, "b": 2.0}, predcp.Exponential(mean=0.1))
    for factor, verdict in ((1.1, "accept"), (1.2, "warn")):
        maps = predcp.SeparateComplexity(
            single, interacting, lambda tau, f=factor: f * interacting(tau)
        )
        found = predcp.diagnose(predcp.BudgetPrior(budget, maps, total="together"))
        assert found.verdict == verdict
        np.testing.assert_allclose(found.budget_errors, factor - 1.0, rtol=1e-6)
        assert ("take more draws" in found.reasons[-1]) == (verdict == "warn")


def test_fixed_shares_have_the_distribution_far_below_rounding():
    small = predcp.Budget({"a": 0.01, "b": 0.02}, predcp.Exponential(mean=0.3))
    log_shares = np.asarray(small.points()[0])
    # P(share < e^-x) is e^(-a x) times the other's part of the concentrations.
    for place, (a, part) in enumerate(((0.01, 2 / 3), (0.02, 1 / 3))):
        for q in (0.01, 0.1, 0.2):
            np.testing.assert_allclose(
                np.quantile(log_shares[:, place], q), np.log(q / part) / a, rtol=0.02
            )


def test_tiny_shares_stay_in_single_precision():
    with jax.enable_x64(False):
        small = predcp.Budget({"a": 0.02, "b": 0.05}, predcp.Exponential(mean=0.3))
        log_shares, _ = small.points()
        assert log_shares.dtype == jnp.float32 and np.all(np.isfinite(log_shares))
        maps = {"a": predcp.PenalisedComplexity(0.5), "b": predcp.PenalisedComplexity(2.0)}
        prior = predcp.BudgetPrior(small, maps).log_scale()
        draws = prior.sample(jax.random.key(0), (400,))
        assert np.all(np.isfinite(prior.log_prob(draws)))
        # Half of the scales are below their median.
        below = np.mean(np.asarray(draws) < np.asarray(prior.quantile(0.5)), axis=0)
        np.testing.assert_allclose(below, 0.5, atol=0.1)


def test_the_total_of_bounded_components_may_be_that_of_all():
    """Given the shares, pi is cut where the first component saturates: with a coin, at log 2 and less."""
    shapes = jnp.asarray([0.5, 2.0])

    def whole(tau):
        return jnp.log(2.0) * -jnp.expm1(-jnp.sum(tau / shapes) - 0.3 * jnp.prod(tau))

    class Coin(predcp.ScalarComplexity):
        """`log 2 (1 - e^(-tau / shape))`"""

        unit, bounded = "variance", True

        def __init__(self, shape):
            self.shape = shape

        def bind(self):
            def evaluate(log_tau):
                u = jnp.exp(jnp.minimum(log_tau, 300.0)) / self.shape
                value = jnp.log(jnp.log(2.0)) + jnp.log(-jnp.expm1(-u))
                return value, jnp.log(u) - u - jnp.log(-jnp.expm1(-u))

            return evaluate

        def _single_log_supremum(self):
            return jnp.log(jnp.log(2.0))

    maps = predcp.SeparateComplexity([Coin(float(each)) for each in shapes], whole)
    budget = predcp.Budget({"a": 1.5, "b": 2.0}, predcp.Exponential(mean=0.3))
    prior = predcp.BudgetPrior(budget, maps, total="together")
    np.testing.assert_allclose(mass(prior, [(-28.0, 5.0), (-24.0, 6.0)], 0.2), 1.0, atol=2e-3)
    tau = prior.sample(jax.random.key(5), (1000,))
    total = np.asarray(jax.vmap(whole)(tau))
    np.testing.assert_allclose(np.mean(total > 0.3), prior.tail(0.3), atol=0.05)
    kappa = np.asarray(maps(tau))
    assert stats.kstest(kappa[:, 0] / kappa.sum(-1), stats.beta(1.5, 2.0).cdf).pvalue > 1e-3


def test_a_rebuilt_prior_is_the_same_program_and_has_gradients():
    prior = predcp.BudgetPrior(predcp.Budget(CONCENTRATIONS, GAMMA), MAPS).log_scale()
    traces = []

    @jax.jit
    def density(prior, value):
        traces.append(None)
        return prior.log_prob(value)

    leaves, structure = jax.tree.flatten(prior)
    for factor in (1.0, 1.1):
        again = jax.tree.unflatten(structure, [factor * leaf for leaf in leaves])
        density(again, jnp.log(TAU[0]))
    assert len(traces) == 1
    extreme = jnp.asarray([-80.0, -1.0, 60.0])
    assert np.all(np.isfinite(jax.jit(jax.grad(prior.log_prob))(extreme)))
    assert prior.support(jnp.log(TAU[0])) and prior.event_shape == (3,) and prior.batch_shape == ()


GROUP, SITE = np.asarray([0, 0, 1, 1, 2, 2, 0, 1]), np.asarray([0, 1, 0, 1, 0, 1, 2, 2])


def components(likelihood, effects, draws=64):
    noise = [predcp.normal_noise(jax.random.key(seed), draws, (3,)) for seed in range(2)]
    return predcp.OrderedComplexity(likelihood, effects, None, noise).separate()


def effect(tau, xi):
    return tau * xi


def positive(tau, xi):
    return tau * jnp.abs(xi)


DESIGNS = {
    "normal": (lambda e: dist.Normal(1.0 + e, 0.5), (effect, effect), True),
    "counts": (lambda e: dist.Poisson(5.0 * jnp.exp(e)), (effect, effect), True),
    "coins": (lambda e: dist.Bernoulli(logits=0.2 + e), (effect, effect), False),
    "rare-counts": (lambda e: dist.Poisson(0.02 * jnp.exp(e)), (effect, effect), False),
    "signs": (lambda e: dist.Normal(1.0 + e, 0.5), (positive, positive), False),
}


LATE = ("coins", "rare-counts")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long) if name in LATE else name for name in DESIGNS],
)
def test_components_add_up_below_a_third_of_a_nat_or_it_is_said(name):
    family, effects, adds_up = DESIGNS[name]
    maps = components(lambda theta, x: family(theta[0][GROUP] + theta[1][SITE]), effects)
    prior = predcp.BudgetPrior(
        predcp.Budget({"a": 1.0, "b": 1.0}, predcp.Exponential(mean=0.1)), maps
    )
    found = predcp.diagnose(prior)
    low, _, high = found.budget_errors
    assert (max(-low, high) <= 0.15) == adds_up
    assert (found.verdict in ("accept", "truncate")) == adds_up
    assert f"{100 * low:+.1f}% to {100 * high:+.1f}% off the budget" in str(found)


def test_components_together_are_the_model_with_all_of_them():
    maps = components(
        lambda theta, x: dist.Normal(theta[0][GROUP] + theta[1][SITE], 0.5), (effect, positive)
    )
    tau = jnp.asarray([0.3, 0.7])
    noise = [np.asarray(predcp.normal_noise(jax.random.key(seed), 64, (3,))) for seed in range(2)]
    first, second = 0.3 * noise[0][:, GROUP], 0.7 * np.abs(noise[1])[:, SITE]
    np.testing.assert_allclose(maps.together(tau), np.mean((first + second) ** 2) / 0.5, rtol=1e-10)
    np.testing.assert_allclose(
        maps(tau), [np.mean(first**2) / 0.5, np.mean(second**2) / 0.5], rtol=1e-10
    )


def test_modules_have_a_budget_too():
    from tests.catalogue import VECTOR_MAPS

    prior = predcp.BudgetPrior(
        predcp.Budget({"body": 1.0, "head": 1.0}, GAMMA), VECTOR_MAPS["modular"]()
    )
    assert np.all(np.isfinite(prior.log_prob(prior.sample(jax.random.key(0), (5,)))))
    # A module alone spends what its own map says.
    only = jnp.asarray([0.3, 0.0])
    np.testing.assert_allclose(
        prior.complexity.together(only), prior.complexity.module("body")(0.3), rtol=1e-9
    )


def test_bad_input_is_refused_by_name():
    pi = predcp.Exponential(mean=1.0)
    with pytest.raises(
        ValueError, match=r"shares\['a'\] must have a positive concentration, got -1"
    ):
        predcp.Budget({"a": -1.0, "b": 1.0}, pi)
    with pytest.raises(ValueError, match="name each component once"):
        predcp.Budget({"a": 1.0, "g": (1.0, {"a": 1.0, "b": 2.0})}, pi)
    with pytest.raises(ValueError, match="shares must map names to concentrations"):
        predcp.Budget({}, pi)
    with pytest.raises(ValueError, match="one distribution, got batch shape"):
        predcp.Budget({"a": 1.0}, predcp.Exponential(mean=jnp.ones(2)))
    budget = predcp.Budget({"a": 1.0, "b": 1.0}, pi)
    with pytest.raises(ValueError, match=r"a map for each name of the budget, \['a', 'b'\]"):
        predcp.BudgetPrior(budget, {"a": MAPS["a"]})
    with pytest.raises(ValueError, match="budget must be a Budget"):
        predcp.BudgetPrior(pi, MAPS)
    with pytest.raises(ValueError, match="has 3 scales, the budget 2 names"):
        predcp.BudgetPrior(budget, predcp.SeparateComplexity(MAPS))
    two = predcp.SeparateComplexity([MAPS["a"], MAPS["b"]])
    with pytest.raises(ValueError, match='total="together" needs the divergence of all components'):
        predcp.BudgetPrior(budget, two, total="together")
    with pytest.raises(ValueError, match='total must be "sum" or "together"'):
        predcp.BudgetPrior(budget, two, total="mean")
    with pytest.raises(ValueError, match=r"maps\['v'\] must be a map of one positive scale"):
        predcp.SeparateComplexity({"v": two})
    with pytest.raises(ValueError, match="maps must hold at least one map"):
        predcp.SeparateComplexity([])
    assert "unknown" in predcp.diagnose(predcp.BudgetPrior(budget, two)).reasons[-1]
