"""Logistic regression as a scikit-learn classifier."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from predcp._support.fits import new_fit
from predcp.linear._models import logistic_regression
from predcp.linear._regression import OF_A_FIT, Regression


class LogisticRegression(ClassifierMixin, Regression):
    """Bayesian logistic regression for few rows and many columns; softmax for several classes.

    **Arguments**
    - `prior`: an object such as `predcp.linear.PredCP(predcp.LogCauchy(scale=1.0))`, or a name:
      `predcp`, `ecp`, `half-cauchy`, `regularised-horseshoe` or `ridge`. See
      `predcp.linear.as_coefficient_prior`.
    - `inference`: an object such as `predcp.linear.Nuts(draws=500)` or
      `predcp.linear.Auto(max_seconds=60)`, or a name: `auto`, `nuts`, `gibbs`, `vi` or `laplace`.
    - `fit_intercept`: false for a model through the origin, as in the paper; columns are then
      scaled but not centred.
    - `random_state`: the same number gives the same result.
    - `progress`: None, True for a bar, or a function of (done, total) or (done, total, words).

    After `fit`: `coef_` and `intercept_` (posterior means, in the columns' own units), `classes_`,
    `draws_`, `convergence_`, `posterior_`, `summary()` and `save()`. Rank columns by `summary()`:
    means of heavy-tailed coefficients are unstable.
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LogisticRegression":
        """Fit to `X` `(N, D)`, dense or sparse, and labels `y` `(N,)`.

        **Arguments**: `sample_weight`, `(N,)`, how often each row counts.
        """
        began = time.monotonic()
        with new_fit(self, OF_A_FIT):
            X, y, weights = self._validated(X, y, sample_weight)
            check_classification_targets(y)
            self.classes_, numbers = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"y has one class only ({self.classes_[0]}); a classifier needs two or more"
                )
            self._fit(X, numbers, weights, began)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities `(N, classes)`, averaged over the posterior."""
        blocks = [self._probabilities(block).mean(axis=1) for block in self._predictors(X)]
        return np.concatenate(blocks)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """As `Regression.to_state`, with the classes."""
        arrays, values = super().to_state()
        return arrays, {**values, "classes": self.classes_.tolist()}

    def _restore(self, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
        self.classes_ = np.asarray(values["classes"])

    def _probabilities(self, predictors: np.ndarray) -> np.ndarray:
        """`(..., classes)` of linear predictors `(...)` or `(..., classes)`."""
        if len(self.classes_) == 2:
            return np.stack([expit(-predictors), expit(predictors)], axis=-1)
        return softmax(predictors, axis=-1)

    def _model(self) -> Callable[..., None]:
        return _program

    def _options(self) -> dict[str, Any]:
        return {"classes": len(self.classes_)}

    def _family(self) -> Any:
        return "bernoulli" if len(self.classes_) == 2 else None

    def _outputs(self) -> list[str]:
        return [""] if len(self.classes_) == 2 else [str(name) for name in self.classes_]

    def _sign_words(self) -> str:
        if len(self.classes_) > 2:
            return "a positive coefficient of name[class] favours that class"
        without, favoured = self.classes_
        return f"a positive coefficient favours class {favoured} over class {without}"

    def _size_words(self, size: float) -> str:
        return (
            "probability that one standard deviation of the column changes the log odds by more "
            f"than {size:g}, up or down"
        )

    def _set_coefficients(self, coefficients: np.ndarray, intercept: np.ndarray) -> None:
        # One row per logit, as in scikit-learn.
        self.coef_, self.intercept_ = np.atleast_2d(coefficients.T), np.atleast_1d(intercept)

    def _log_likelihood(self, y: np.ndarray, predictors: np.ndarray) -> np.ndarray:
        """Log likelihood of class numbers `(N,)` given predictors `(N, draws, ...)`."""
        if len(self.classes_) == 2:
            signed = np.where(y[:, None] > 0, predictors, -predictors)
            return -np.logaddexp(0.0, -signed)
        own = np.take_along_axis(predictors, y[:, None, None], axis=2)[:, :, 0]
        return own - np.logaddexp.reduce(predictors, axis=2)

    def _replicate(self, predictors: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Class numbers `(N, draws)` drawn given predictors."""
        cumulative = np.cumsum(self._probabilities(predictors), axis=-1)
        uniform = generator.random(cumulative.shape[:2])
        # Because of rounding the last sum may be below 1.
        return (uniform[:, :, None] > cumulative[:, :, :-1]).sum(axis=-1)


def _program(x: Any, y: Any, *weights: Any, **options: Any) -> None:
    logistic_regression(x, y, weights=weights[0] if weights else None, **options)
