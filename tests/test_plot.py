"""Each picture draws the numbers that the library computes, on the axes it is given."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist
import pytest

import predcp
from predcp import plot

plt.switch_backend("Agg")


@pytest.fixture
def ax():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


@pytest.fixture(scope="module")
def prior():
    return predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.LinearEvidence(1.0))


@pytest.fixture(scope="module")
def bounded():
    """The PredCP of a Bernoulli outcome, whose divergence is at most log 2."""
    return predcp.PredictiveComplexity(
        lambda theta, x: dist.Bernoulli(logits=theta * x),
        lambda tau, xi: tau * xi,
        jnp.array(0.0),
        jnp.ones(1),
        jnp.array([1.0]),
    )


@pytest.fixture(scope="module")
def two_scales():
    hidden = jnp.abs(jax.random.normal(jax.random.key(0), (5, 3)))
    weights = predcp.normal_noise(jax.random.key(1), 4, (2, 3, 3))
    output_weights = jax.random.normal(jax.random.key(2), (3, 1))
    complexity = predcp.DepthComplexity(hidden, weights, output_weights)
    return predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity)


def test_density_is_the_priors_with_its_second_mode_at_2_455(ax, prior):
    assert plot.density(prior, ax) is ax
    (line,) = ax.lines
    tau, height = line.get_data()
    np.testing.assert_allclose(height, np.exp(prior.log_prob(tau)), rtol=1e-12)
    np.testing.assert_allclose(tau[-1], prior.icdf(0.8), rtol=1e-12)
    away = tau > 1.0
    assert abs(tau[away][height[away].argmax()] - 2.455) < tau[1] - tau[0]
    assert ax.get_xlabel() == r"$\tau$ (variance)"


def test_density_of_the_log_scale_and_of_a_coefficient_span_both_sides(prior):
    signed = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.CoefficientEvidence(1.0))
    for drawn, label in ((prior.log_scale(), r"$\log \tau$"), (signed, r"$\beta$")):
        axes = plot.density(drawn)
        at, height = axes.lines[0].get_data()
        np.testing.assert_allclose(at[[0, -1]], drawn.icdf(jnp.array([0.2, 0.8])), rtol=1e-12)
        np.testing.assert_allclose(height, np.exp(drawn.log_prob(at)), rtol=1e-12)
        assert axes.get_xlabel() == label
        plt.close(axes.figure)


def test_lines_take_the_callers_style_and_the_colour_of_pi(ax, prior):
    grid = np.array([0.5, 1.0])
    plot.density(prior, ax, grid, label="mine", linestyle=":")
    plot.divergence_prior(predcp.Exponential(mean=0.5), ax, grid)
    plot.divergence_prior(dist.LogNormal(), ax, grid)
    mine, exponential, other = ax.lines
    assert (mine.get_label(), mine.get_linestyle()) == ("mine", ":")
    np.testing.assert_array_equal(mine.get_xdata(), grid)
    assert len({mine.get_color(), exponential.get_color(), other.get_color()}) == 3
    assert (exponential.get_label(), other.get_label()) == ("Exponential", "LogNormal")


def test_divergence_prior_is_pi(ax):
    pi = predcp.Gamma(shape=0.2, scale=2.0)
    kappa, height = plot.divergence_prior(pi, ax).lines[0].get_data()
    np.testing.assert_allclose(height, np.exp(pi.log_prob(kappa)), rtol=1e-12)
    assert kappa[0] > 0.0


def test_marginal_integrates_the_normal_over_the_prior(ax):
    # An exponential variance of mean m makes a Laplace coefficient of scale sqrt(m / 2).
    exponential = dist.Exponential(1.0)
    beta = np.array([0.3, 1.0, 2.5])
    plot.marginal(exponential, ax, beta, horseshoe=False, unit="variance")
    (line,) = ax.lines
    np.testing.assert_allclose(
        line.get_ydata(), np.exp(dist.Laplace(0.0, 0.5**0.5).log_prob(beta)), rtol=1e-6
    )


def test_a_grid_from_zero_follows_a_pole():
    grid = plot.from_zero(4.0, 50)
    assert grid.shape == (50,) and grid[-1] == 4.0 and 0.0 < grid[0] < 1e-4
    assert np.all(np.diff(grid) > 0.0) and np.max(np.diff(grid)) < 4.0 * 3 / 50


def test_marginal_steps_over_the_pole_and_draws_the_horseshoe_once(ax, prior):
    plot.marginal(prior, ax)
    plot.marginal(prior, ax, label="again")
    ours, horseshoe, again = ax.lines
    assert np.all(np.isfinite(ours.get_ydata())) and 0.0 not in ours.get_xdata()
    assert (horseshoe.get_label(), horseshoe.get_linestyle()) == ("horseshoe", "--")
    assert again.get_label() == "again"
    beta = horseshoe.get_xdata()[[0, 150]]
    np.testing.assert_allclose(
        horseshoe.get_ydata()[[0, 150]],
        predcp.marginal(dist.HalfCauchy(1.0), beta, unit="standard deviation"),
    )


def test_shrinkage_profile_of_the_horseshoe_is_beta(ax, prior):
    plot.shrinkage_profile(prior, ax)
    ours, horseshoe = ax.lines
    shrinkage = ours.get_xdata()
    tau = 1.0 / shrinkage - 1.0
    np.testing.assert_allclose(
        ours.get_ydata(), np.exp(prior.log_prob(tau)) / shrinkage**2, rtol=1e-9
    )
    np.testing.assert_allclose(
        horseshoe.get_ydata(), np.exp(dist.Beta(0.5, 0.5).log_prob(shrinkage)), rtol=1e-9
    )


def test_complexity_of_an_unbounded_map_is_one_line(ax):
    evidence = predcp.LinearEvidence(1.0)
    (line,) = plot.complexity(evidence, ax).lines
    tau, kappa = line.get_data()
    np.testing.assert_allclose(kappa, (tau - np.log1p(tau)) / 2, rtol=1e-8)
    np.testing.assert_allclose(kappa[[0, -1]], [1e-3, 1e2], rtol=1e-9)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlabel() == r"$\tau$ (variance)"


def test_complexity_marks_the_supremum(ax, bounded):
    plot.complexity(bounded, ax, color="red")
    curve, bound = ax.lines
    np.testing.assert_allclose(bound.get_ydata(), np.log(2.0), rtol=1e-12)
    assert (bound.get_color(), bound.get_linestyle()) == ("red", "--")
    np.testing.assert_allclose(curve.get_ydata()[-1], 0.999 * np.log(2.0), rtol=1e-9)


@pytest.mark.parametrize("log_scale", [True, False])
def test_joint_density_has_its_mode_where_the_prior_has(ax, two_scales, log_scale):
    grid = np.geomspace(0.01, 10.0, 12)
    plot.joint_density(two_scales, ax, grid, grid, log_scale=log_scale)
    pairs = np.stack(np.meshgrid(grid, grid), axis=-1)
    density = np.exp(two_scales.log_prob(pairs)) * (pairs.prod(-1) if log_scale else 1.0)
    (contours,) = ax.collections
    assert contours.levels[-2] <= density.max() <= contours.levels[-1]
    assert ax.get_xscale() == ("log" if log_scale else "linear")
    assert (ax.get_xlabel(), ax.get_ylabel()) == (r"$\tau_1$ (variance)", r"$\tau_2$ (variance)")


def test_joint_density_covers_the_middle_of_the_prior(ax, two_scales):
    plot.joint_density(two_scales, ax)
    ends = two_scales.icdf(jnp.array([[0.1, 0.5], [0.9, 0.5]]))[:, 0]
    np.testing.assert_allclose(ax.get_xlim(), ends, rtol=1e-6)


def test_bad_arguments_are_named(prior, two_scales):
    evidence = predcp.LinearEvidence(1.0)
    batched = predcp.ComplexityPrior(predcp.LogCauchy(scale=jnp.ones(2)), evidence)
    signed = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.CoefficientEvidence(1.0))
    calls = {
        "prior must be a NumPyro": lambda: plot.density(evidence),
        "prior must be a distribution of one number": lambda: plot.density(batched),
        "tau must be positive": lambda: plot.density(prior, tau=[-1.0, 1.0]),
        "tau must be finite": lambda: plot.density(prior, tau=[[1.0]]),
        "tau must be given": lambda: plot.density(dist.Weibull(1.0, 1.0)),
        "ax must be": lambda: plot.density(prior, "left"),
        "pi must be": lambda: plot.divergence_prior(0.5),
        "kappa must be positive": lambda: plot.divergence_prior(prior.pi, kappa=[0.0]),
        "prior must be a distribution of a scale": lambda: plot.marginal(signed),
        "unit must be given for HalfCauchy": lambda: plot.marginal(dist.HalfCauchy(1.0)),
        "beta must be finite": lambda: plot.marginal(prior, beta=[np.nan]),
        "shrinkage must be below 1": lambda: plot.shrinkage_profile(prior, shrinkage=[1.0]),
        "map must be one of predcp's": lambda: plot.complexity(prior),
        "map must be a map of one": lambda: plot.complexity(two_scales.complexity),
        "prior must be on two scales": lambda: plot.joint_density(prior),
        "tau_2 must be positive": lambda: plot.joint_density(two_scales, tau_2=[0.0, 1.0]),
    }
    for message, call in calls.items():
        with pytest.raises(ValueError, match=message):
            call()
    plt.close("all")


def test_importing_predcp_does_not_import_matplotlib():
    code = "import predcp, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
