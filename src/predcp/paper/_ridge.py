"""Bayesian ridge regression in closed form: the cell that proves the engine, in numpy alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from predcp.data import Standardiser
from predcp.experiments import Cell, Context, Result, cell_split

# Noise variance over weight variance, on standardised features.
RATIOS = {"wide": 1e-6, "unit": 1.0}
PRIORS = (*RATIOS, "evidence")
_DRAWS = (4, 250)


class RidgeRegression:
    """Linear regression with normal weights and a plug-in noise variance.

    The fitted arrays are of standardised features; `noise_` is a variance.
    """

    def __init__(self, prior: str = "evidence") -> None:
        """**Arguments:** `wide`, `unit`, or `evidence` to maximise the marginal likelihood."""
        if prior not in PRIORS:
            raise ValueError(f"prior must be one of {', '.join(PRIORS)}, got {prior!r}")
        self.prior = prior

    def fit(self, x: np.ndarray, y: np.ndarray) -> "RidgeRegression":
        """The exact posterior given `x` `(rows, columns)` and `y` `(rows,)`."""
        self.features_, self.target_ = Standardiser.fit(x), Standardiser.fit(y)
        self.rows_ = len(y)
        left, singular, right = np.linalg.svd(self.features_.transform(x), full_matrices=False)
        scores = self.target_.transform(y)
        projected = left.T @ scores
        ratios = [RATIOS[self.prior]] if self.prior in RATIOS else np.logspace(-6, 6, 241)
        ratio = max(ratios, key=lambda ratio: _log_evidence(singular, projected, scores, ratio))
        self.weights_ = right.T @ (projected * singular / (singular**2 + ratio))
        # The prior keeps its variance in the directions the data do not span.
        unseen = (np.eye(right.shape[1]) - right.T @ right) / ratio
        self.covariance_ = (right.T / (singular**2 + ratio)) @ right + unseen
        self.noise_ = _noise(singular, projected, scores, ratio)
        return self

    def predict_moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of new targets, in their own units."""
        scores = self.features_.transform(x)
        spread = 1 + 1 / self.rows_ + np.einsum("ni,ij,nj->n", scores, self.covariance_, scores)
        mean = self.target_.inverse(scores @ self.weights_)
        return mean, self.noise_ * spread * self.target_.scale**2

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Means of new targets."""
        return self.predict_moments(x)[0]

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and plain values from which `from_state` makes the same model."""
        arrays = {
            "feature_mean": self.features_.mean,
            "feature_scale": self.features_.scale,
            "target": np.array([self.target_.mean, self.target_.scale]),
            "weights": self.weights_,
            "covariance": self.covariance_,
        }
        return arrays, {"prior": self.prior, "noise": self.noise_, "rows": self.rows_}

    @classmethod
    def from_state(
        cls, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]
    ) -> "RidgeRegression":
        """The inverse of `to_state`."""
        model = cls(values["prior"])
        model.features_ = Standardiser(arrays["feature_mean"], arrays["feature_scale"])
        model.target_ = Standardiser(arrays["target"][0], arrays["target"][1])
        model.weights_, model.covariance_ = arrays["weights"], arrays["covariance"]
        model.noise_, model.rows_ = float(values["noise"]), int(values["rows"])
        return model


def run(cell: Cell, context: Context) -> Result:
    """Fit one split; `inference` is `exact`."""
    if cell.inference != "exact":
        raise ValueError(f"ridge has exact inference only, got {cell.inference!r}")
    split = cell_split(cell, context)
    if split.train.task != "regression":
        raise ValueError(f"ridge needs a numeric target, {cell.data} is {split.train.task}")
    model = RidgeRegression(cell.prior).fit(split.train.features, split.train.target)
    metrics = {
        part: _score(model, table.features, table.target)
        for part, table in (("test", split.test), ("train", split.train))
    }
    posterior = None
    if context.keep_posterior:
        generator = np.random.default_rng(cell.seed)
        draws = generator.multivariate_normal(
            model.weights_, model.noise_ * model.covariance_, size=_DRAWS
        )
        posterior = {"weights": draws}
    return Result(metrics, posterior=posterior)


def _score(model: RidgeRegression, x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    mean, variance = model.predict_moments(x)
    residual = y - mean
    density = -0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
    return {
        "log_likelihood": float(density.mean()),
        "rmse": float(np.sqrt((residual**2).mean())),
        "mae": float(np.abs(residual).mean()),
    }


def _noise(singular: np.ndarray, projected: np.ndarray, y: np.ndarray, ratio: float) -> float:
    outside = max(float(y @ y - projected @ projected), 0.0)
    explained = float((projected**2 / (1 + singular**2 / ratio)).sum())
    return (explained + outside) / len(y)


def _log_evidence(
    singular: np.ndarray, projected: np.ndarray, y: np.ndarray, ratio: float
) -> float:
    """Log evidence of the standardised targets, with the noise variance at its maximum."""
    noise = _noise(singular, projected, y, ratio)
    return float(-0.5 * (len(y) * np.log(noise) + np.log1p(singular**2 / ratio).sum()))
