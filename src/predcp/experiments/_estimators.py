"""Estimators by name, for models fitted to a file and kept in one."""

import importlib
from collections.abc import Mapping
from typing import Any, Protocol, cast

import numpy as np

from predcp._version import __version__

# Only these classes are ever made from a saved file, whatever the file says.
ESTIMATORS: dict[str, str] = {
    "ridge": "predcp.experiments._ridge:RidgeRegression",
    "linear": "predcp.linear:LinearRegression",
    "logistic": "predcp.linear:LogisticRegression",
}
# What `predcp fit` takes for each kind of target.
DEFAULTS = {"regression": "linear", "binary": "logistic", "multiclass": "logistic"}
# Those that choose between several ways to a posterior, and report on it.
SAMPLED = ("linear", "logistic")


class Estimator(Protocol):
    """An estimator that can be saved; classifiers also have `classes_` and `predict_proba`.

    Those in `SAMPLED` take `inference`, `random_state` and `progress`, and have a `summary()`.
    """

    def __init__(self, prior: str = ..., **options: Any) -> None: ...

    def fit(self, x: Any, y: np.ndarray) -> "Estimator":
        """Fit to `x` `(rows, columns)` and `y` `(rows,)`."""
        ...

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Means, or classes."""
        ...

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and plain values."""
        ...

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> "Estimator":
        """The inverse of `to_state`."""
        ...


class EstimatorUnavailable(LookupError):
    """No such estimator in this version; the message lists those there are."""


def resolve_estimator(name: str) -> type[Estimator]:
    """The class of a registered estimator."""
    if name not in ESTIMATORS:
        raise EstimatorUnavailable(
            f"no estimator is called {name!r}; there are: {', '.join(ESTIMATORS)}"
        )
    module_name, _, class_name = ESTIMATORS[name].partition(":")
    try:
        return cast("type[Estimator]", getattr(importlib.import_module(module_name), class_name))
    except (ModuleNotFoundError, AttributeError) as error:
        # A missing dependency of the estimator's module keeps its own message.
        if isinstance(error, ModuleNotFoundError) and error.name != module_name:
            raise
        raise EstimatorUnavailable(
            f"the estimator {name!r} is not available in this version of predcp ({__version__})"
        ) from None
