"""Scores of predictions of test rows, each weighted by how often its row counts.

The parts of a calibration curve are kept separately, so that folds can be pooled: the curve of a
single fold is mostly noise. So are the log scores of (groups of) rows, from which models are compared.
"""

import math

import numpy as np
from jaxtyping import Float, Int

from predcp.comparison._statistics import FoldSums

# Bins of a calibration curve.
BINS = 10
# Half the width of a normal's central 90%, in standard deviations.
_NINETY = 1.6448536269514722

# Parts of `Scores` with the log scores of groups of rows.
ROW_SCORES, ROW_WEIGHTS = "row_scores", "row_weights"
Scores = dict[str, dict[str, float]]


def classification_scores(
    classes: Int[np.ndarray, " rows"],
    probabilities: Float[np.ndarray, "rows classes"],
    weights: Float[np.ndarray, " rows"],
) -> Scores:
    """Log score, Brier score, accuracy, the area under the ROC curve of two classes, and a curve.

    Probabilities are clipped by the rounding error of their type, as in scikit-learn's `log_loss`.
    The Brier score of two classes is that of the second; of more, the sum over classes.
    """
    from sklearn.metrics import roc_auc_score

    share = weights / weights.sum()
    rows = np.arange(len(classes))
    rounding = np.finfo(probabilities.dtype).eps
    log_scores = np.log(np.clip(probabilities[rows, classes], rounding, 1.0 - rounding))
    best = np.argmax(probabilities, axis=1)
    test = {"log_likelihood": share @ log_scores, "accuracy": 100.0 * share @ (best == classes)}
    if probabilities.shape[1] == 2:
        predicted, observed = probabilities[:, 1], classes == 1
        test["brier"] = share @ (predicted - observed) ** 2
        if observed.any() and not observed.all():
            test["auc"] = roc_auc_score(observed, predicted, sample_weight=weights)
    else:
        actual = np.eye(probabilities.shape[1])[classes]
        test["brier"] = share @ np.sum((probabilities - actual) ** 2, axis=1)
        predicted, observed = probabilities[rows, best], best == classes
    bins = np.minimum((predicted * BINS).astype(int), BINS - 1)
    return _scores(test, log_scores, bins, weights, predicted, observed)


def regression_scores(
    target: Float[np.ndarray, " rows"],
    mean: Float[np.ndarray, " rows"],
    deviation: Float[np.ndarray, " rows"],
    weights: Float[np.ndarray, " rows"],
) -> Scores:
    """Log score of a normal distribution, R^2, RMSE, coverage of 90% intervals, and a curve.

    The curve counts in which tenth of its predicted distribution each target lies.
    """
    from scipy.special import ndtr
    from sklearn.metrics import r2_score

    share = weights / weights.sum()
    z = (target - mean) / deviation
    log_density = -0.5 * (z**2 + math.log(2.0 * math.pi)) - np.log(deviation)
    test = {
        "log_likelihood": share @ log_density,
        "r_squared": r2_score(target, mean, sample_weight=weights),
        "rmse": math.sqrt(share @ (target - mean) ** 2),
        "coverage_90": 100.0 * share @ (np.abs(z) <= _NINETY),
    }
    place = ndtr(z)
    bins = np.minimum((place * BINS).astype(int), BINS - 1)
    return _scores(test, log_density, bins, weights, place, np.ones(len(place)))


def calibration_error(pooled: dict[str, float], task: str) -> float:
    """Mean distance of the pooled calibration curve from a perfect one, in percentage points.

    Classes: distance between the mean predicted probability of a bin and the observed frequency.
    Numbers: distance between each tenth and the share of targets below that quantile of their
    predicted distributions.
    """
    weight, predicted, observed = (
        np.array([pooled.get(f"{name}_{k}", 0.0) for k in range(BINS)])
        for name in ("weight", "predicted", "observed")
    )
    total = weight.sum()
    if task == "regression":
        below = np.cumsum(weight)[:-1] / total
        error = np.abs(below - np.arange(1, BINS) / BINS).mean()
    else:
        error = np.abs(predicted - observed).sum() / total
    # Rounding errors of the sums.
    return round(float(100.0 * error), 9)


def _scores(
    test: dict[str, float],
    log_scores: np.ndarray,
    bins: np.ndarray,
    weights: np.ndarray,
    predicted: np.ndarray,
    observed: np.ndarray,
) -> Scores:
    sums = {"weight": weights, "predicted": weights * predicted, "observed": weights * observed}
    pooled = {
        f"{name}_{k}": float(total)
        for name, values in sums.items()
        for k, total in enumerate(np.bincount(bins, values, minlength=BINS))
    }
    groups = FoldSums.of(log_scores, weights)
    return {
        "test": {name: float(value) for name, value in test.items()},
        "pooled": pooled,
        ROW_SCORES: {str(k): float(total) for k, total in enumerate(groups.scores)},
        ROW_WEIGHTS: {str(k): float(total) for k, total in enumerate(groups.weights)},
    }
