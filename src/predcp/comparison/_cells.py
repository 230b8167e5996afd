"""One cell of a comparison: fit a model to one fold and score it on the other rows."""

import hashlib
import pickle
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from predcp.comparison._folds import fold_rows
from predcp.comparison._models import (
    REGRESSION,
    Choice,
    build,
    predicts_deviations,
    reads_categories,
    takes_frame,
    weight_argument,
)
from predcp.comparison._preparation import Preparation
from predcp.comparison._problem import Problem, load
from predcp.comparison._scores import classification_scores, regression_scores
from predcp.comparison._statistics import MOST_GROUPS
from predcp.experiments import Cell, Context, Result

MODEL = "predcp.comparison._cells:fit_fold"
# Folds for the errors of models that predict no standard deviations.
_INNER_FOLDS = 5


@dataclass(frozen=True)
class Design:
    """Settings shared by every fit of a comparison."""

    folds: int
    repeats: int
    inference: str
    seed: int


def list_cells(
    problem: Problem, key: str, choices: Sequence[Choice], design: Design, folder: Path
) -> list[Cell]:
    """The cells, ordered so that a run that is cut short has complete folds.

    A user's estimators are written to `folder`, for worker processes and later runs.
    """
    stored = {choice.name: _store_estimator(choice, folder) for choice in choices}
    cells = []
    for number in range(design.folds * design.repeats):
        for choice in choices:
            settings: dict[str, Any] = {
                "sha256": key,
                "folds": design.folds,
                "task": problem.task,
                "groups": MOST_GROUPS,
            }
            if stored[choice.name] is not None:
                settings["estimator"] = stored[choice.name]
            inference = design.inference if choice.sampled else "none"
            cells.append(
                Cell(problem.name, MODEL, choice.name, inference, number, design.seed, settings)
            )
    return cells


def fit_fold(cell: Cell, context: Context) -> Result:
    """Fit and score one model on one fold; `context.data_directory` has the table."""
    folder, settings = str(context.data_directory), cell.settings
    problem = load(folder, str(settings["sha256"]), cell.data, str(settings["task"]))
    train, test = fold_rows(
        problem.target, problem.task, int(str(settings["folds"])), cell.seed, cell.split
    )
    choice = Choice(cell.prior, _load_estimator(folder, settings.get("estimator")))
    estimator = build(choice, problem.task, cell.inference, cell.seed, context.report)
    context.report(0, 0, "fitting")
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = _Fitted.fit(estimator, problem, train)
        seconds = time.perf_counter() - began
        weights = np.ones(len(test)) if problem.weights is None else problem.weights[test]
        if problem.task == REGRESSION:
            mean, deviation = fitted.normal(problem, train, test, cell.seed)
            scores = regression_scores(problem.target[test], mean, deviation, weights)
        else:
            classes = fitted.probabilities(problem, test)
            scores = classification_scores(problem.target[test], classes, weights)
    if not np.isfinite(scores["test"]["log_likelihood"]):
        raise FloatingPointError(f"the log score of {cell.prior} is not a number")
    scores["test"]["fit_seconds"] = seconds
    return Result(scores, _convergence(fitted.estimator, len(caught)))


@dataclass(frozen=True)
class _Fitted:
    """An estimator fitted to rows of a problem, and its preparation of the columns."""

    estimator: Any
    preparation: Preparation | None

    @classmethod
    def fit(cls, estimator: Any, problem: Problem, rows: np.ndarray) -> "_Fitted":
        """Fit both to the given rows."""
        weights = None if problem.weights is None else problem.weights[rows]
        preparation = None
        if not takes_frame(estimator):
            preparation = Preparation.fit(problem.features.iloc[rows], problem.categories, weights)
        fitted = cls(estimator, preparation)
        name = weight_argument(estimator)
        arguments = {} if weights is None or name is None else {name: weights}
        estimator.fit(fitted.columns(problem, rows), problem.target[rows], **arguments)
        return fitted

    def columns(self, problem: Problem, rows: np.ndarray) -> Any:
        """The columns that the estimator gets."""
        frame = problem.features.iloc[rows]
        if self.preparation is not None:
            return self.preparation.transform(frame)
        if reads_categories(self.estimator):
            return frame.astype({name: "category" for name in problem.categories})
        return frame

    def probabilities(self, problem: Problem, rows: np.ndarray) -> np.ndarray:
        """`(rows, classes)`, 0 for a class that the training rows lacked."""
        found = np.asarray(self.estimator.predict_proba(self.columns(problem, rows)))
        full = np.zeros((len(rows), len(problem.class_names)), found.dtype)
        full[:, np.asarray(self.estimator.classes_, int)] = found
        return full

    def normal(
        self, problem: Problem, train: np.ndarray, rows: np.ndarray, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations of new observations.

        A model that predicts no standard deviation gets the size of its own errors on rows left
        out of the training rows.
        """
        columns = self.columns(problem, rows)
        if predicts_deviations(self.estimator):
            mean, deviation = self.estimator.predict(columns, return_std=True)
            # A dummy estimator of scikit-learn predicts 0, which gives no distribution.
            if (np.asarray(deviation) > 0.0).all():
                return np.asarray(mean, np.float64), np.asarray(deviation, np.float64)
        from sklearn.base import clone
        from sklearn.model_selection import KFold

        residual = np.empty(len(train))
        inner = KFold(min(_INNER_FOLDS, len(train)), shuffle=True, random_state=seed)
        for inside, outside in inner.split(train):
            again = _Fitted.fit(clone(self.estimator), problem, train[inside])
            predicted = again.estimator.predict(again.columns(problem, train[outside]))
            residual[outside] = problem.target[train[outside]] - predicted
        weights = None if problem.weights is None else problem.weights[train]
        size = np.sqrt(np.average(residual**2, weights=weights))
        # A model without errors also needs a finite density.
        size = max(float(size), 1e-6 * float(np.std(problem.target[train])))
        mean = np.asarray(self.estimator.predict(columns), np.float64)
        return mean, np.full(len(rows), size)


def _convergence(estimator: Any, warned: int) -> dict[str, float]:
    found: dict[str, float] = {"warnings": float(warned)} if warned else {}
    convergence = getattr(estimator, "convergence_", None)
    if getattr(convergence, "sampled", False):
        rhat = getattr(convergence, "rhat", None)
        if rhat is not None:
            found["rhat_max"] = float(rhat)
        found["divergences"] = float(getattr(convergence, "divergences", 0.0))
    return found


# Estimators of this process by the hash of their pickles.
_HELD: dict[str, Any] = {}


def _store_estimator(choice: Choice, folder: Path) -> str | None:
    if choice.estimator is None:
        return None
    try:
        content = pickle.dumps(choice.estimator)
    except Exception as error:
        raise ValueError(
            f"models[{choice.name!r}] cannot be pickled ({error}); use functions and classes that a "
            "module defines, no lambdas"
        ) from error
    key = hashlib.sha256(content).hexdigest()[:16]
    _HELD[key] = choice.estimator
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{key}.pickle").write_bytes(content)
    return key


def _load_estimator(folder: str, key: Any) -> Any:
    if key is None:
        return None
    if key not in _HELD:
        # Written only by the process that started this comparison.
        content = (Path(folder) / f"{key}.pickle").read_bytes()
        if hashlib.sha256(content).hexdigest()[:16] != key:
            raise ValueError(f"{folder}/{key}.pickle has changed; start the comparison again")
        _HELD[key] = pickle.loads(content)
    return _HELD[key]
