"""Fill the tables of the appendix grid from the stored results: `python docs/make_appendix.py`.

`--check` only says whether the page is as the results have it.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import product

import numpy as np
from make_tables import PM, fill_pages, markdown, metric, records
from scipy.stats import spearmanr

from predcp.experiments import Record
from predcp.paper import paper_figures

PAGES = ("appendix-fc100.md",)
EXPERIMENT = "appendix-fc100"
DENSITIES = {
    "half-cauchy": "half-Cauchy",
    "log-cauchy": "log-Cauchy",
    "gem": "mixture",
    "exponential": "exponential",
}
WEIGHTS = ("1e-0", "1e-1", "1e-2", "1e-3", "1e-4")
KINDS = {"predcp": "PredCP", "shrinkage": "shrinkage"}
BASELINES = {"maml": "MAML", "flat": "flat scales"}
# Classes are guessed right 20 times in 100; runs that learn reach far more on training classes.
COLLAPSED = 25.0


def names(kind: str) -> Iterator[str]:
    """The priors of one kind, as cells name them."""
    return (f"{kind}-{pi}-{weight}" for weight in WEIGHTS for pi in DENSITIES)


@lru_cache(maxsize=1)
def found() -> dict[tuple[int, str], Record]:
    """Finished cells by shots and prior."""
    return {
        (int(str(record.cell.settings["shots"])), record.cell.prior): record
        for record in records(EXPERIMENT)
    }


def accuracy(shots: int, prior: str) -> float:
    """On test classes."""
    return metric(found()[shots, prior], "test", "accuracy")


def error(shots: int, prior: str) -> float:
    """Standard error of the accuracy, over tasks."""
    return float(found()[shots, prior].convergence["task_standard_error"] or math.nan)


def paper(shots: int, prior: str) -> float:
    """The paper's accuracy."""
    return paper_figures(EXPERIMENT)[f"fc100-{shots}shot", prior, "map", "accuracy"].mean


def collapsed(shots: int, prior: str) -> bool:
    """Whether a run ended at guessing, on training classes too."""
    return not metric(found()[shots, prior], "train", "accuracy") > COLLAPSED


def best(shots: int, kind: str) -> str:
    """The prior of a kind that validation classes choose."""

    def validation(prior: str) -> float:
        return metric(found()[shots, prior], "validation", "accuracy")

    return max(names(kind), key=validation)


def shown(shots: int, prior: str, chosen: str = "") -> str:
    """A cell's accuracy and error."""
    text = f"{accuracy(shots, prior):.2f}{PM}{error(shots, prior):.2f}"
    text += "†" if collapsed(shots, prior) else ""
    return f"**{text}**" if prior == chosen else text


def grid(shots: int) -> str:
    """Our accuracies beside the paper's."""
    rows = []
    for kind, words in KINDS.items():
        chosen = best(shots, kind)
        for weight in WEIGHTS:
            row = [words, weight.replace("1e-0", "1")]
            for pi in DENSITIES:
                prior = f"{kind}-{pi}-{weight}"
                row += [shown(shots, prior, chosen), f"{paper(shots, prior):.1f}"]
            rows.append(row)
    titles = ["prior", "weight"]
    for words in DENSITIES.values():
        titles += [words, "paper"]
    return markdown(titles, rows)


def baselines() -> str:
    """MAML, flat scales, and what validation classes choose of each kind."""
    rows = []
    for shots in (1, 5):
        for prior, words in BASELINES.items():
            rows.append((f"{shots}-shot", words, prior))
        for kind, words in KINDS.items():
            rows.append((f"{shots}-shot", f"{words}, chosen", best(shots, kind)))
            top = max(names(kind), key=partial(paper, shots))
            rows.append((f"{shots}-shot", f"{words}, the paper's best", top))
    table = []
    for place, words, prior in rows:
        shots = int(place[0])
        figures = _validation(shots, prior), shown(shots, prior), f"{paper(shots, prior):.1f}"
        table.append((place, words, prior, *figures))
    return markdown(("", "", "cell", "validation", "test", "paper"), table)


def _validation(shots: int, prior: str) -> str:
    record = found()[shots, prior]
    size = record.convergence["validation_standard_error"]
    return f"{metric(record, 'validation', 'accuracy'):.2f}{PM}{size:.2f}"


def differences(shots: int) -> str:
    """PredCP less shrinkage with the same density and weight."""
    rows = []
    for weight in WEIGHTS:
        row = [weight.replace("1e-0", "1")]
        for pi in DENSITIES:
            pair = [f"{kind}-{pi}-{weight}" for kind in KINDS]
            gap = accuracy(shots, pair[0]) - accuracy(shots, pair[1])
            size = math.hypot(*(error(shots, prior) for prior in pair))
            row.append(f"{gap:+.2f}{PM}{size:.2f}")
        rows.append(row)
    return markdown(("weight", *DENSITIES.values()), rows)


def light() -> str:
    """Cells of the two smallest weights together: priors that hardly act."""
    rows = []
    for shots, (kind, words) in product((1, 5), KINDS.items()):
        chosen = [prior for prior in names(kind) if prior.endswith(WEIGHTS[-2:])]
        values = np.array([accuracy(shots, prior) for prior in chosen])
        spread = float(values.std(ddof=1))
        rows.append(
            (
                f"{shots}-shot",
                words,
                str(len(values)),
                f"{values.mean():.2f}{PM}{spread / math.sqrt(len(values)):.2f}",
                f"{spread:.2f}",
                f"{values.min():.2f} to {values.max():.2f}",
            )
        )
    titles = ("", "prior", "cells", "mean, error over cells", "standard deviation", "range")
    return markdown(titles, rows)


def ranks() -> str:
    """Spearman's correlation of our accuracies with the paper's."""
    rows = []
    for shots in (1, 5):
        groups = {words: list(names(kind)) for kind, words in KINDS.items()}
        every = [prior for priors in groups.values() for prior in priors]
        groups["all, with baselines"] = [*every, *BASELINES]
        for words, priors in groups.items():
            learnt = [prior for prior in priors if not collapsed(shots, prior)]
            row = [f"{shots}-shot", words]
            for chosen in (priors, learnt):
                row += [str(len(chosen)), *_correlation(shots, chosen)]
            rows.append(row)
    titles = ("", "prior", "cells", "Spearman", "p")
    return markdown((*titles, "that learn", "Spearman", "p"), rows)


def _correlation(shots: int, chosen: list[str]) -> tuple[str, str]:
    """Spearman's correlation, and how often random orders are correlated as strongly."""
    ours = np.array([accuracy(shots, prior) for prior in chosen])
    theirs = np.array([paper(shots, prior) for prior in chosen])
    seen = float(spearmanr(ours, theirs).statistic)
    generator = np.random.default_rng(0)
    by_chance = [
        float(spearmanr(generator.permutation(ours), theirs).statistic) for _ in range(999)
    ]
    p = (1 + sum(abs(value) >= abs(seen) - 1e-12 for value in by_chance)) / 1000
    return f"{seen:+.2f}", f"{p:.2f}"


def made() -> str:
    """Where cells come from."""
    sources = Counter(
        (record.environment["commit"][:12], record.environment["device"])
        for record in found().values()
    )
    rows = [(str(count), commit, device) for (commit, device), count in sources.items()]
    return markdown(("cells", "commit", "device"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "appendix-1shot": lambda: grid(1),
    "appendix-5shot": lambda: grid(5),
    "appendix-chosen": baselines,
    "appendix-difference-1shot": lambda: differences(1),
    "appendix-difference-5shot": lambda: differences(5),
    "appendix-light": light,
    "appendix-ranks": ranks,
    "appendix-cells": made,
}


if __name__ == "__main__":
    fill_pages(__doc__, PAGES, TABLES)
