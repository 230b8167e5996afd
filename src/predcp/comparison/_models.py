"""The models of a comparison: presets by name, and a user's own estimators."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from predcp.data import Table

REGRESSION = "regression"
BASE_RATE = "base-rate"
INFERENCES = ("laplace", "auto", "nuts", "gibbs", "vi")

# Names of priors by the names of models.
_PRIORS = {
    "predcp": "predcp",
    "ecp": "ecp",
    "horseshoe": "half-cauchy",
    "ridge": "ridge",
}
_WORDS = {
    BASE_RATE: "the base rate",
    "predcp": "PredCP",
    "ecp": "ECP",
    "horseshoe": "horseshoe",
    "ridge": "Bayesian ridge",
    "sklearn-l1": "scikit-learn's l1",
    "sklearn-l2": "scikit-learn's l2",
    "sklearn-lasso": "scikit-learn's lasso",
    "sklearn-ridge": "scikit-learn's ridge",
    "sklearn-ard": "scikit-learn's ARD",
    "boosting": "gradient boosting",
}
_CLASSIFIERS = ("sklearn-l1", "sklearn-l2")
_REGRESSORS = ("sklearn-lasso", "sklearn-ridge", "sklearn-ard")
MODEL_NAMES = tuple(_WORDS)


@dataclass(frozen=True)
class Choice:
    """A chosen model: a preset, or a user's estimator.

    **Arguments:** `estimator`, None for a preset.
    """

    name: str
    estimator: Any = None

    @property
    def words(self) -> str:
        """The name in a sentence."""
        return _WORDS[self.name] if self.estimator is None else self.name

    @property
    def sampled(self) -> bool:
        """Whether the choice of an inference matters."""
        return self.estimator is None and self.name in _PRIORS


def default_models(task: str, weighted: bool = False) -> tuple[str, ...]:
    """Names of the models that are compared by default.

    **Arguments:** `task`, `regression`, `binary` or `multiclass`; `weighted`, whether rows have
    weights, which ARD regression does not take.
    """
    theirs = _REGRESSORS if task == REGRESSION else _CLASSIFIERS
    if weighted:
        theirs = tuple(name for name in theirs if name != "sklearn-ard")
    return (BASE_RATE, *_PRIORS, *theirs, "boosting")


def choose(
    models: Mapping[str, Any] | Sequence[str] | None, task: Table | str, weighted: bool
) -> tuple[Choice, ...]:
    """The models that a user named or passed; an error says which cannot be compared, and why."""
    if models is None:
        return tuple(map(Choice, default_models(str(task), weighted)))
    if isinstance(models, str):
        raise ValueError(f"models must be a list of names or a dictionary, got {models!r}")
    given = models if isinstance(models, Mapping) else dict.fromkeys(models)
    if not given:
        raise ValueError("models must name at least one model")
    known = default_models(str(task))
    choices = []
    for name, estimator in given.items():
        if estimator is not None:
            _check_estimator(name, estimator, str(task), weighted)
            choices.append(Choice(str(name), estimator))
            continue
        if name not in known:
            cure = ""
            if task == REGRESSION and name in default_models("binary"):
                cure = "; if the values of the target are classes, say so: classes=True"
            raise ValueError(
                f"model must be one of {', '.join(known)} for a {task} target, got {name!r}{cure}"
            )
        if weighted and name == "sklearn-ard":
            raise ValueError("the model 'sklearn-ard' takes no weights: leave it out")
        choices.append(Choice(name))
    return tuple(choices)


def build(choice: Choice, task: str, inference: str, seed: int, progress: Any = None) -> Any:
    """An estimator that is not fitted yet.

    **Arguments:** `inference` of our own estimators; `progress`, what they report to.
    """
    if choice.estimator is None:
        if choice.sampled:
            return _ours(_PRIORS[choice.name], task, inference, seed, progress)
        return _theirs(choice.name, task, seed)
    from sklearn.base import clone

    estimator: Any = clone(choice.estimator)
    known = estimator.get_params(deep=False)
    free = {"random_state": seed, "progress": progress}
    free = {name: value for name, value in free.items() if name in known and known[name] is None}
    return estimator.set_params(**free)


def takes_frame(estimator: Any) -> bool:
    """Whether an estimator gets the original columns instead of numbers without gaps."""
    from sklearn.pipeline import Pipeline

    return isinstance(estimator, Pipeline) or reads_categories(estimator)


def reads_categories(estimator: Any) -> bool:
    """Whether an estimator handles pandas' categories and gaps itself."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    return isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor)


def weight_argument(estimator: Any) -> str | None:
    """The name of the argument of `fit` that takes weights; None for none."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__sample_weight" if has_fit_parameter(last, "sample_weight") else None
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def predicts_deviations(estimator: Any) -> bool:
    """Whether `predict` gives standard deviations of new observations."""
    from sklearn.pipeline import Pipeline

    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return "return_std" in inspect.signature(last.predict).parameters


def _check_estimator(name: str, estimator: Any, task: str, weighted: bool) -> None:
    from sklearn.base import BaseEstimator, is_classifier, is_regressor

    what = f"models[{name!r}]"
    if not isinstance(estimator, BaseEstimator):
        raise ValueError(f"{what} must be a scikit-learn estimator, got {estimator!r}")
    if task == REGRESSION:
        if not is_regressor(estimator):
            raise ValueError(f"{what} must be a regressor, as the target is a number")
    elif not is_classifier(estimator):
        raise ValueError(f"{what} must be a classifier, as the target has classes")
    elif not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{what} has no predict_proba, so it has no log score; wrap it in "
            "sklearn.calibration.CalibratedClassifierCV"
        )
    if weighted and weight_argument(estimator) is None:
        raise ValueError(f"{what} takes no sample_weight: leave it out")


def _ours(prior: str, task: str, inference: str, seed: int, progress: Any) -> Any:
    from predcp.linear import LinearRegression, LogisticRegression

    estimator = LinearRegression if task == REGRESSION else LogisticRegression
    return estimator(prior, inference=inference, random_state=seed, progress=progress)


def _theirs(name: str, task: str, seed: int) -> Any:
    from sklearn import dummy, ensemble, linear_model

    if task == REGRESSION:
        makers: dict[str, Callable[[], Any]] = {
            BASE_RATE: dummy.DummyRegressor,
            "sklearn-lasso": functools.partial(linear_model.LassoCV, random_state=seed),
            "sklearn-ridge": functools.partial(
                linear_model.RidgeCV, alphas=[10.0 ** (k / 2) for k in range(-6, 11)]
            ),
            "sklearn-ard": linear_model.ARDRegression,
            "boosting": functools.partial(
                ensemble.HistGradientBoostingRegressor, random_state=seed
            ),
        }
        return makers[name]()
    if name == BASE_RATE:
        return dummy.DummyClassifier(strategy="prior")
    if name == "boosting":
        return ensemble.HistGradientBoostingClassifier(random_state=seed)
    return _penalised(name == "sklearn-l1", task == "binary", seed)


def _penalised(lasso: bool, binary: bool, seed: int) -> Any:
    """`LogisticRegressionCV` that chooses its penalty by the log score, as models are ranked."""
    from sklearn.linear_model import LogisticRegressionCV

    settings: dict[str, Any] = {"scoring": "neg_log_loss", "random_state": seed, "max_iter": 1000}
    if lasso:
        settings["solver"] = "liblinear" if binary else "saga"
    known = inspect.signature(LogisticRegressionCV.__init__).parameters
    # The penalty has become a special case of the elastic net.
    if known["penalty"].default == "deprecated":
        settings["l1_ratios"] = (1.0 if lasso else 0.0,)
    else:
        settings["penalty"] = "l1" if lasso else "l2"
    if "use_legacy_attributes" in known:
        settings["use_legacy_attributes"] = False
    return LogisticRegressionCV(**settings)
