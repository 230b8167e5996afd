"""Estimators that `predcp fit` makes, by name."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np

REGRESSION = "regression"
# Options of samplers, and the arguments that they set.
_LIMIT = {"max_seconds": "max_seconds"}
_CHAINS = {"chains": "chains", "warmup": "warmup", "draws": "draws", **_LIMIT}
# By the name of an inference: the class in predcp.linear, and its options.
SAMPLERS: dict[str, tuple[str, dict[str, str]]] = {
    "auto": ("Auto", {"chains": "chains", "draws": "draws", **_LIMIT}),
    "nuts": ("Nuts", {**_CHAINS, "acceptance": "target_acceptance", "max_depth": "max_depth"}),
    "gibbs": ("Gibbs", _CHAINS),
    "laplace": ("Laplace", {"draws": "draws", **_LIMIT}),
    "vi": ("MeanField", {"draws": "draws", **_LIMIT}),
}


@dataclass(frozen=True)
class Entry:
    """Recipe by which `predcp fit` makes an estimator.

    **Arguments**
    - `regression`, `classes`: `module:class` for a target of numbers and for one of classes.
    - `priors`: names; one that ends in `NUMBER` takes any.
    - `options`: its options on the command line, and the arguments that they set.
    - `sampled`: whether `--inference` and the samplers' options apply.
    - `report`: the method whose result is printed after a fit.
    - `deviations`: whether it predicts standard deviations of new observations.
    """

    regression: str | None = None
    classes: str | None = None
    priors: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    sampled: bool = False
    report: str | None = None
    deviations: bool = True

    def source(self, task: str) -> str | None:
        """The class for a kind of target, None for none."""
        return self.regression if task == REGRESSION else self.classes


_LINEAR_PRIORS = ("predcp", "ecp", "half-cauchy", "regularised-horseshoe", "ridge")
_RESNET_PRIORS = ("predcp", "ecp", "inverse-gamma", "half-cauchy", "horseshoe", "fixed-NUMBER")
_SEEDED = {"prior": "prior", "seed": "random_state"}
# Only these classes are ever made from a saved file, whatever the file says.
ESTIMATORS: dict[str, Entry] = {
    "linear": Entry(
        "predcp.linear:LinearRegression", None, _LINEAR_PRIORS, _SEEDED, True, "summary"
    ),
    "logistic": Entry(
        None, "predcp.linear:LogisticRegression", _LINEAR_PRIORS, _SEEDED, True, "summary"
    ),
    "resnet": Entry(
        "predcp.resnet:ResNetRegressor",
        "predcp.resnet:ResNetClassifier",
        _RESNET_PRIORS,
        {"prior": "scale_prior", "seed": "random_state"},
        report="summary",
    ),
    "ridge": Entry(
        "predcp.paper:RidgeRegression",
        None,
        ("evidence", "unit", "wide"),
        {"prior": "prior"},
        deviations=False,
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
    """No such estimator; the message lists the known ones."""


def resolve_estimator(name: str, task: str = REGRESSION) -> type[Estimator]:
    """The class of a registered estimator for a kind of target."""
    if name not in ESTIMATORS:
        raise EstimatorUnavailable(
            f"no model is called {name!r}; there are: {', '.join(ESTIMATORS)}"
        )
    source = ESTIMATORS[name].source(task)
    if source is None:
        fitting = [other for other, entry in ESTIMATORS.items() if entry.source(task) is not None]
        raise ValueError(
            f"the model {name!r} does not fit a {task} target; these do: {', '.join(fitting)}"
        )
    module_name, _, class_name = source.partition(":")
    return cast("type[Estimator]", getattr(importlib.import_module(module_name), class_name))


def estimator_arguments(
    name: str, options: Mapping[str, Any], sampling: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments of an estimator from the options of the command line.

    **Arguments:** `options`, `prior` and `seed`; `sampling`, `inference` and the options of its
    sampler; None where nothing is stated.
    """
    entry = ESTIMATORS[name]
    stated = {option: value for option, value in options.items() if value is not None}
    asked = {option: value for option, value in sampling.items() if value is not None}
    known = [*entry.options, *(sampling if entry.sampled else ())]
    _require_known(f"the model {name!r}", [*stated, *asked], known)
    if "prior" in stated:
        _require_prior(stated["prior"], entry.priors)
    arguments = {entry.options[option]: value for option, value in stated.items()}
    if asked:
        arguments["inference"] = _inference(dict(asked), stated.get("seed"))
    return arguments


def _inference(asked: dict[str, Any], seed: int | None) -> Any:
    """The name of an inference, or its object if options are given."""
    # Its options say which sampler is meant.
    unnamed = "auto" if asked.keys() <= SAMPLERS["auto"][1].keys() else "nuts"
    name = asked.pop("inference", unnamed)
    if name not in SAMPLERS:
        raise ValueError(f"--inference must be one of {', '.join(SAMPLERS)}, got {name!r}")
    class_name, known = SAMPLERS[name]
    if not asked:
        return name
    _require_known(f"--inference {name}", list(asked), list(known))
    settings = {known[option]: value for option, value in asked.items()}
    sampler = getattr(importlib.import_module("predcp.linear"), class_name)
    return sampler(seed=seed or 0, **settings)


def _require_prior(prior: str, known: Sequence[str]) -> None:
    def fits(name: str) -> bool:
        head = name.removesuffix("NUMBER")
        if head == name:
            return prior == name
        try:
            return prior.startswith(head) and float(prior.removeprefix(head)) > 0
        except ValueError:
            return False

    if not any(map(fits, known)):
        raise ValueError(f"--prior must be one of {', '.join(known)}, got {prior!r}")


def _require_known(what: str, stated: Sequence[str], known: Sequence[str]) -> None:
    unknown = [option for option in stated if option not in known]
    if unknown:
        raise ValueError(f"{what} takes no {_flags(unknown)}; it takes: {_flags(known)}")


def _flags(options: Sequence[str]) -> str:
    return ", ".join(f"--{option.replace('_', '-')}" for option in options)
