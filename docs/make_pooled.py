"""Fill the tables of Table 3 with pooling from the stored results: `python docs/make_pooled.py`.

`--check` only says whether the page is as the results have it.
"""

import json
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from make_tables import PM, RESULTS, fill_pages, markdown, metric, records
from scipy.stats import t as student

PAGES = ("table-3-pooled.md",)
LEVEL = 0.05
EXPERIMENT, SEARCH = "table3-pooled", "table3-pooled-search"


@lru_cache(maxsize=1)
def compared() -> dict[str, list[dict[str, Any]]]:
    """Scores task by task: rows of test and of validation tasks."""
    path = RESULTS / f"{EXPERIMENT}-comparison.json"
    return json.loads(path.read_text(encoding="utf-8"))


def search(data: str) -> str:
    """Everything tried on validation classes, the best first."""
    found = [record for record in records(SEARCH) if record.cell.data == data]
    rows = []
    for record in sorted(found, key=lambda one: -metric(one, "validation", "accuracy")):
        settings, figures = record.cell.settings, record.convergence
        error = figures["validation_standard_error"]
        rows.append(
            (
                f"{settings['inner_rate']:g}",
                f"{settings['inner_steps']}, {settings['inner_steps_test']}",
                "constant" if settings["final_rate"] else "falling",
                f"{settings.get('weight_decay', 0.0):g}",
                "bfloat16" if settings["precision"] == "bfloat16" else "TF32",
                f"{metric(record, 'validation', 'accuracy'):.2f}{PM}{error:.2f}",
                f"{metric(record, 'validation', 'log_likelihood'):.3f}",
                f"{metric(record, 'train', 'accuracy'):.1f}",
                f"{figures['selected_iteration']:.0f} of {figures['iterations']:.0f}",
            )
        )
    titles = ("inner rate", "inner steps", "outer rate", "weight decay", "products")
    titles += ("validation", "log likelihood", "training", "chosen iteration")
    return markdown(titles, rows)


def comparisons() -> int:
    """How many differences the tables have; MAML against flat scales is one."""
    rows = compared()["test"]
    found = sum(f"less_{reference}" in row for row in rows for reference in ("maml", "flat"))
    return found - sum(row["prior"] == "maml" for row in rows)


def beyond(row: dict[str, Any], reference: str) -> tuple[bool, bool]:
    """Whether a difference is beyond two errors, and whether it survives the correction for all of them.

    The limit is Student's t, as the larger error is often that over two or three seeds. One seed says
    nothing about the next: its differences survive nothing.
    """
    mean, error = abs(row[f"less_{reference}"]), row[f"less_{reference}_error"]
    tail = LEVEL / (2 * comparisons())
    limit = max(2.0, float(student.ppf(1.0 - tail, row[f"less_{reference}_degrees"])))
    return mean > 2.0 * error, mean > limit * error and row["seeds"] > 1


def less(row: dict[str, Any], reference: str) -> str:
    """A paired difference; * beyond two errors, ** after the correction for all comparisons."""
    if f"less_{reference}" not in row:
        return ""
    mean, error = row[f"less_{reference}"], row[f"less_{reference}_error"]
    stars = "\\*" * sum(beyond(row, reference))
    return f"{mean:+.2f}{PM}{error:.2f}{stars}"


def table(data: str) -> str:
    """Accuracies of all priors, the best on validation classes first."""
    tested = {row["prior"]: row for row in compared()["test"] if row["data"] == data}
    rows = []
    for checked in compared()["check"]:
        if checked["data"] != data:
            continue
        row = tested[checked["prior"]]
        rows.append(
            (
                row["prior"],
                str(row["seeds"]),
                *(
                    f"{one['accuracy']:.2f}{PM}{one['standard_error']:.2f}"
                    for one in (checked, row)
                ),
                *(less(row, reference) for reference in ("maml", "flat")),
                f"±\u00a0{row['small_query_interval']:.2f}",
                f"{row['log_likelihood']:.3f}",
                f"{row['calibration_error']:.3f}",
                " ".join(f"{number / 1000:g}" for number in row["selected_iteration"]),
            )
        )
    titles = ("prior", "seeds", "validation", "test", "less MAML", "less flat")
    titles += ("small-query interval", "log likelihood", "calibration error", "thousand iterations")
    return markdown(titles, rows)


def made() -> str:
    """Where cells come from, and what they cost."""
    groups: Counter[tuple[str, ...]] = Counter()
    seconds: Counter[tuple[str, ...]] = Counter()
    for experiment in (SEARCH, EXPERIMENT):
        for record in records(experiment):
            environment, figures = record.environment, record.convergence
            key = (
                experiment,
                record.cell.data,
                f"{figures['iterations']:.0f}",
                environment["commit"][:12],
                environment["device"],
            )
            groups[key] += 1
            seconds[key] += figures["training_seconds"] or 0.0
    rows = [
        (*key[:2], str(count), key[2], f"{seconds[key]:.0f}", *key[3:])
        for key, count in sorted(groups.items())
    ]
    titles = ("experiment", "data", "runs", "iterations", "seconds of training", "commit", "device")
    return markdown(titles, rows)


TABLES: dict[str, Callable[[], str]] = {
    "pooled-search-1shot": lambda: search("fc100-1shot"),
    "pooled-search-5shot": lambda: search("fc100-5shot"),
    "pooled-search-omniglot": lambda: search("omniglot-1shot"),
    "pooled-fc100-1shot": lambda: table("fc100-1shot"),
    "pooled-fc100-5shot": lambda: table("fc100-5shot"),
    "pooled-omniglot": lambda: table("omniglot-1shot"),
    "pooled-class-1shot": lambda: table("cifar100-by-class-1shot"),
    "pooled-cells": made,
}


if __name__ == "__main__":
    fill_pages(__doc__, PAGES, TABLES)
