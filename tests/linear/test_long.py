"""Laplace's method on tables of many rows: against all rows used as they are, and exact Gram matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, log_expit
from scipy.stats import norm

from predcp.linear import Laplace, LinearRegression, LogisticRegression, MeanField
from predcp.linear import _long as long
from predcp.linear._condensed import Table, condense
from predcp.linear._priors import PRESETS

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(6000, 4))
SIGNAL = X @ [0.5, -0.3, 0.0, 0.0]
CLASSES = (SIGNAL + RANDOM.logistic(size=6000) > 0).astype(int)
NUMBERS = SIGNAL + RANDOM.normal(size=6000)
WEIGHTS = RANDOM.integers(1, 3, 6000).astype(float)


def as_they_are(monkeypatch):
    monkeypatch.setattr(long, "MANY_ROWS", 10**9)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_a_normal_likelihood_is_condensed_exactly(weights):
    table = Table("normal", X, NUMBERS, weights, True)
    quadratic = condense(table)
    full = np.ones(6000) if weights is None else weights
    for noise in (0.5, 1.3):
        beta = RANDOM.normal(size=5)
        eta = X @ beta[:4] + beta[4]
        wanted = full @ norm.logpdf(NUMBERS, eta, noise)
        observed = quadratic.observed
        few = observed.likelihood(noise).log_density((observed.design @ beta)[:, None])
        assert few == pytest.approx(wanted, rel=1e-11)


def test_a_logistic_likelihood_is_expanded_to_second_order():
    table = Table("bernoulli", X, CLASSES, WEIGHTS, True)
    quadratic = condense(table)

    def exact(beta):
        eta = X @ beta[:4] + beta[4]
        return WEIGHTS @ log_expit(np.where(CLASSES, eta, -eta))

    # The mode under the wide prior: the gradient of the likelihood is that of the prior.
    np.testing.assert_allclose(quadratic.gradient, 0.01 * quadratic.centre, atol=1e-3)
    eta = X @ quadratic.centre[:4] + quadratic.centre[4]
    p = expit(eta)
    design = np.c_[X, np.ones(6000)]
    by_hand = design.T @ ((WEIGHTS * p * (1 - p))[:, None] * design)
    np.testing.assert_allclose(quadratic.curvature, by_hand, rtol=1e-10)
    observed = quadratic.observed
    for distance in (0.0, 0.02):
        beta = quadratic.centre + distance * RANDOM.normal(size=5)
        few = observed.likelihood(1.0).log_density((observed.design @ beta)[:, None])
        assert few + observed.offset == pytest.approx(float(quadratic.at(beta)), abs=1e-6)
        assert few + observed.offset == pytest.approx(exact(beta), abs=0.02 + 1e-9)
        assert table.log_likelihoods(beta[None])[0] == pytest.approx(exact(beta), rel=1e-12)


@pytest.mark.parametrize(
    ("estimator", "y"),
    [(LogisticRegression, CLASSES), (LinearRegression, NUMBERS)],
    ids=["classes", "numbers"],
)
def test_the_answer_is_that_of_all_rows(estimator, y, monkeypatch):
    quick = estimator("ridge", inference=Laplace(draws=400)).fit(X, y, WEIGHTS)
    as_they_are(monkeypatch)
    slow = estimator("ridge", inference=Laplace(draws=400)).fit(X, y, WEIGHTS)
    # The same noise in both: what is left is the error of the quadratic.
    sd = slow.draws_.values["beta"].std(axis=(0, 1))
    difference = quick.draws_.values["beta"] - slow.draws_.values["beta"]
    assert np.abs(difference.mean(axis=(0, 1)) / sd).max() < 0.02
    np.testing.assert_allclose(quick.draws_.values["beta"].std(axis=(0, 1)), sd, rtol=0.02)
    lp = [model.draws_.statistics["lp"].mean() for model in (quick, slow)]
    assert lp[0] == pytest.approx(lp[1], abs=0.05)
    assert quick.draws_.figures["rows"] == 6000 and "rows" not in slow.draws_.figures


def test_a_divergence_over_some_rows_and_its_error():
    """The stated error of kappa is that of samples of rows."""
    model = LogisticRegression("predcp", inference=Laplace(draws=100, map_rows=512)).fit(X, CLASSES)
    figures = model.draws_.figures
    assert figures["map_rows"] == 512
    values = model.draws_.values
    scales = np.median(values["lambda"][0], axis=0)
    tau = np.exp(np.median(values["log_tau"][0]))
    prior = PRESETS["predcp"]
    slopes = tau * scales * np.asarray(prior.noise((4,)))
    # Of one row: the divergence of its coins from fair ones.
    eta = model.columns_.transform(X) @ slopes.T
    p = expit(eta)
    rows = np.mean(np.log(2.0) + p * log_expit(eta) + (1 - p) * log_expit(-eta), axis=1)
    wanted = rows.std() / rows.mean() / np.sqrt(512) * np.sqrt(1.0 - 512 / 6000)
    # An error found from 16 parts is itself known to 18%.
    assert figures["map_error"] == pytest.approx(wanted, rel=0.6)
    assert "a mean over 512 of 6000 rows" in str(model.summary())


def test_rare_classes_are_used_as_they_are():
    """Where the quadratic is far off the rows are used one by one, or the summary warns."""
    rare = np.zeros(6000, int)
    rare[np.argsort(X[:, 0])[-3:]] = 1
    model = LogisticRegression("ridge", inference=Laplace(draws=50)).fit(X, rare)
    assert "rows" not in model.draws_.figures


def test_it_says_what_it_cannot_take():
    with pytest.raises(ValueError, match="map_rows must be at least 2 or None, got 1"):
        Laplace(map_rows=1)


def test_a_column_that_repeats_another():
    twice = np.c_[X, X[:, 0]]
    model = LinearRegression("ridge", inference=Laplace(draws=50)).fit(twice, NUMBERS)
    assert model.draws_.figures["rows"] == 6000
    assert model.coef_[0] + model.coef_[4] == pytest.approx(0.5, abs=0.06)


def test_which_tables_are_long():
    from predcp.linear import Target, logistic_regression

    def found(rows, columns, family="bernoulli"):
        x = jnp.zeros((rows, columns))
        target = Target(logistic_regression, (x, jnp.zeros(rows)), {}, family=family)
        return long.long_of(target, target.data, 100, 0)

    assert found(6000, 10) is not None
    assert found(4000, 10) is None
    assert found(6000, 200) is None
    assert found(6000, 10, None) is None
    # Without a prior that is known to average rows, all rows are the map's.
    assert len(found(6000, 10).target.data[0]) == 6000


def test_a_batch_of_rows_counts_for_all():
    """The weighted log likelihood of batches has the mean of that of all rows."""
    from predcp.linear import Ridge, Target, logistic_regression

    data = jnp.asarray(X), jnp.asarray(CLASSES), jnp.asarray(WEIGHTS)
    target = Target(logistic_regression, data, {"prior": Ridge()}, family="bernoulli")
    inference = MeanField(batch_rows=3000)
    signs = jnp.where(data[1] > 0, 1.0, -1.0)
    all_rows = float(jnp.sum(WEIGHTS * jax.nn.log_sigmoid(signs * data[0][:, 0])))
    sums = []
    for number in range(200):
        x, y, weights = inference._batch(target, jax.random.key(number), data)
        assert x.shape == (3000, 4)
        sums.append(float(weights @ jax.nn.log_sigmoid(jnp.where(y > 0, 1.0, -1.0) * x[:, 0])))
    error = np.std(sums) / np.sqrt(len(sums))
    assert np.mean(sums) == pytest.approx(all_rows, abs=4 * error)
    assert error < 0.002 * abs(all_rows)
    assert MeanField()._batch(target, jax.random.key(0), data) is data


@pytest.mark.long
def test_a_mean_field_fit_by_some_rows_at_a_time():
    settings = {"draws": 300, "max_steps": 2500}
    means, widths = [], []
    for batch in (6000, 500):
        inference = MeanField(batch_rows=batch, **settings)
        model = LogisticRegression("ridge", inference=inference).fit(X, CLASSES)
        beta = model.draws_.values["beta"][0]
        means.append(beta.mean(axis=0))
        widths.append(beta.std(axis=0))
    # In posterior standard deviations of about .03.
    assert np.abs((means[1] - means[0]) / widths[0]).max() < 0.5
    np.testing.assert_allclose(widths[1], widths[0], rtol=0.3)
    with pytest.raises(ValueError, match="batch_rows needs a linear or logistic regression"):
        LogisticRegression("regularised-horseshoe", inference=inference).fit(X, CLASSES)
    with pytest.raises(ValueError, match="batch_rows must be at least 2"):
        MeanField(batch_rows=1)
