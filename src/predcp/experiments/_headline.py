"""The first lines of a report: which prior did best, and whether its lead is more than chance."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb

from predcp.experiments._baseline import BASE_RATE
from predcp.experiments._document import Block, Grid, Paragraph
from predcp.experiments._metrics import (
    higher_is_better,
    is_comparable,
    is_test_metric,
    metric_title,
)
from predcp.experiments._numbers import plus_minus
from predcp.experiments._statistics import Pair, Row, Summary

# The metric of the comparison: the first of these that exists.
_DECIDING = ("log_likelihood", "accuracy", "rmse")
_LEVEL = 0.05
# With fewer splits the spread of a difference is too uncertain.
_FEWEST_SPLITS = 3


@dataclass(frozen=True)
class Verdict:
    """The best prior on one data set with one inference.

    **Arguments:** `margin`, its paired difference from the second best, and `over_base_rate` from
    the base rate; positive is better, None where there is nothing to compare with.
    """

    best: Row
    margin: Pair | None
    over_base_rate: Pair | None


def headline(summary: Summary, name: Callable[[str], str] = str) -> list[Block]:
    """A sentence and a table; nothing where there are fewer than two priors.

    **Arguments:** `name` turns the name of a prior or an inference into words.
    """
    metric = _deciding_metric(summary.rows)
    if metric is None:
        return []
    verdicts = _verdicts(summary, metric)
    if not any(verdict.margin or verdict.over_base_rate for verdict in verdicts):
        return []
    count = _comparisons(summary.rows, metric)
    clear = [v for v in verdicts if v.margin is not None and is_clear(v.margin, count)]
    if not any(verdict.margin for verdict in verdicts):
        words = f"One prior was run, so there is none to compare it with ({metric_title(metric)})."
    elif not clear:
        words = (
            f"No prior is clearly the best in {metric_title(metric)}: every lead over the second "
            f"best may be chance ({_number(count, 'comparison')}, paired on the same splits)."
        )
    else:
        where = "; ".join(
            f"{name(v.best.prior)} on {v.best.data} ({name(v.best.inference)})" for v in clear
        )
        words = (
            f"Clearly the best in {metric_title(metric)}, in {len(clear)} of "
            f"{_number(len(verdicts), 'comparison')} of priors: {where}. Other leads may be chance."
        )
    useless = [
        f"{v.best.data} ({name(v.best.inference)})"
        for v in verdicts
        if (lead := v.over_base_rate) is not None
        and not (lead.difference > 0 and is_clear(lead, len(verdicts)))
    ]
    if useless:
        words += f" Not clearly better than the base rate, with any prior: {', '.join(useless)}."
    header = ("data", "inference", "best prior", metric_title(metric), "second best")
    header += ("lead over the second", "more than chance?", "lead over the base rate")
    rows = [_line(verdict, count, name) for verdict in verdicts]
    return [
        Paragraph(words),
        Grid(header, rows),
        Paragraph(
            "A lead is a mean paired difference with its standard error. It is more than chance "
            f"if a t test over the splits rejects zero at {100 * _LEVEL:g}% after correction for "
            f"{_number(count, 'pair')} of priors (Bonferroni). Splits of one data set share rows, so "
            "the errors are somewhat too small."
        ),
    ]


def is_clear(pair: Pair, comparisons: int) -> bool:
    """Whether a paired difference exceeds chance, corrected for the number of comparisons."""
    splits = pair.wins + pair.ties + pair.losses
    if pair.se is None or splits < _FEWEST_SPLITS:
        return False
    if pair.se == 0.0:
        return pair.difference != 0.0
    from scipy.stats import t

    limit = t.ppf(1 - 0.5 * _LEVEL / max(comparisons, 1), splits - 1)
    return bool(abs(pair.difference) > limit * pair.se)


def _deciding_metric(rows: Sequence[Row]) -> str | None:
    found = sorted({row.metric for row in rows if is_test_metric(row.metric)})
    found = [metric for metric in found if is_comparable(metric)]
    return next((metric for metric in _DECIDING if metric in found), found[0] if found else None)


def _verdicts(summary: Summary, metric: str) -> list[Verdict]:
    pairs = {
        (pair.data, pair.inference, *sorted((pair.first, pair.second))): pair
        for pair in summary.pairs
        if pair.metric == metric
    }

    def lead(first: Row, second: str) -> Pair | None:
        pair = pairs.get((first.data, first.inference, *sorted((first.prior, second))))
        return pair if pair is None or pair.first == first.prior else pair.reversed()

    verdicts = []
    sign = -1.0 if higher_is_better(metric) else 1.0
    for rows in _groups(summary.rows, metric).values():
        ranked = sorted(rows, key=lambda row: sign * row.mean)
        margin = lead(ranked[0], ranked[1].prior) if len(ranked) > 1 else None
        verdicts.append(Verdict(ranked[0], margin, lead(ranked[0], BASE_RATE)))
    return verdicts


def _groups(rows: Sequence[Row], metric: str) -> dict[tuple[str, str], list[Row]]:
    """The priors of each data set and inference; the base rate is none of them."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.metric == metric and row.prior != BASE_RATE:
            groups[row.data, row.inference].append(row)
    return groups


def _comparisons(rows: Sequence[Row], metric: str) -> int:
    return sum(comb(len(members), 2) for members in _groups(rows, metric).values())


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _line(verdict: Verdict, count: int, name: Callable[[str], str]) -> tuple[str, ...]:
    best, margin, base = verdict.best, verdict.margin, verdict.over_base_rate
    clear = ""
    if margin is not None:
        clear = "yes" if is_clear(margin, count) else "no"
    return (
        *(best.data, name(best.inference), name(best.prior), plus_minus(best.mean, best.se)),
        "" if margin is None else name(margin.second),
        "" if margin is None else plus_minus(margin.difference, margin.se),
        clear,
        "" if base is None else plus_minus(base.difference, base.se),
    )
