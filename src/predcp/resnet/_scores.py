"""Scores of predictions: errors, log likelihood, coverage and calibration."""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax, logsumexp, ndtr

_LEVELS = np.linspace(0.05, 0.95, 19)
_BINS = 15


def regression_scores(
    outputs: Float[np.ndarray, "samples points"],
    y: Float[np.ndarray, " points"],
    noise: float,
) -> dict[str, float]:
    """Scores of draws of the mean, with normal noise of standard deviation `noise` around each.

    `mae` is the public code's metric: the mean over draws *and* points of the absolute error (the
    paper calls it RMSE); `rmse` is that of the posterior mean. `calibration_error` is the mean over
    nineteen levels of |how often the target is below that quantile - the level|.
    """
    outputs, y = np.asarray(outputs, np.float64), np.asarray(y, np.float64)
    error = y - outputs
    logs = -0.5 * (error / noise) ** 2 - math.log(noise * math.sqrt(2.0 * math.pi))
    ranks = ndtr(error / noise).mean(axis=0)
    return {
        "rmse": float(np.sqrt(np.mean((y - outputs.mean(axis=0)) ** 2))),
        "mae": float(np.mean(np.abs(error))),
        "log_likelihood": float(np.mean(logsumexp(logs, axis=0)) - math.log(len(outputs))),
        "coverage_90": float(np.mean((ranks > 0.05) & (ranks < 0.95))),
        "calibration_error": float(
            np.mean(np.abs(np.mean(ranks[:, None] <= _LEVELS, axis=0) - _LEVELS))
        ),
    }


def class_scores(
    logits: Float[np.ndarray, "samples points classes"], y: np.ndarray
) -> dict[str, float]:
    """Scores of draws of the logits; `calibration_error` is the expected one over fifteen bins."""
    logs = log_softmax(np.asarray(logits, np.float64), axis=-1)
    pooled = logsumexp(logs, axis=0) - math.log(len(logs))
    own = pooled[np.arange(len(y)), y]
    confidence, best = np.exp(pooled.max(axis=-1)), pooled.argmax(axis=-1)
    bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    gaps = [
        np.mean(bins == b) * abs(np.mean(confidence[bins == b]) - np.mean((best == y)[bins == b]))
        for b in np.unique(bins)
    ]
    return {
        "log_likelihood": float(own.mean()),
        "accuracy": float(100.0 * np.mean(best == y)),
        "calibration_error": float(np.sum(gaps)),
    }
