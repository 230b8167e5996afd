"""Evaluate fitted runs on many tasks of new classes, and compare them task by task."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from predcp.fewshot._episodes import Pool
from predcp.fewshot._fit import Fit
from predcp.fewshot._scores import Scores
from predcp.fewshot._train import require_alike

# The paper tests on this many tasks, with as many queries per class as shots.
_PAPER_TASKS = 600
_NORMAL = 1.959963984540054


@dataclass(frozen=True)
class Evaluation:
    """Scores of one run on tasks that are the same for every run.

    **Arguments**: per task, `(tasks,)`: `accuracy` (a fraction), `log_likelihood` (mean over the queries),
    `small_accuracy` on the first `shots` queries of each class; `bins` `(3, bins)`, summed over tasks.
    """

    accuracy: np.ndarray
    log_likelihood: np.ndarray
    small_accuracy: np.ndarray
    bins: np.ndarray

    @property
    def mean(self) -> float:
        """Mean accuracy, in percent."""
        return 100.0 * float(self.accuracy.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean accuracy over tasks, in percent."""
        return 100.0 * standard_error(self.accuracy)

    @property
    def small_query_interval(self) -> float:
        """Half the width of the interval that the paper seems to print, in percent.

        The 95% interval of 600 tasks with `shots` queries of each class: the noise of that test, not of
        this one.
        """
        some = self.small_accuracy[:_PAPER_TASKS]
        spread = float(np.std(some, ddof=1))
        return 100.0 * _NORMAL * spread / math.sqrt(_PAPER_TASKS)

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: mean gap of confidence and accuracy over 15 equal bins."""
        count, confidence, right = self.bins
        return float(np.abs(confidence - right).sum() / count.sum())

    def metrics(self) -> dict[str, float]:
        """The figures of a table."""
        return {
            "accuracy": self.mean,
            "log_likelihood": float(self.log_likelihood.mean()),
            "calibration_error": self.calibration_error,
        }


@dataclass(frozen=True)
class Difference:
    """Accuracy of one run less that of another on the same tasks, in percent, with standard error.

    `degrees`: degrees of freedom of the error, for Student's t; tasks or seeds, less one.
    """

    mean: float
    standard_error: float
    degrees: int


def evaluate(
    fit: Fit, pool: Pool, tasks: int | None = None, stream: str = "test"
) -> list[Evaluation]:
    """Evaluate the parameters kept, for each run.

    **Arguments**: `pool`, classes that no run was trained on; `tasks`, the setting `test_tasks` if None;
    `stream`, `test`, or `check` for tasks of validation classes that no selection has used.
    """
    trainer, settings = fit.trainer, fit.trainer.settings
    pool.require(settings.ways, settings.shots, settings.queries, f"the {stream} data")
    require_alike(pool, trainer.train, stream)
    found = trainer.scores(fit.best, pool, tasks or settings.test_tasks, stream)
    return evaluations(found)


def evaluations(scores: Scores) -> list[Evaluation]:
    """One `Evaluation` per run."""
    leaves = [np.asarray(leaf, np.float64) for leaf in scores]
    return [
        Evaluation(accuracy, likelihood, small, bins.sum(0))
        for accuracy, likelihood, small, bins in zip(*leaves)
    ]


def paired_difference(ours: Any, theirs: Any) -> Difference:
    """Paired difference of accuracies on the same tasks.

    **Arguments**: `(tasks,)`, or `(seeds, tasks)`: seeds are then averaged task by task, and the error
    is the larger of that over tasks and that over seeds (paired, too).
    """
    gap = 100.0 * (np.asarray(ours, np.float64) - np.asarray(theirs, np.float64))
    if gap.ndim == 1:
        gap = gap[None]
    sides = [gap.mean(0), gap.mean(1)] if len(gap) > 1 else [gap.mean(0)]
    error, degrees = max((standard_error(side), len(side) - 1) for side in sides)
    return Difference(float(gap.mean()), error, degrees)


def standard_error(values: np.ndarray) -> float:
    """Standard error of the mean of values; NaN for a single one."""
    if len(values) < 2:
        return math.nan
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))
