"""Linear regression as a scikit-learn regressor."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from predcp._support.fits import new_fit
from predcp.linear._columns import Columns
from predcp.linear._models import linear_regression
from predcp.linear._regression import OF_A_FIT, Regression

# Least noise, in standard deviations of the target: without it an exact fit has no posterior.
_NOISE_FLOOR = 1e-3


class LinearRegression(RegressorMixin, Regression):
    """Bayesian linear regression for few rows and many columns.

    The target is standardised inside. The noise is at least a thousandth of the target's
    standard deviation, so that data on a straight line also have a posterior.

    **Arguments**: as `LogisticRegression`.

    After `fit`: `coef_` and `intercept_` (posterior means, in the columns' own units), `draws_`,
    `convergence_`, `posterior_`, `summary()` and `save()`.
    """

    def __init__(
        self,
        prior: Any = "predcp",
        *,
        inference: Any = "auto",
        fit_intercept: bool = True,
        random_state: Any = 0,
        progress: Any = None,
    ) -> None:
        self.prior = prior
        self.inference = inference
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LinearRegression":
        """Fit to `X` `(N, D)`, dense or sparse, and numbers `y` `(N,)`.

        **Arguments**: `sample_weight`, `(N,)`, weights of the rows as numbers of repeats.
        """
        began = time.monotonic()
        with new_fit(self, OF_A_FIT):
            X, y, weights = self._validated(X, y, sample_weight, y_numeric=True)
            column = np.asarray(y, np.float64)[:, None]
            known = np.ones(len(column)) if weights is None else weights
            self.target_ = Columns.fit(column, known, self.fit_intercept)
            if not self.target_.varying.all():
                raise ValueError(
                    f"y is the same number in all {len(column)} rows, so there is nothing to explain"
                )
            self._fit(X, self.target_.transform(column)[:, 0], weights, began)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Posterior means `(N,)`.

        **Arguments**: `return_std`, also the standard deviations of new observations `(N,)`.
        """
        blocks = self._predictors(X)
        means, variances = zip(*((block.mean(axis=1), block.var(axis=1)) for block in blocks))
        mean, scale = self.target_.mean[0], self.target_.scale[0]
        prediction = np.concatenate(means) * scale + mean
        if not return_std:
            return prediction
        noise = np.mean(self._noise() ** 2)
        return prediction, np.sqrt(np.concatenate(variances) + noise) * scale

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """As `Regression.to_state`, with the units of the target."""
        arrays, values = super().to_state()
        return {**arrays, "target": np.r_[self.target_.mean, self.target_.scale]}, values

    def _restore(self, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
        mean, scale = arrays["target"]
        self.target_ = Columns(np.array([mean]), np.array([scale]), np.array([True]))

    def _noise(self) -> np.ndarray:
        """Standard deviation of the noise in standard units, `(chains, draws)`."""
        return np.hypot(np.asarray(self.draws_.values["sigma"], np.float64), _NOISE_FLOOR)

    def _model(self) -> Callable[..., None]:
        return _program

    def _options(self) -> dict[str, Any]:
        return {"noise_floor": _NOISE_FLOOR}

    def _family(self) -> Any:
        return "normal"

    def _outputs(self) -> list[str]:
        return [""]

    def _sign_words(self) -> str:
        return "a positive coefficient: a larger column goes with a larger outcome"

    def _size_words(self, size: float) -> str:
        return (
            "probability that one standard deviation of the column changes the outcome by more "
            f"than {size:g} of its standard deviations, up or down"
        )

    def _in_units(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        scale = self.target_.scale[0]
        return {
            **values,
            "coef": values["coef"] * scale,
            "intercept": values["intercept"] * scale + self.target_.mean[0],
            "sigma": np.hypot(values["sigma"], _NOISE_FLOOR) * scale,
        }

    def _set_coefficients(self, coefficients: np.ndarray, intercept: np.ndarray) -> None:
        self.coef_, self.intercept_ = coefficients, float(intercept)

    def _log_likelihood(self, y: np.ndarray, predictors: np.ndarray) -> np.ndarray:
        """Log likelihood of standardised `y` given predictors `(N, draws)`, per original unit."""
        noise = self._noise().reshape(-1)
        z = (y[:, None] - predictors) / noise
        constant = 0.5 * math.log(2.0 * math.pi) + math.log(self.target_.scale[0])
        return -0.5 * z**2 - np.log(noise) - constant

    def _replicate(self, predictors: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Targets `(N, draws)` in their own units, drawn given predictors."""
        noise = self._noise().reshape(-1) * generator.standard_normal(predictors.shape)
        return (predictors + noise) * self.target_.scale[0] + self.target_.mean[0]


def _program(x: Any, y: Any, *weights: Any, **options: Any) -> None:
    linear_regression(x, y, weights=weights[0] if weights else None, **options)
