"""Scores against scikit-learn's and SciPy's own."""

import numpy as np
import pytest
import sklearn.metrics as theirs
from scipy.stats import norm

from predcp.comparison._scores import calibration_error, classification_scores, regression_scores

RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.uniform(0.1, 3.0, 200)


def test_scores_of_two_classes():
    classes, p = RANDOM.integers(0, 2, 200), RANDOM.uniform(size=200)
    p[:2] = 0.0, 1.0
    found = classification_scores(classes, np.stack([1.0 - p, p], axis=1), WEIGHTS)["test"]
    assert found["log_likelihood"] == pytest.approx(
        -theirs.log_loss(classes, p, sample_weight=WEIGHTS), rel=1e-12
    )
    assert found["brier"] == pytest.approx(
        theirs.brier_score_loss(classes, p, sample_weight=WEIGHTS), rel=1e-12
    )
    assert found["accuracy"] == pytest.approx(
        100 * theirs.accuracy_score(classes, p > 0.5, sample_weight=WEIGHTS), rel=1e-12
    )
    assert found["auc"] == theirs.roc_auc_score(classes, p, sample_weight=WEIGHTS)


def test_scores_of_three_classes():
    classes, p = RANDOM.integers(0, 3, 200), RANDOM.dirichlet(np.ones(3), 200)
    found = classification_scores(classes, p, WEIGHTS)["test"]
    assert found["log_likelihood"] == pytest.approx(
        -theirs.log_loss(classes, p, sample_weight=WEIGHTS), rel=1e-12
    )
    by_hand = np.average(((p - np.eye(3)[classes]) ** 2).sum(1), weights=WEIGHTS)
    assert found["brier"] == pytest.approx(by_hand, rel=1e-12)
    assert "auc" not in found


def test_scores_of_numbers():
    y, mean, deviation = RANDOM.normal(size=(3, 200))
    deviation = np.exp(deviation)
    found = regression_scores(y, mean, deviation, WEIGHTS)["test"]
    assert found["log_likelihood"] == pytest.approx(
        np.average(norm.logpdf(y, mean, deviation), weights=WEIGHTS), rel=1e-12
    )
    assert found["r_squared"] == pytest.approx(
        theirs.r2_score(y, mean, sample_weight=WEIGHTS), rel=1e-12
    )
    low, high = norm.interval(0.9, mean, deviation)
    covered = np.average((low <= y) & (y <= high), weights=WEIGHTS)
    assert found["coverage_90"] == pytest.approx(100 * covered, rel=1e-12)


@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
def test_calibration_error_of_numbers(width):
    y = RANDOM.normal(size=20_000)
    pooled = regression_scores(y, np.zeros_like(y), np.full_like(y, width), np.ones_like(y))
    found = calibration_error(pooled["pooled"], "regression")
    tenths = np.arange(1, 10) / 10
    wanted = 100 * np.abs(norm.cdf(width * norm.ppf(tenths)) - tenths).mean()
    # Nine shares of 20,000 rows, each with an error of at most .35 points.
    assert found == pytest.approx(wanted, abs=1.0)


def test_calibration_error_of_classes():
    p = RANDOM.uniform(size=50_000)
    classes = (RANDOM.uniform(size=p.size) < p**2).astype(int)
    both = np.stack([1.0 - p, p], axis=1)
    pooled = classification_scores(classes, both, np.ones_like(p))["pooled"]
    # The mean of p - p^2 over a uniform p.
    assert calibration_error(pooled, "binary") == pytest.approx(100 / 6, abs=1.0)
