"""Gibbs sampling against draws of the prior, NUTS, closed forms, and itself."""

import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from scipy import stats

import predcp
from predcp._numerics.chains import bulk_ess, rank_normalised_rhat
from predcp.linear import (
    ECP,
    Gibbs,
    Horseshoe,
    Nuts,
    PredCP,
    Ridge,
    Target,
    linear_regression,
    logistic_regression,
)
from predcp.linear._bounce import bounced_logits
from predcp.linear._lattice import lattice_sample
from predcp.linear._polya_gamma import polya_gamma
from predcp.linear._slice import slice_sample

RANDOM = np.random.default_rng(7)
# An exponential pi has no tail that would need millions of draws to see.
PI = predcp.Exponential(mean=0.2)
MANY_ROWS = jnp.asarray(RANDOM.normal(size=(12, 2)))
# More columns than rows, two of them nearly the same.
MANY_COLUMNS = jnp.asarray(RANDOM.normal(size=(4, 6)) @ np.diag([1, 1, 1, 1, 1, 0.5]))
MANY_COLUMNS = MANY_COLUMNS.at[:, 1].set(MANY_COLUMNS[:, 0] + 0.1 * MANY_COLUMNS[:, 1])


@pytest.mark.parametrize("c", [0.0, 2.4, 2.9, 60.0, 1e4])
def test_polya_gamma_has_its_moments_and_transform(c):
    omega = np.asarray(polya_gamma(jax.random.key(3), jnp.full(200_000, c)))
    mean = 0.25 if c == 0 else np.tanh(c / 2) / (2 * c)
    assert abs(omega.mean() - mean) < 4.5 * omega.std() / np.sqrt(omega.size)
    # E exp(-t omega) = cosh(c / 2) / cosh(sqrt((c^2 / 2 + t) / 2)), with t of the size of 1 / mean.
    t = 1.0 / mean
    high = np.sqrt((0.5 * c * c + t) / 2)
    log_transform = (c / 2 + np.log1p(np.exp(-c))) - (high + np.log1p(np.exp(-2 * high)))
    seen = np.exp(-t * omega)
    assert abs(seen.mean() - np.exp(log_transform)) < 4.5 * seen.std() / np.sqrt(omega.size)


def test_polya_gamma_in_single_precision_stays_positive():
    omega = polya_gamma(jax.random.key(0), jnp.geomspace(1e-30, 1e15, 1000, dtype=jnp.float32))
    assert omega.dtype == jnp.float32
    assert np.all(np.isfinite(omega)) and np.all(np.asarray(omega) > 0.0)


def test_slices_follow_their_density():
    def log_density(value):
        return jnp.where(value > 0.0, stats_log_gamma(value), jnp.nan)

    def stats_log_gamma(value):
        return 2.0 * jnp.log(jnp.maximum(value, 1e-30)) - value

    def step(value, key):
        value = slice_sample(key, log_density, value, 1.0)
        return value, value

    keys = jax.random.split(jax.random.key(1), 20_000)
    _, values = jax.jit(lambda k: jax.lax.scan(step, jnp.asarray(1.0), k))(keys)
    assert stats.kstest(np.asarray(values)[::10], stats.gamma(3).cdf).pvalue > 1e-3


def test_a_slice_without_a_density_stays():
    start = jnp.asarray(-1.0)
    assert slice_sample(jax.random.key(0), lambda v: jnp.log(v), start, 1.0) == start


# Each as a log density and its distribution: half a line, two far modes, a tail without a mean.
LATTICE_TARGETS = {
    "gamma": (
        lambda v: jnp.where(v > 0.0, 2.0 * jnp.log(jnp.abs(v)) - v, jnp.nan),
        stats.gamma(3),
    ),
    "two-modes": (
        lambda v: jnp.logaddexp(-0.5 * (v / 0.1) ** 2, -0.5 * ((v - 30.0) / 0.1) ** 2),
        None,
    ),
    "cauchy": (lambda v: -jnp.log1p(v**2), stats.cauchy()),
}


@pytest.mark.parametrize("name", LATTICE_TARGETS)
def test_a_lattice_leaves_a_density_alone(name):
    """Independent starts from the exact distribution, one move, then the same distribution."""
    log_density, known = LATTICE_TARGETS[name]
    count, random = 20_000, np.random.default_rng(2)
    if known is None:
        starts = 0.1 * random.normal(size=count) + 30.0 * random.integers(0, 2, size=count)
    else:
        starts = known.rvs(size=count, random_state=random)
    keys = jax.random.split(jax.random.key(4), count)
    move = jax.jit(jax.vmap(lambda key, start: lattice_sample(key, log_density, start, 32)))
    after = np.asarray(move(keys, jnp.asarray(starts)))
    moved = np.abs(after - starts) > 0.0
    assert np.mean(moved) > 0.5
    if known is None:
        # A far mode is found, and nothing settles in between.
        assert np.mean(np.abs(after - starts) > 15.0) > 0.005
        after = np.where(after > 15.0, after - 30.0, after)
        known = stats.norm(scale=0.1)
    assert stats.kstest(after, known.cdf).pvalue > 1e-3


def test_a_lattice_without_a_density_stays():
    start = jnp.asarray(-1.0)
    move = jax.jit(jax.vmap(lambda key: lattice_sample(key, jnp.log, start, 8)))
    assert np.all(move(jax.random.split(jax.random.key(0), 100)) == start)


def test_paths_leave_a_logistic_posterior_alone():
    """Two correlated logits: means against quadrature, from paths alone."""
    covariance = jnp.asarray([[9.0, 6.0], [6.0, 16.0]])
    root, signs = jnp.linalg.cholesky(covariance), jnp.asarray([1.0, -1.0])

    def step(eta, key):
        velocity = root @ jax.random.normal(jax.random.fold_in(key, 1), (2,))
        eta, ended = bounced_logits(key, eta, velocity, covariance, signs, 1000)
        return eta, (eta, ended)

    keys = jax.random.split(jax.random.key(5), 20_000)
    _, (eta, ended) = jax.jit(lambda k: jax.lax.scan(step, jnp.zeros(2), k))(keys)
    assert np.mean(ended) > 0.999
    grid = np.linspace(-25, 25, 801)
    first, second = np.meshgrid(grid, grid, indexing="ij")
    points = np.stack([first, second], -1)
    prior = stats.multivariate_normal([0, 0], np.asarray(covariance)).pdf(points)
    weight = prior / (1 + np.exp(-first)) / (1 + np.exp(second))
    weight /= weight.sum()
    for value, number in ((first, 0), (second, 1)):
        expected = (weight * value).sum()
        seen = np.asarray(eta[:, number])[None, :, None]
        error = seen.std() / np.sqrt(float(bulk_ess(seen)[0]))
        assert abs(seen.mean() - expected) < 4.5 * error


def kept(sites, x, y):
    size = jnp.log(jnp.abs(sites["beta"]))
    return {"log_tau": sites["log_tau"], "size": size, "eta": x @ sites["beta"]} | {
        name: sites[name] for name in ("alpha", "sigma") if name in sites
    }


def bounded(values):
    """Heavy-tailed quantities as ones that have a mean."""
    return np.tanh(values / 4.0)


class Mean(NamedTuple):
    """Means, and the variances of their errors."""

    value: np.ndarray
    error: np.ndarray

    @classmethod
    def of_chains(cls, draws):
        draws = bounded(draws)
        return cls(draws.mean((0, 1)), draws.var((0, 1)) / bulk_ess(draws))

    @classmethod
    def of_weights(cls, draws, weights):
        draws = bounded(draws)
        mean = np.tensordot(weights, draws, 1)
        return cls(mean, np.tensordot(weights**2, (draws - mean) ** 2, 1))

    def gap(self, other):
        """Their difference in standard errors."""
        return np.abs(self.value - other.value) / np.sqrt(self.error + other.error)


def gibbs(lattice):
    return Gibbs(warmup=200, draws=3000, seed=1, chunk=400, lattice=lattice)


def compared(target, means, sampler):
    """Gibbs sampling finds these means."""
    ours = sampler.sample(target)[0]
    assert np.all(np.isfinite(ours.statistics["lp"]))
    for name, mine in ours.values.items():
        assert np.max(rank_normalised_rhat(mine)) < 1.02, name
        assert np.all(Mean.of_chains(mine).gap(means[name]) < 4.5), name


def weighted_prior(target, count):
    """Means of the posterior from draws of the prior, each as likely as it makes the data: exact."""
    (x, y), options = target.data, target.options

    @jax.jit
    @jax.vmap
    def drawn(key):
        seeded = numpyro.handlers.seed(target.model, key)
        trace = numpyro.handlers.trace(seeded).get_trace(x, **options)
        sites = {name: site["value"] for name, site in trace.items()}
        return kept(sites, x, y), jnp.sum(trace["y"]["fn"].log_prob(y))

    values, log_weights = drawn(jax.random.split(jax.random.key(17), count))
    weights = np.exp(np.asarray(log_weights) - np.max(log_weights))
    weights /= weights.sum()
    assert 1.0 / np.sum(weights**2) > 5000
    return {name: Mean.of_weights(np.asarray(v), weights) for name, v in values.items()}


CLASSES = jnp.asarray(RANDOM.integers(0, 2, size=12))


@pytest.mark.long
@pytest.mark.parametrize(
    ("prior", "design", "intercept", "lattice"),
    [
        (ECP(PI), MANY_COLUMNS, True, 0),
        (PredCP(PI), MANY_COLUMNS, False, 0),
        (PredCP(PI), MANY_COLUMNS, False, 32),
        (ECP(PI), MANY_ROWS, False, 32),
        (PredCP(PI), MANY_ROWS, True, 0),
        (Horseshoe(), MANY_ROWS, True, 32),
    ],
    ids=[
        "ecp-columns",
        "predcp-columns",
        "predcp-columns-lattice",
        "ecp-rows-lattice",
        "predcp-rows",
        "half-cauchy-rows-lattice",
    ],
)
def test_logistic_posteriors_are_exact(prior, design, intercept, lattice):
    data, options = (design, CLASSES[: len(design)]), {"prior": prior, "intercept": intercept}
    target = Target(logistic_regression, data, options, keep=kept)
    compared(target, weighted_prior(target, 200_000), gibbs(lattice))


RESPONSES = jnp.asarray(RANDOM.normal(size=12))


@pytest.mark.long
@pytest.mark.parametrize(
    ("prior", "lattice"), [(ECP(PI), 0), (PredCP(PI), 32)], ids=["ecp", "predcp-lattice"]
)
def test_linear_posteriors_are_those_of_nuts(prior, lattice):
    options = {"prior": prior, "intercept": True}
    target = Target(linear_regression, (MANY_ROWS, RESPONSES), options, keep=kept)
    theirs = Nuts(warmup=500, draws=2000, target_acceptance=0.95, chunk=500).sample(target)[0]
    means = {name: Mean.of_chains(values) for name, values in theirs.values.items()}
    compared(target, means, gibbs(lattice))


@pytest.mark.parametrize("columns", [1, pytest.param(3, marks=pytest.mark.long)])
def test_estimators_take_it_by_name_or_as_an_object(columns):
    from predcp.linear import LinearRegression

    x = RANDOM.normal(size=(30, columns))
    y = 2.0 * x[:, 0] + 0.1 * RANDOM.normal(size=30)
    weights = np.where(np.arange(30) < 25, 1.0, 0.5)
    quick = Gibbs(chains=2, warmup=100, draws=200, chunk=100, lattice=16)
    seen = []

    def report(done, total, words=None):
        seen.append((time.monotonic(), done, total, words))

    model = LinearRegression(prior="ecp", inference=quick, progress=report)
    model.fit(x, y, sample_weight=weights)
    assert abs(model.coef_[0] - 2.0) < 0.1
    # Compilation is named, and then progress moves at least every two seconds.
    assert seen[0][1:] == (0, seen[-1][1], "compiling")
    times, done, _, words = zip(*seen[1:])
    assert set(words) == {"sampling"} and list(done) == sorted(set(done)) and len(done) > 3
    assert np.max(np.diff(times)) < 2.0
    assert "divergent" not in str(model.summary())


def weighted(x, y, weights, prior, intercept):
    logistic_regression(x, y, prior, intercept=intercept, weights=weights)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: (logistic_regression, (MANY_ROWS, CLASSES), Ridge()), "half-Cauchy local scales"),
        (
            lambda: (weighted, (MANY_ROWS, CLASSES, jnp.ones(12)), Horseshoe()),
            "no sample weights",
        ),
    ],
)
def test_other_models_are_refused_with_a_cure(make, message):
    model, data, prior = make()
    target = Target(model, data, {"prior": prior, "intercept": False})
    with pytest.raises(ValueError, match=message) as error:
        Gibbs().sample(target)
    assert "inference='nuts'" in str(error.value)


@pytest.mark.parametrize("name", ["handovers", "paths", "lattice"])
def test_bad_settings_are_named(name):
    with pytest.raises(ValueError, match=name):
        Gibbs(**{name: -1})
