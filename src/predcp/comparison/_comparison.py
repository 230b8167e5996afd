"""The result of a comparison: scores, differences, one sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from predcp.comparison._cells import Design
from predcp.comparison._leaks import leak_words, leaks
from predcp.comparison._models import BASE_RATE, REGRESSION, Choice
from predcp.comparison._problem import Problem
from predcp.comparison._scores import ROW_SCORES, ROW_WEIGHTS, calibration_error
from predcp.comparison._sentence import Verdict, sentence
from predcp.comparison._statistics import Difference, FoldSums, corrected_error, differences
from predcp.experiments import Record, flags

if TYPE_CHECKING:
    import pandas

# Columns that a note names; whole values of a target that may be classes.
_NAMED_AT_MOST, _FEW_VALUES = 8, 10
# The score by which models are ranked.
DECIDING = "log_likelihood"
_METRICS = {
    REGRESSION: ("log_likelihood", "r_squared", "rmse", "coverage_90"),
    "binary": ("log_likelihood", "brier", "accuracy", "auc"),
    "multiclass": ("log_likelihood", "brier", "accuracy"),
}


@dataclass(frozen=True)
class Score:
    """The mean of a score over the folds, and its error (see `corrected_error`)."""

    mean: float
    error: float


@dataclass(frozen=True)
class Comparison:
    """Models on the same folds of one table.

    **Arguments:**

    - `sentence`: what to do, in words.
    - `scores`: model to metric to score, the best model first; `folds_done`, how many folds each
        mean is over.
    - `differences`: every pair of models, in the mean log score per row.
    - `worse`: the models that the sentence calls clearly worse.
    - `failed`: model to the last line of its error; these models are left out elsewhere.
    - `notes`: how the table was prepared, and remarks on the fits.
    """

    name: str
    task: str
    sentence: str
    scores: Mapping[str, Mapping[str, Score]]
    differences: tuple[Difference, ...]
    worse: tuple[str, ...]
    words: Mapping[str, str]
    folds: int
    folds_done: int
    failed: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def best(self) -> str:
        """The name of the model with the best mean log score."""
        return next(iter(self.scores))

    def difference(self, first: str, second: str) -> Difference:
        """The difference of two models by name."""
        for pair in self.differences:
            if {pair.first, pair.second} == {first, second} and first != second:
                return pair if pair.first == first else pair.reversed()
        raise ValueError(f"model must be two of {', '.join(self.scores)}, got {first}, {second}")

    def to_frame(self) -> pandas.DataFrame:
        """Scores as a data frame: one row per model, a column for each mean and its error."""
        import pandas

        rows = {
            model: {
                column: value
                for metric, score in metrics.items()
                for column, value in ((metric, score.mean), (f"{metric}_error", score.error))
            }
            for model, metrics in self.scores.items()
        }
        return pandas.DataFrame.from_dict(rows, orient="index")

    def to_json(self) -> str:
        """Everything as JSON; an unknown error is null."""
        values = {name: value for name, value in vars(self).items() if name != "words"}
        values["scores"] = {
            model: {metric: asdict(score) for metric, score in metrics.items()}
            for model, metrics in self.scores.items()
        }
        values["differences"] = [{**asdict(pair), "clear": pair.clear} for pair in self.differences]
        return json.dumps(_finite(values), allow_nan=False)

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write `report.md`, `report.html` and the picture; the paths of the first two."""
        from predcp.comparison._report import blocks
        from predcp.experiments import write_document

        return write_document(Path(folder), f"predcp: {self.name}", blocks(self))

    def __str__(self) -> str:
        from predcp.comparison._report import as_text

        return as_text(self)


def summarise(
    problem: Problem,
    choices: Sequence[Choice],
    design: Design,
    records: Sequence[Record],
    max_seconds: float | None,
) -> Comparison:
    """The comparison of finished fits.

    A model with a failed fit is left out. If a run was cut short, only the folds that every model
    has finished are used.
    """
    failed = {
        r.cell.prior: (r.traceback or "").strip().splitlines()[-1] for r in records if r.failed
    }
    words = {choice.name: choice.words for choice in choices}
    by_model: dict[str, dict[int, Record]] = {
        choice.name: {} for choice in choices if choice.name not in failed
    }
    for record in records:
        if record.cell.prior in by_model:
            by_model[record.cell.prior][record.cell.split] = record
    if not by_model:
        name, error = next(iter(failed.items()))
        raise ValueError(f"every model failed; {name}: {error}")
    common = sorted(set.intersection(*(set(found) for found in by_model.values())))
    if not common:
        raise ValueError(
            f"max_seconds must be longer: within {max_seconds} s no fold was fitted by every model; "
            "name fewer models, or keep finished fits in a store and go on"
        )
    kept = {model: [found[n] for n in common] for model, found in by_model.items()}
    scores = {model: _scores(found, problem, design) for model, found in kept.items()}
    order = sorted(scores, key=lambda model: -scores[model][DECIDING].mean)
    sums = {model: [_fold_sums(record) for record in kept[model]] for model in order}
    pairs = differences(sums, design.folds, BASE_RATE)
    ranked = {model: scores[model] for model in order}
    means = {model: {m: s.mean for m, s in metrics.items()} for model, metrics in ranked.items()}
    rows = len(problem.target)
    verdict = Verdict(problem.task, means, pairs, words, len(common), rows)
    total = design.folds * design.repeats
    notes = [*_table_notes(problem, design), *_fit_notes(kept, words)]
    if len(common) < total:
        notes.insert(
            0,
            f"The limit on time (max_seconds={max_seconds:g}) ended the comparison after "
            f"{len(common)} of {total} folds."
            if max_seconds is not None
            else f"{len(common)} of {total} folds are finished.",
        )
    words_of_all = sentence(verdict)
    if failed:
        names = ", ".join(words[name] for name in failed)
        words_of_all = f"{words_of_all} Could not be fitted: {names}."
    if telling := leaks(problem):
        words_of_all = f"{words_of_all} {leak_words(telling)}"
    return Comparison(
        problem.name,
        problem.task,
        words_of_all,
        ranked,
        tuple(pairs),
        tuple(verdict.worse),
        words,
        design.folds,
        len(common),
        failed,
        tuple(notes),
    )


def _scores(records: Sequence[Record], problem: Problem, design: Design) -> dict[str, Score]:
    found = {}
    for metric in _METRICS[problem.task]:
        values = [_metric(record, metric) for record in records]
        found[metric] = Score(float(np.mean(values)), corrected_error(values, design.folds))
    pooled: dict[str, float] = {}
    for record in records:
        for part, name, value in record.metrics:
            if part == "pooled":
                pooled[name] = pooled.get(name, 0.0) + value
    found["calibration_error"] = Score(calibration_error(pooled, problem.task), np.nan)
    seconds = [_metric(record, "fit_seconds") for record in records]
    found["fit_seconds"] = Score(float(np.mean(seconds)), np.nan)
    return found


def _fold_sums(record: Record) -> FoldSums:
    parts: dict[str, list[float]] = {ROW_SCORES: [], ROW_WEIGHTS: []}
    for part, _, value in record.metrics:
        if part in parts:
            parts[part].append(value)
    return FoldSums(np.array(parts[ROW_SCORES]), np.array(parts[ROW_WEIGHTS]))


def _metric(record: Record, metric: str) -> float:
    return next(
        (value for part, name, value in record.metrics if (part, name) == ("test", metric)),
        np.nan,
    )


def _table_notes(problem: Problem, design: Design) -> list[str]:
    rows, columns = problem.features.shape
    texts = len(problem.categories)
    notes = [f"{rows} rows and {columns} columns, {texts} of them categories."]
    if problem.task != REGRESSION:
        counts = np.bincount(problem.target, weights=problem.weights)
        shares = counts / counts.sum()
        listed = ", ".join(f"{n} {100 * s:.3g}%" for n, s in zip(problem.class_names, shares))
        notes.append(f"Classes: {listed}; every fold has them in these proportions.")
    elif _may_be_classes(problem.target):
        notes.append(
            f"The target is taken as a number, with {len(np.unique(problem.target))} values; if they are "
            "classes, say so: classes=True (--classes)."
        )
    if problem.left_out:
        named = ", ".join(problem.left_out[:_NAMED_AT_MOST])
        more = ", ..." if len(problem.left_out) > _NAMED_AT_MOST else ""
        notes.append(f"Left out, as they never vary: {named}{more}.")
    if problem.gaps:
        notes.append(
            f"{problem.gaps} missing values: inside each fold, a column of numbers gets the median of "
            "the training rows, and a gap in a column of text is a category of its own; gradient "
            "boosting and pipelines get the gaps as they are."
        )
    if texts:
        notes.append(
            "Categories become one indicator each, learned from the training rows of the fold."
        )
    if problem.weights is not None:
        notes.append("Rows count as often as their weights say, in fits and in scores.")
    times = f", {design.repeats} times" if design.repeats > 1 else ""
    stratified = "" if problem.task == REGRESSION else "stratified "
    notes.append(
        f"{design.folds}-fold {stratified}cross-validation{times}, the same folds for every model, "
        f"seed {design.seed}; our estimators by inference={design.inference!r}."
    )
    return notes


def _may_be_classes(target: np.ndarray) -> bool:
    """Whether the numbers of a target are few and whole."""
    return bool(np.all(target == np.round(target))) and len(np.unique(target)) <= _FEW_VALUES


def _fit_notes(kept: Mapping[str, Sequence[Record]], words: Mapping[str, str]) -> list[str]:
    notes = []
    for model, records in kept.items():
        doubtful = sum(bool(flags(r.cell.inference, r.convergence)) for r in records)
        if doubtful:
            notes.append(
                f"{words[model]}: {doubtful} of {len(records)} fits may not have converged."
            )
        warned = sum("warnings" in r.convergence for r in records)
        if warned:
            notes.append(f"{words[model]}: {warned} of {len(records)} fits gave warnings.")
    return notes


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
