"""The report of a comparison: a sentence, a picture, tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from predcp.comparison._picture import picture
from predcp.comparison._statistics import LEVEL
from predcp.experiments import Block, Grid, Heading, Paragraph, plus_minus, rounded

if TYPE_CHECKING:
    from predcp.comparison._comparison import Comparison

_TITLES = {
    "log_likelihood": "log score",
    "brier": "Brier score",
    "accuracy": "accuracy (%)",
    "auc": "area under the ROC curve",
    "r_squared": "R^2",
    "rmse": "RMSE",
    "coverage_90": "coverage of 90% intervals (%)",
    "calibration_error": "calibration error (%)",
    "fit_seconds": "seconds per fit",
}


def blocks(comparison: Comparison) -> list[Block]:
    """The report's blocks."""
    found: list[Block] = [
        Heading(f"Which model for {comparison.name}?", 1),
        Paragraph(comparison.sentence),
        *picture(comparison),
        Heading("Scores"),
        Paragraph(
            "The log score is the mean log probability (density) of the test rows, higher is better; "
            "it decides. For classes, exp(log score) is the probability that the true class was typically "
            "given (a geometric mean). Brier score, RMSE and calibration error: lower is better. "
            "Intervals of 90% should cover 90%."
        ),
        scores_grid(comparison),
        Paragraph(_about_errors(comparison)),
    ]
    if comparison.differences:
        found += [
            Heading("Differences in the log score"),
            Paragraph(
                "First model minus second on the same rows; positive means that the first is better. "
                f"A difference is clear if a t test rejects zero at {100 * LEVEL:g}% after Holm's "
                "correction for all pairs with the best model or the base rate (any other pair: for "
                "all pairs). Its error is that of the rows of a fold, with the correction below."
            ),
            _differences_grid(comparison),
        ]
    found += [Heading("What was done")]
    found += [Paragraph(note) for note in comparison.notes]
    if comparison.task == "regression":
        found.append(
            Paragraph(
                "Predictive distributions are normal. A model that predicts no standard deviation gets "
                "the size of its own errors on left-out rows of the training part (5 folds)."
            )
        )
    if comparison.failed:
        found.append(Heading("Models that failed"))
        rows = [(comparison.words[name], error) for name, error in comparison.failed.items()]
        found.append(Grid(("model", "error"), rows))
    return found


def scores_grid(comparison: Comparison) -> Grid:
    """One row per model, the best first."""
    metrics = next(iter(comparison.scores.values()))
    rows = [
        (
            comparison.words[model],
            *(plus_minus(score.mean, score.error) for score in scores.values()),
        )
        for model, scores in comparison.scores.items()
    ]
    return Grid(("model", *(_TITLES[metric] for metric in metrics)), rows)


def as_text(comparison: Comparison) -> str:
    """The sentence and the scores for a terminal."""
    lines = scores_grid(comparison).lines()
    widths = [max(map(len, column)) for column in zip(*lines)]
    table = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in lines
    ]
    failed = [
        f"{comparison.words[name]} failed: {error}" for name, error in comparison.failed.items()
    ]
    return "\n".join([comparison.sentence, "", *table, *failed])


def _differences_grid(comparison: Comparison) -> Grid:
    rows = [
        (
            comparison.words[pair.first],
            comparison.words[pair.second],
            plus_minus(pair.mean, pair.error),
            rounded(pair.adjusted),
            "yes" if pair.clear else "no",
        )
        for pair in comparison.differences
    ]
    return Grid(("first", "second", "difference", "adjusted p", "clear?"), rows)


def _about_errors(comparison: Comparison) -> str:
    return (
        f"Means over {comparison.folds_done} folds. Errors allow for training sets that overlap "
        f"(Nadeau and Bengio, 2003): the variance over folds times 1/{comparison.folds_done} + "
        f"1/{comparison.folds - 1} instead of 1/{comparison.folds_done}. The calibration error pools "
        "the test rows of all folds."
    )
