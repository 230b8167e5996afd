"""The quick look: the posterior under one scale, and time limits that are kept."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from predcp.linear import Target, _quick_look, linear_regression, logistic_regression
from predcp.linear._quick_look import QuickLook

RANDOM = np.random.default_rng(2)


@pytest.mark.parametrize(("rows", "columns"), [(12, 3), (6, 20)], ids=["long", "wide"])
def test_draws_have_the_posterior_of_a_normal_outcome(rows, columns, monkeypatch):
    """The mixture over the grid in closed form; blocks of columns of a wide design."""
    monkeypatch.setattr(_quick_look, "_AT_ONCE", 7)
    x = RANDOM.normal(size=(rows, columns))
    y = x[:, 0] + 0.5 * RANDOM.normal(size=rows)
    data = x.astype(np.float32), y
    target = Target(linear_regression, data, {"intercept": True}, family="normal")
    (draws,) = QuickLook(draws=40_000, seed=1).sample(target)
    evidence, means, squares = [], [], []
    wide = np.concatenate([x, np.ones((rows, 1))], axis=1)
    for log_tau in _quick_look._LOG_TAUS:
        for noise in _quick_look._NOISES:
            tau = np.exp(log_tau) / np.sqrt(columns)
            prior = np.append(np.full(columns, tau**2), 1.0)
            covariance = wide * prior @ wide.T + noise**2 * np.eye(rows)
            evidence.append(stats.multivariate_normal(cov=covariance).logpdf(y))
            gain = prior[:, None] * wide.T @ np.linalg.inv(covariance)
            means.append(gain @ y)
            squares.append(means[-1] ** 2 + prior - np.einsum("pn,np->p", gain, wide * prior))
    weights = softmax(evidence)
    mean, square = weights @ means, weights @ squares
    both = np.concatenate([draws.values["beta"][0], draws.values["alpha"][0][:, None]], axis=1)
    error = np.sqrt((square - mean**2) / len(both))
    assert np.all(np.abs(both.mean(0) - mean) < 4.5 * error)
    np.testing.assert_allclose(both.var(0), square - mean**2, rtol=0.1)


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_weights_and_samples_of_rows(classes, monkeypatch):
    """A row of weight two is two rows; of many rows a sample is looked at."""
    x = RANDOM.normal(size=(300, 4))
    y = (x[:, 0] > 0).astype(int) + (x[:, 0] > 1).astype(int) * (classes - 2)
    family = "bernoulli" if classes == 2 else None
    options = {"classes": classes, "intercept": True}

    def coefficients(*data):
        (draws,) = QuickLook().sample(Target(logistic_regression, data, options, family=family))
        assert draws.values["alpha"].shape == (1, 400, *[classes] * (classes > 2))
        return draws.values["beta"][0].mean(0)

    whole = coefficients(np.tile(x, (2, 1)), np.tile(y, 2))
    np.testing.assert_allclose(coefficients(x, y, np.full(300, 2.0)), whole, atol=0.5)
    monkeypatch.setattr(_quick_look, "_MOST_ROWS", 200)
    assert np.corrcoef(coefficients(x, y).ravel(), whole.ravel())[0, 1] > 0.95
    own = whole[0] if classes == 2 else whole[0, 2] - whole[0, 0]
    assert own > 1.0


def test_a_wide_design_in_no_time_and_little_memory(monkeypatch):
    """Some columns, few draws, and the others at 0; all of them where there is time."""
    x = RANDOM.standard_normal((60, 20_000), dtype=np.float32)
    y = (x[:, 0] + RANDOM.logistic(size=60) > 0).astype(int)
    target = Target(logistic_regression, (x, y), {"intercept": True}, family="bernoulli")
    (draws,) = QuickLook(max_seconds=1e-6).sample(target)
    beta = draws.values["beta"]
    assert draws.figures["columns"] == ((beta != 0.0).any((0, 1))).sum() < 5000
    assert beta.shape == (1, 20, 20_000) and draws.figures["scales"] == 1
    (draws,) = QuickLook(draws=30).sample(target)
    beta = draws.values["beta"]
    assert draws.figures["columns"] == 20_000 and beta.shape[1] == 30
    # What is known of so many coefficients is what the rows say of their sums.
    predicted = x @ beta[0].T + draws.values["alpha"][0]
    assert np.corrcoef(predicted.mean(1), y)[0, 1] > 0.6
    monkeypatch.setattr(_quick_look, "_SMALL", 0)
    (draws,) = QuickLook(draws=30).sample(target)
    assert draws.values["beta"].nbytes <= 20 * 20_000 * 4


def test_other_models_have_none():
    assert QuickLook().sample(Target(print, (np.zeros((2, 2)), np.zeros(2)))) is None
