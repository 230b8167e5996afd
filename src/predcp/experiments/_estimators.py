"""Estimators by name, for models fitted to a file and kept in one."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np

from predcp._version import __version__

REGRESSION = "regression"


@dataclass(frozen=True)
class Entry:
    """How `predcp fit` makes an estimator.

    **Arguments**
    - `regression`, `classes`: `module:class` for a target of numbers and for one of classes.
    - `options`: what may be said of it, and the name of the argument that takes it.
    - `report`: the method whose answer is printed after a fit.
    - `deviations`: whether it predicts standard deviations of new observations.
    """

    regression: str | None = None
    classes: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    report: str | None = None
    deviations: bool = True

    def source(self, task: str) -> str | None:
        """The class for a kind of target, None for none."""
        return self.regression if task == REGRESSION else self.classes


_SAMPLED = {"prior": "prior", "inference": "inference", "seed": "random_state"}
# Only these classes are ever made from a saved file, whatever the file says.
ESTIMATORS: dict[str, Entry] = {
    "ridge": Entry(
        "predcp.experiments._ridge:RidgeRegression", None, {"prior": "prior"}, deviations=False
    ),
    "linear": Entry("predcp.linear:LinearRegression", None, _SAMPLED, "summary"),
    "logistic": Entry(None, "predcp.linear:LogisticRegression", _SAMPLED, "summary"),
    "resnet": Entry(
        "predcp.resnet:ResNetRegressor",
        "predcp.resnet:ResNetClassifier",
        {"prior": "scale_prior", "seed": "random_state"},
        "summary",
    ),
}
# What `predcp fit` takes for each kind of target.
DEFAULTS = {REGRESSION: "linear", "binary": "logistic", "multiclass": "logistic"}


class Estimator(Protocol):
    """An estimator that can be saved; classifiers also have `classes_` and `predict_proba`."""

    def __init__(self, **options: Any) -> None: ...

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


def resolve_estimator(name: str, task: str = REGRESSION) -> type[Estimator]:
    """The class of a registered estimator for a kind of target."""
    if name not in ESTIMATORS:
        raise EstimatorUnavailable(
            f"no estimator is called {name!r}; there are: {', '.join(ESTIMATORS)}"
        )
    source = ESTIMATORS[name].source(task)
    if source is None:
        fitting = [other for other, entry in ESTIMATORS.items() if entry.source(task) is not None]
        raise ValueError(
            f"the estimator {name!r} does not fit a {task} target; these do: {', '.join(fitting)}"
        )
    module_name, _, class_name = source.partition(":")
    try:
        return cast("type[Estimator]", getattr(importlib.import_module(module_name), class_name))
    except (ModuleNotFoundError, AttributeError) as error:
        # A missing dependency of the estimator's module keeps its own message.
        if isinstance(error, ModuleNotFoundError) and error.name != module_name:
            raise
        raise EstimatorUnavailable(
            f"the estimator {name!r} is not available in this version of predcp ({__version__})"
        ) from None
