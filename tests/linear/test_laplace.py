"""Laplace's method: against closed forms, quadrature, finite differences and NUTS."""

import time
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from predcp.linear import (
    CoefficientPrior,
    Laplace,
    Nuts,
    Target,
    _conditional,
    linear_regression,
    logistic_regression,
)
from predcp.linear._conditional import ByColumns, ByRows
from predcp.linear._gaussian import NoMode, normal_at_mode
from predcp.linear._likelihood import Likelihood
from predcp.linear._priors import PRESETS

GENERATOR = np.random.default_rng(0)


class FixedScale(CoefficientPrior):
    """`beta ~ N(0, scale^2)`."""

    def coefficients(self, setting):
        xi = numpyro.sample("xi", dist.Normal().expand(setting.shape).to_event(1))
        return numpyro.deterministic("beta", 0.7 * xi)


def conditional(family, rows, columns, outputs=1, seed=0, form=None):
    generator = np.random.default_rng(seed)
    design = generator.standard_normal((rows, columns))
    outcomes = {
        "normal": generator.standard_normal(rows),
        "bernoulli": generator.integers(0, 2, rows),
        "categorical": generator.integers(0, outputs, rows),
    }[family]
    scales = np.exp(generator.standard_normal((columns, outputs)))
    weights = generator.integers(1, 3, rows).astype(float)
    form = form or (ByRows if rows < columns else ByColumns)
    return form(Likelihood(family, outcomes, weights, 0.8), design, scales)


CASES = [
    (family, rows, columns, outputs)
    for family, outputs in (("normal", 1), ("bernoulli", 1), ("categorical", 3))
    for rows, columns in ((12, 4), (5, 9))
]


def test_a_column_of_ones_need_not_be_stored(monkeypatch):
    """In blocks of columns, the last of which is shorter."""
    monkeypatch.setattr(_conditional, "_AT_ONCE", 4)
    whole = conditional("categorical", 5, 9, 3)
    whole.design[:, -1] = 1.0
    without = replace(whole, design=whole.design[:, :-1].copy())
    assert without.minus_log_evidence() == pytest.approx(whole.minus_log_evidence(), rel=1e-12)
    for mine, other in zip(without.slope(), whole.slope()):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)
    draws = [model.draw(np.random.default_rng(1)) for model in (without, whole)]
    for mine, other in zip(*draws):
        np.testing.assert_allclose(mine, other, rtol=1e-9)


@pytest.mark.parametrize(("family", "rows", "columns", "outputs"), CASES)
def test_the_evidence_has_the_right_gradient(family, rows, columns, outputs):
    model = conditional(family, rows, columns, outputs)

    def moved(log_scales, log_noise=0.0):
        noise = model.likelihood.noise * np.exp(log_noise)
        changed = replace(
            model,
            likelihood=replace(model.likelihood, noise=noise),
            scales=model.scales * np.exp(log_scales),
        )
        return changed.minus_log_evidence()

    slope, step = model.slope(), 1e-5
    for entry in np.ndindex(model.scales.shape):
        direction = np.zeros(model.scales.shape)
        direction[entry] = step
        expected = (moved(direction) - moved(-direction)) / (2 * step)
        np.testing.assert_allclose(slope.log_scales[entry], expected, rtol=1e-6, atol=1e-8)
    if family == "normal":
        nothing = np.zeros(model.scales.shape)
        expected = (moved(nothing, step) - moved(nothing, -step)) / (2 * step)
        np.testing.assert_allclose(slope.log_noise, expected, rtol=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [(12, 4), (5, 9)])
def test_the_evidence_of_a_normal_outcome_is_exact(rows, columns):
    model = conditional("normal", rows, columns)
    likelihood = replace(model.likelihood, weights=np.ones(rows))
    model = replace(model, likelihood=likelihood)
    covariance = (model.design * model.scales[:, 0] ** 2) @ model.design.T
    covariance += likelihood.noise**2 * np.eye(rows)
    exact = multivariate_normal(np.zeros(rows), covariance).logpdf(likelihood.outcomes)
    np.testing.assert_allclose(-model.minus_log_evidence(), exact, rtol=1e-10)


@pytest.mark.parametrize(("family", "rows", "columns", "outputs"), CASES)
def test_draws_have_the_covariance_of_the_curvature(family, rows, columns, outputs):
    model = conditional(family, rows, columns, outputs)
    generator = np.random.default_rng(1)
    draws, densities, objectives = zip(*(model.draw(generator) for _ in range(4000)))
    flat = np.stack(draws).reshape(4000, -1)
    units = np.eye(flat.shape[1]).reshape(-1, *model.scales.shape)
    square = model.likelihood.square_root(model.predictor(model.mode))
    factor = np.stack([(model.predictor(u)[:, None] @ square).ravel() for u in units], axis=1)
    curvature = np.eye(flat.shape[1]) + factor.T @ factor
    whitened = (flat - model.mode.reshape(-1)) @ np.linalg.cholesky(curvature)
    np.testing.assert_allclose(np.cov(whitened.T), np.eye(flat.shape[1]), atol=0.12)
    np.testing.assert_allclose(whitened.mean(axis=0), 0.0, atol=0.08)
    expected = multivariate_normal(model.mode.reshape(-1), np.linalg.inv(curvature))
    np.testing.assert_allclose(densities[:5], expected.logpdf(flat[:5]), rtol=1e-6)
    for u, objective in zip(draws[:5], objectives):
        eta = model.design @ (model.scales * u)
        direct = 0.5 * np.sum(u**2) - model.likelihood.log_density(eta)
        np.testing.assert_allclose(objective, direct, rtol=1e-9)


@pytest.mark.parametrize(("family", "rows", "columns", "outputs"), CASES)
def test_the_two_forms_agree_and_a_start_changes_nothing(family, rows, columns, outputs):
    by_rows, by_columns = (
        conditional(family, rows, columns, outputs, form=form) for form in (ByRows, ByColumns)
    )
    np.testing.assert_allclose(by_rows.mode, by_columns.mode, rtol=1e-6, atol=1e-7)
    values = [model.minus_log_evidence() for model in (by_rows, by_columns)]
    np.testing.assert_allclose(*values, rtol=1e-9)
    slopes = [model.slope() for model in (by_rows, by_columns)]
    np.testing.assert_allclose(slopes[0].log_scales, slopes[1].log_scales, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(slopes[0].log_noise, slopes[1].log_noise, rtol=1e-8)
    for model, value in zip((by_rows, by_columns), values):
        for away in (0.0, 3.0, 300.0):
            started = replace(model, start=model.solution.eta + away)
            np.testing.assert_allclose(started.minus_log_evidence(), value, rtol=1e-8)


@pytest.mark.parametrize("dimension", [3, 400])
def test_a_normal_density_is_found_whatever_its_dimension(dimension):
    generator = np.random.default_rng(2)
    mean = generator.standard_normal(dimension)
    spikes = generator.standard_normal((2, dimension))
    precision = 1.7 * np.eye(dimension) + 5.0 * spikes.T @ spikes
    # One direction flatter than the rest.
    flat = generator.standard_normal(dimension)
    flat -= spikes.T @ np.linalg.solve(spikes @ spikes.T, spikes @ flat)
    precision -= 1.2 * np.outer(flat, flat) / (flat @ flat)

    def potential(theta):
        slope = precision @ (theta - mean)
        return 0.5 * slope @ (theta - mean), slope

    normal = normal_at_mode(potential, np.zeros(dimension))
    np.testing.assert_allclose(normal.mode, mean, atol=1e-5)
    units, _ = normal.transform(np.eye(dimension))
    root = units - normal.mode
    np.testing.assert_allclose(root.T @ root, np.linalg.inv(precision), atol=1e-5)
    draws, log_density = normal.transform(generator.standard_normal((3, dimension)))
    expected = multivariate_normal(mean, np.linalg.inv(precision))
    np.testing.assert_allclose(log_density, expected.logpdf(draws), rtol=1e-5)


def test_a_search_that_steps_out_of_floating_point_goes_on():
    def potential(theta):
        if np.abs(theta - 1.0).max() > 1.5:
            return np.inf, np.zeros_like(theta)
        return np.sum(20.0 * (theta - 2.0) ** 4 + (theta - 2.0) ** 2), (
            80.0 * (theta - 2.0) ** 3 + 2.0 * (theta - 2.0)
        )

    normal = normal_at_mode(potential, np.array([0.0, 1.0]))
    np.testing.assert_allclose(normal.mode, 2.0, atol=1e-5)
    assert normal.slope < 1e-4


def test_a_density_without_a_start_is_refused():
    with pytest.raises(NoMode, match="no finite density"):
        normal_at_mode(lambda theta: (np.nan, theta), np.zeros(2))


def test_a_ridge_of_infinite_length_is_still_a_distribution():
    normal = normal_at_mode(
        lambda theta: (theta[0] ** 2, np.array([2 * theta[0], 0.0])), np.ones(2)
    )
    draws, _ = normal.transform(np.random.default_rng(0).standard_normal((1000, 2)))
    assert np.isfinite(draws).all() and draws.std(axis=0)[1] < 5.0


def test_a_conjugate_model_is_recovered():
    x = GENERATOR.standard_normal((20, 3))
    y = x @ [1.0, 0.0, -0.5] + 0.3 * GENERATOR.standard_normal(20)

    def model(x, y, prior):
        beta = prior.coefficients(type("Setting", (), {"shape": (3,)}))
        numpyro.sample("y", dist.Normal(x @ beta, 0.3), obs=y)

    target = Target(model, (jnp.asarray(x), jnp.asarray(y)), {"prior": FixedScale()})
    draws = Laplace(draws=4000).sample(target)[0].values
    precision = x.T @ x / 0.09 + np.eye(3) / 0.49
    covariance = np.linalg.inv(precision)
    mean = covariance @ x.T @ y / 0.09
    deviation = np.sqrt(np.diagonal(covariance))
    z = (draws["beta"][0] - mean) / deviation
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=0.08)
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=0.05)


def test_one_coefficient_against_quadrature():
    x = np.linspace(-1.5, 1.5, 12)[:, None]
    y = (x[:, 0] + 0.8 * np.sin(7 * x[:, 0]) > 0).astype(int)
    target = Target(
        logistic_regression,
        (jnp.asarray(x), jnp.asarray(y)),
        {"prior": PRESETS["ridge"], "intercept": False},
    )
    draws = Laplace(draws=2000).sample(target)[0].values["beta"].reshape(-1)
    log_tau = np.linspace(-8, 8, 400)[:, None, None]
    beta = np.linspace(-15, 40, 2000)[None, :, None]
    log_prior = log_tau - np.logaddexp(0.0, 2 * log_tau) - 0.5 * (beta / np.exp(log_tau)) ** 2
    signed = np.where(y > 0, 1.0, -1.0) * x[:, 0]
    log_joint = log_prior[..., 0] - log_tau[..., 0]
    log_joint = log_joint + np.log(expit(signed * beta)).sum(axis=-1)
    weight = np.exp(log_joint - log_joint.max()).sum(axis=0)
    mean = (weight * beta[0, :, 0]).sum() / weight.sum()
    deviation = np.sqrt((weight * (beta[0, :, 0] - mean) ** 2).sum() / weight.sum())
    # A skewed posterior: the normal at its mode is near, not exact.
    assert abs(draws.mean() - mean) < 0.35 * deviation
    assert abs(draws.std() / deviation - 1.0) < 0.3


@pytest.mark.long
@pytest.mark.parametrize("name", ["half-cauchy", "predcp", "ecp"])
def test_nuts_agrees(name):
    generator = np.random.default_rng(3)
    x = generator.standard_normal((40, 4))
    y = x @ [1.0, -0.7, 0.0, 0.0] + 0.5 * generator.standard_normal(40)
    y = (y - y.mean()) / y.std()
    target = Target(linear_regression, (jnp.asarray(x), jnp.asarray(y)), {"prior": PRESETS[name]})
    approximate = Laplace(draws=2000).sample(target)[0].values
    sampled = Nuts(chains=2, warmup=400, draws=1000).sample(target)[0].values
    for site in ("beta", "alpha", "sigma"):
        ours, theirs = (values[site].reshape(2000, -1) for values in (approximate, sampled))
        deviation = theirs.std(axis=0)
        np.testing.assert_allclose(
            ours.mean(axis=0), theirs.mean(axis=0), atol=0.25 * deviation.max()
        )
        np.testing.assert_allclose(ours.std(axis=0) / deviation, 1.0, atol=0.2)


def test_many_columns_few_rows_and_several_problems():
    generator = np.random.default_rng(4)
    x = generator.standard_normal((2, 10, 300))
    y = (x[:, :, 0] > 0).astype(int)
    target = Target(
        logistic_regression,
        (jnp.asarray(x), jnp.asarray(y)),
        {"prior": PRESETS["half-cauchy"]},
        problems=2,
        keep=lambda sites, *data: {"beta": sites["beta"]},
    )
    seen = []
    draws = Laplace(draws=60).sample(target, lambda done, total: seen.append((done, total)))
    assert len(draws) == 2
    for one in draws:
        assert one.values["beta"].shape == (1, 60, 300)
        assert np.isfinite(one.values["beta"]).all() and one.figures["slope"] < 0.1
    assert seen[-1][0] == seen[-1][1] and seen == sorted(seen)


@pytest.mark.parametrize("columns", [2, 30])
def test_a_scale_wider_than_rounding_allows_is_no_harm(columns):
    def model(x, y):
        xi = numpyro.sample("xi", dist.Normal().expand([columns]).to_event(1))
        log_tau = numpyro.sample("log_tau", dist.Normal(60.0, 1.0))
        beta = numpyro.deterministic("beta", jnp.exp(log_tau) * xi)
        numpyro.sample("y", dist.Normal(x @ beta, 0.1), obs=y)

    generator = np.random.default_rng(5)
    x = generator.standard_normal((10, columns))
    y = x[:, 0] + 0.1 * generator.standard_normal(10)
    draws = Laplace(draws=50).sample(Target(model, (jnp.asarray(x), jnp.asarray(y))))[0]
    fitted = draws.values["beta"][0] @ x.T
    assert np.isfinite(draws.values["beta"]).all()
    np.testing.assert_allclose(fitted.mean(axis=0), y, atol=0.3)
    assert draws.values["log_tau"].min() > 50.0


def test_a_model_that_is_not_linear_is_refused_with_the_cure():
    def model(x, y):
        beta = numpyro.sample("beta", dist.Normal().expand([3]).to_event(1))
        numpyro.sample("y", dist.Poisson(jnp.exp(x @ beta)), obs=y)

    target = Target(model, (jnp.ones((4, 3)), jnp.ones(4, int)))
    with pytest.raises(ValueError, match="Use inference='nuts'"):
        Laplace().sample(target)


def test_too_few_draws_are_refused():
    with pytest.raises(ValueError, match="draws must be at least 4"):
        Laplace(draws=3)


@pytest.mark.long
@pytest.mark.parametrize(
    ("rows", "columns", "most"), [(82, 5966, 16.0), (1000, 30, 15.0)], ids=["wide", "long"]
)
def test_a_fit_takes_seconds(rows, columns, most):
    """Seconds of a processor, compilation included: on two cores a fit takes about half."""
    generator = np.random.default_rng(6)
    x = generator.standard_normal((rows, columns))
    y = (x[:, 3] - x[:, 7] + generator.logistic(size=rows) > 0).astype(int)
    target = Target(
        logistic_regression, (jnp.asarray(x), jnp.asarray(y)), {"prior": PRESETS["predcp"]}
    )
    began = time.process_time()
    (draws,) = Laplace().sample(target)
    assert time.process_time() - began < most
    assert draws.figures["slope"] < 0.1


def test_progress_names_what_is_done_and_moves_during_the_search():
    generator = np.random.default_rng(7)
    x, y = generator.standard_normal((20, 3)), generator.integers(0, 2, 20)
    target = Target(
        logistic_regression, (jnp.asarray(x), jnp.asarray(y)), {"prior": PRESETS["ridge"]}
    )
    seen = []
    Laplace(draws=30).sample(target, lambda done, total, words=None: seen.append((done, words)))
    done, words = zip(*seen)
    assert list(dict.fromkeys(words)) == ["compiling", "searching for the mode", "drawing"]
    assert list(done) == sorted(done) and words.count("searching for the mode") > 5
