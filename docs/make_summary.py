"""Fill the tables "where it helps, where it hurts" of the experiments page, and the README's
sentences of them: `python docs/make_summary.py`.

Every row counts paired differences of stored results; `--check` only says whether the pages are current.
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import make_classes
import make_depth
import make_pooled
import make_shift
from make_tables import HERE, RESULTS, chosen, fill_pages, markdown, metric, records, scores
from scipy.stats import t as student

from predcp.experiments import Record, Store, mean_and_error
from predcp.paper import EXPERIMENTS

PAGES = ("experiments.md", "../README.md")
LEVEL = 0.05
# The least difference that matters, in each unit; smaller ones do not decide a row.
NATS, POINTS, LOG_DRAWS = "nats per row", "points", "in log(effective draws / draws)"
LEAST = {NATS: 0.01, POINTS: 0.5, LOG_DRAWS: 0.1}
# Of errors of effects, in per cent of the other prior's.
LEAST_ERROR = 1.0


class Difference(NamedTuple):
    """Ours less theirs: positive is better. `count`, of what the error is over; None for a single seed."""

    mean: float
    error: float
    count: int | None

    def beyond(self, comparisons: int) -> tuple[int, bool]:
        """1 if better by more than two errors, -1 if worse, else 0; and whether it survives correction."""
        if abs(self.mean) <= 2.0 * self.error:
            return 0, False
        side = int(math.copysign(1, self.mean))
        if self.count is None:
            return side, False
        limit = max(2.0, student.ppf(1.0 - LEVEL / (2 * comparisons), self.count - 1))
        return side, abs(self.mean) > limit * self.error


def verdict(better: bool, worse: bool) -> str:
    """In words, from whether a difference that matters survives to either side."""
    return {
        (True, False): "helps",
        (False, True): "hurts",
        (True, True): "mixed",
        (False, False): "no clear difference",
    }[better, worse]


class Row(NamedTuple):
    """One setting: its differences, out of how many comparisons of its study, and where to read on."""

    setting: str
    page: str
    differences: Sequence[Difference]
    comparisons: int
    unit: str
    digits: int
    words: str = ""
    brief: str = ""

    @property
    def verdict(self) -> str:
        """From the differences that survive correction and are large enough to matter."""
        kept = [
            each.mean
            for each in self.differences
            if each.beyond(self.comparisons)[1] and abs(each.mean) >= LEAST[self.unit]
        ]
        return verdict(any(mean > 0.0 for mean in kept), any(mean < 0.0 for mean in kept))

    @property
    def found(self) -> str:
        """The least and the greatest difference."""
        low, *_, high = sorted(each.mean for each in self.differences)
        return f"{low:+.{self.digits}f} to {high:+.{self.digits}f} {self.unit}"

    def cells(self) -> tuple[str, ...]:
        """Of the table."""
        sides = [each.beyond(self.comparisons) for each in self.differences]
        counts = (
            f"{sum(side == sign for side, _ in sides)} "
            f"({sum(side == sign and sure for side, sure in sides)})"
            for sign in (1, -1)
        )
        return (
            self.verdict,
            f"[{self.setting}]({self.page})",
            str(len(sides)),
            *counts,
            f"{self.found}; {self.words}" if self.words else self.found,
        )


def difference(values: Sequence[float]) -> Difference:
    """Of paired values, ours less theirs."""
    mean, error = mean_and_error(values)
    assert error is not None
    return Difference(mean, error, len(values))


def _gaps(ours: Iterable[float], theirs: Iterable[float]) -> Difference:
    return difference([a - b for a, b in zip(ours, theirs, strict=True)])


def sampling() -> Row:
    """Effective draws per draw, the worst test probability of each split: log ratios."""

    def efficiency(record: Record) -> float:
        figures = record.convergence
        # 1 where a probability stood still: nothing of it is effective.
        return math.log(max(figures["ess_probability_min"] or 0.0, 1.0) / figures["draws"])

    found, all_alike = [], []
    for data in ("allaml", "colon"):
        runs = {p: chosen("table1", data, p, "mcmc") for p in ("half-cauchy", "ecp", "predcp")}
        base = [efficiency(record) for record in runs["half-cauchy"]]
        for prior in ("ecp", "predcp"):
            found.append(_gaps((efficiency(record) for record in runs[prior]), base))
        all_alike += [*runs["ecp"], *runs["predcp"]]
    mixed = sum((record.convergence["rhat_probability"] or 9.0) < 1.01 for record in all_alike)
    low, *_, high = sorted(math.exp(each.mean) for each in found)
    times = f"{low:.1f} to {high:.0f} times as many"
    words = f"{times}; R-hat below 1.01 in {mixed} of {len(all_alike)} cells"
    page = "table-1.md#mcmc"
    setting = "sampling of sparse logistic regressions, few rows"
    return Row(setting, page, found, len(found), LOG_DRAWS, 2, words, f"{times} effective draws")


def logistic() -> Row:
    """Log likelihood on test rows, ECP and PredCP less half-Cauchy."""
    found = []
    for data in ("allaml", "colon", "breast"):
        base = scores(chosen("table1", data, "half-cauchy", "mcmc"), "log_likelihood")
        found += [
            _gaps(scores(chosen("table1", data, prior, "mcmc"), "log_likelihood"), base)
            for prior in ("ecp", "predcp")
        ]
    setting = "predictions of sparse logistic regressions"
    return Row(setting, "table-1.md#mcmc", found, len(found), NATS, 3)


def depth(names: Sequence[str], words: str) -> Row:
    """PredCP less each other prior at the largest depth, log likelihood."""
    found = [
        difference(
            make_depth.paired(
                (data, "predcp", make_depth.deepest(data)),
                (data, prior, make_depth.deepest(data)),
                "log_likelihood",
            )
        )
        for data in names
        for prior in make_depth.PRIORS[:-1]
    ]
    setting = f"residual networks, {words}"
    return Row(setting, "depth.md", found, make_depth.CONTESTS, NATS, 3)


def shift(kind: str, words: str) -> Row:
    """PredCP less each other prior at T = 1, log likelihood."""
    found = [
        difference(
            make_shift.paired(
                make_shift.scores(data, kind, "predcp", 1.0, "log_likelihood"),
                make_shift.scores(data, kind, prior, 1.0, "log_likelihood"),
            )
        )
        for data in make_shift.SETS
        for prior in make_shift.PRIORS[:-1]
    ]
    page = "shift.md#away-from-the-data"
    return Row(f"residual networks, {words}", page, found, 60, NATS, 3)


def classes() -> Row:
    """PredCP less each prior that is none, for classes, at T = 1, on all kinds of rows that were run."""
    study = make_classes.CLASSES
    rivals = [prior for prior in study.rivals() if not prior.startswith("predcp")]
    found = []
    for data, kind, prior in product(study.sets, study.kinds, rivals):
        gaps = make_shift.paired(
            make_shift.scores(data, kind, "predcp", 1.0, "log_likelihood", study),
            make_shift.scores(data, kind, prior, 1.0, "log_likelihood", study),
        )
        if len(gaps) > 1:
            found.append(difference(gaps))
    sets = dict.fromkeys(record.cell.data for record in records(study.experiment))
    setting = f"residual networks, classes of {' and '.join(sets)}"
    page = "classes-and-nuts.md"
    return Row(setting, page, found, study.comparisons, NATS, 3)


def power() -> Row:
    """The layer that is switched off: the PredCP less scales that are fixed."""
    runs = make_shift.switched()
    base = {
        n: metric(r, "validation", "log_likelihood") for n, r in runs["power", "predcp"].items()
    }
    found = []
    for name in ("fixed-0.1", "fixed-1"):
        own = {n: metric(r, "validation", "log_likelihood") for n, r in runs["power", name].items()}
        found.append(difference(make_shift.paired(base, own)))
    kept = [
        sum(
            (record.convergence["live_layers"] or 0.0) > 0.0
            for record in runs["power", name].values()
        )
        for name in ("predcp", "predcp warmup")
    ]
    words = f"layer kept in {kept[0]} of 10 splits, with a divergence that rises in {kept[1]}"
    page = "shift.md#the-layer-that-is-switched-off"
    return Row("a useful layer that is switched off (power)", page, found, 36, NATS, 3, words)


def few_shot(data: str, words: str) -> Row:
    """PredCPs less MAML, accuracy."""
    found = [
        Difference(
            row["less_maml"],
            row["less_maml_error"],
            row["less_maml_degrees"] + 1 if row["seeds"] > 1 else None,
        )
        for row in make_pooled.compared()["test"]
        if row["data"] == data and row["prior"].startswith("predcp")
    ]
    page = "table-3-pooled.md"
    return Row(f"few-shot learning, {words}", page, found, make_pooled.comparisons(), POINTS, 1)


@lru_cache(maxsize=1)
def rows() -> list[Row]:
    """All settings but those of the scales of group effects, in the order of the pages."""
    return [
        sampling(),
        logistic(),
        depth(("energy", "yacht"), "50 and 100 layers on energy and yacht"),
        depth(("boston", "concrete"), "25 layers on boston and concrete"),
        shift("test", "test rows"),
        shift("gap", "gaps in the data"),
        shift("noise", "noise in the inputs"),
        shift("shift", "shifted inputs"),
        classes(),
        power(),
        few_shot("fc100-1shot", "FC100, one shot"),
        few_shot("fc100-5shot", "FC100, five shots"),
        few_shot("cifar100-by-class-1shot", "classes on which nothing was tuned, one shot"),
        few_shot("omniglot-1shot", "Omniglot, one shot and one seed"),
    ]


def summary() -> str:
    """Every row."""
    titles = ("", "setting", "differences", "better", "worse", "from the least to the greatest")
    return markdown(titles, [row.cells() for row in rows()])


def scales() -> str:
    """Errors of group effects by situation: the PredCP with both pi against each of seven other priors."""
    from studies.scale_priors import compare
    from studies.scale_priors.designs import SCALES
    from studies.scale_priors.page_tables import places_of
    from studies.scale_priors.priors import OTHERS
    from studies.scale_priors.situations import SITUATIONS
    from studies.scale_priors.store import simulated

    score, base, lines = "effect_error", simulated()["effect_error"], []
    for situation, designs in SITUATIONS.items():
        for ours, words in (("predcp-gamma", "gamma"), ("predcp-log-cauchy", "log-Cauchy")):
            texts = []
            for scale in SCALES:
                places = places_of(designs, scale)
                found, sides = [], []
                for other in OTHERS:
                    gap = compare.pooled(places, ours, other, score)
                    usual = sum(base[(*place, other)] for place in places) / len(places)
                    found.append(100.0 * gap.mean / usual)
                    sides.append(compare.verdict(gap, score, compare.comparisons()))
                counts = [
                    (
                        sum(side == sign for side, _ in sides),
                        sum(
                            side == sign and sure and abs(each) >= LEAST_ERROR
                            for (side, sure), each in zip(sides, found, strict=True)
                        ),
                    )
                    for sign in (1, -1)
                ]
                (better, helped), (worse, hurt) = counts
                texts.append(
                    f"{verdict(helped > 0, hurt > 0)}: {better} ({helped}) better, {worse} ({hurt}) "
                    f"worse; {min(found):+.0f} to {max(found):+.0f}%"
                )
            lines.append((situation, words, *texts))
    return markdown(("situation", "pi", *SCALES), lines)


def told() -> str:
    """A sentence per verdict, with every setting, and the claims of the study of scales."""
    from studies.scale_priors.compare import comparisons
    from studies.scale_priors.costs import clause
    from studies.scale_priors.sentences import claims

    study = claims()
    gains = (f"{row.setting}: {row.brief or row.found}" for row in rows() if row.verdict == "helps")
    return (
        "We compare these priors with the defaults of the field. In a study that was fixed in advance, one "
        "sentence serves 23 real designs: *a prediction moves by more than half a nat on average with "
        "probability .05*. Its figures are of a heavy tail (`family=predcp.LogCauchy`) against the half-t "
        "of brms, a pair picked from its tables after the results were seen. Differences survive a "
        f"correction for all comparisons of their study ({comparisons():,} in this one).\n\n"
        f"- **It helps** {study.helps}. It also helps in {'; '.join(gains)}.\n"
        f"- **It makes no clear difference** {study.alike}; nor in "
        f"{_topics(row for row in rows() if row.verdict not in ('helps', 'hurts'))}.\n"
        f"- **It hurts** {study.hurts}. It also hurts in "
        f"{_topics(row for row in rows() if row.verdict == 'hurts')}.\n"
        f"- **It costs** predictions and time: {clause()}.\n"
    )


def _topics(kept: Iterable[Row]) -> str:
    """Settings, those of one topic together."""
    topics: dict[str, list[str]] = {}
    for row in kept:
        topic, _, detail = row.setting.partition(", ")
        topics.setdefault(topic, []).append(detail)
    return "; ".join(
        f"{topic} ({'; '.join(details)})" if any(details) else topic
        for topic, details in topics.items()
    )


def grids() -> str:
    """How many cells of every experiment were run, of those declared."""
    lines = []
    for name, declared in EXPERIMENTS.items():
        cells = declared()
        store = Store(RESULTS, name)
        done = sum(store.status(cell) == "finished" for cell in cells)
        share = "all" if done == len(cells) else "none" if done == 0 else f"{done / len(cells):.0%}"
        lines.append((f"`{name}`", str(done), str(len(cells)), share))
    return markdown(("experiment", "cells run", "cells declared", ""), lines)


TABLES: dict[str, Callable[[], str]] = {
    "summary": summary,
    "summary-scales": scales,
    "summary-told": told,
    "summary-cells": grids,
}


if __name__ == "__main__":
    # The study of scales is in the repository, but not in the library.
    sys.path.append(str(HERE.parent))
    fill_pages(__doc__, PAGES, TABLES)
