"""Means with standard errors over splits, and paired differences between priors."""

import math
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from predcp.experiments._baseline import BASE_RATE, NO_INFERENCE
from predcp.experiments._convergence import flags
from predcp.experiments._labels import prior_labels
from predcp.experiments._metrics import higher_is_better, is_comparable, metric_name
from predcp.experiments._record import Record

# Two values this close, relative to the larger, are a tie.
TIE = 1e-3


@dataclass(frozen=True)
class Row:
    """One data set x prior x inference x metric.

    **Arguments:**

    - `se`: the standard error over splits (over seeds where there is one split); None for one fit.
    - `rhat_max`: the largest over splits; `divergences`: the mean fraction; None where not given.
    """

    data: str
    prior: str
    inference: str
    metric: str
    mean: float
    se: float | None
    splits: int
    seconds: float
    rhat_max: float | None
    divergences: float | None
    device: str

    def to_json(self) -> dict[str, Any]:
        """JSON has no infinity: such a mean is null, such an R-hat the largest float."""
        values = asdict(self)
        if not math.isfinite(self.mean):
            values["mean"] = values["se"] = None
        if self.rhat_max is not None and not math.isfinite(self.rhat_max):
            values["rhat_max"] = sys.float_info.max
        return values


@dataclass(frozen=True)
class Pair:
    """How one prior compares with another on the same splits.

    **Arguments:** `difference`, mean of first minus second, positive where the first is better;
    `wins`, `ties` and `losses` of the first count splits.
    """

    data: str
    inference: str
    metric: str
    first: str
    second: str
    difference: float
    se: float | None
    wins: int
    ties: int
    losses: int

    def reversed(self) -> "Pair":
        """The same comparison with the second prior first."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=-self.difference,
            wins=self.losses,
            losses=self.wins,
        )


@dataclass(frozen=True)
class Summary:
    """All rows and pairs of an experiment, and the flagged cells of each row."""

    rows: list[Row]
    pairs: list[Pair]
    flagged: dict[tuple[str, str, str], int]


def summarise(records: Sequence[Record]) -> Summary:
    """Statistics of finished records."""
    labels = prior_labels([record.cell for record in records])
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        groups[record.cell.data, labels[record.cell], record.cell.inference].append(record)
    values = {group: _values(members) for group, members in groups.items()}
    rows = [
        _row(group, metric, units, groups[group])
        for group in sorted(groups)
        for metric, units in values[group].items()
    ]
    flagged = {
        group: sum(bool(flags(group[2], record.convergence)) for record in members)
        for group, members in groups.items()
    }
    return Summary(rows, _pairs(values), flagged)


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean and its standard error; no error for a single value."""
    count = len(values)
    mean = sum(values) / count
    if count < 2:
        return mean, None
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    return mean, math.sqrt(variance / count)


def _values(records: Sequence[Record]) -> dict[str, dict[int, float]]:
    """Metric to unit to value: the mean over seeds of each split, or each seed of one split."""
    by_split = len({record.cell.split for record in records}) > 1
    gathered: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        unit = record.cell.split if by_split else record.cell.seed
        for part, metric, value in record.metrics:
            gathered[metric_name(part, metric)][unit].append(value)
    return {
        metric: {unit: sum(items) / len(items) for unit, items in sorted(units.items())}
        for metric, units in gathered.items()
    }


def _row(
    group: tuple[str, str, str], metric: str, units: dict[int, float], records: Sequence[Record]
) -> Row:
    mean, error = mean_and_error(list(units.values()))
    rhats = _figures(records, "rhat_max")
    divergences = _figures(records, "divergences")
    return Row(
        *group,
        metric=metric,
        mean=mean,
        se=error,
        splits=len({record.cell.split for record in records}),
        seconds=sum(record.seconds for record in records) / len(records),
        rhat_max=max(rhats, default=None),
        divergences=sum(divergences) / len(divergences) if divergences else None,
        device="; ".join(sorted({record.environment["device"] for record in records})),
    )


def _figures(records: Sequence[Record], name: str) -> list[float]:
    """A convergence figure of every record that has it; one that was not finite is infinite."""
    found = (record.convergence[name] for record in records if name in record.convergence)
    return [math.inf if value is None else value for value in found]


def _pairs(values: dict[tuple[str, str, str], dict[str, dict[int, float]]]) -> list[Pair]:
    comparable: dict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
    for data, prior, inference in sorted(values):
        if inference != NO_INFERENCE:
            comparable[data, inference].append((data, prior, inference))
    for (data, _), groups in comparable.items():
        # The base rate has no inference of its own: it is compared with every one.
        baseline = (data, BASE_RATE, NO_INFERENCE)
        if baseline in values:
            groups.append(baseline)
    pairs = []
    for (data, inference), groups in comparable.items():
        for one, other in combinations(groups, 2):
            ours, theirs, first, second = values[one], values[other], one[1], other[1]
            for metric in filter(is_comparable, ours.keys() & theirs.keys()):
                pair = _pair(ours[metric], theirs[metric], metric)
                if pair is not None:
                    pairs.append(Pair(data, inference, metric, first, second, *pair))
    return sorted(pairs, key=lambda pair: (pair.metric, pair.data, pair.inference))


def _pair(
    first: dict[int, float], second: dict[int, float], metric: str
) -> tuple[float, float | None, int, int, int] | None:
    common = sorted(first.keys() & second.keys())
    if not common:
        return None
    sign = 1.0 if higher_is_better(metric) else -1.0
    differences = [sign * (first[unit] - second[unit]) for unit in common]
    margins = [TIE * max(abs(first[unit]), abs(second[unit])) for unit in common]
    wins = sum(d > margin for d, margin in zip(differences, margins))
    losses = sum(d < -margin for d, margin in zip(differences, margins))
    return (*mean_and_error(differences), wins, len(common) - wins - losses, losses)
