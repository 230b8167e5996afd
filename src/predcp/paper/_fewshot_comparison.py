"""Compare few-shot priors task by task (`predcp fewshot compare`).

One row per data set and prior: accuracy over all tasks and seeds with its standard error, the paper's
small-query interval, log-likelihood, calibration, and the paired differences from MAML and flat scales.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from predcp._support.saved import SavedModel, load_model
from predcp.experiments import Cell, prior_labels
from predcp.fewshot import Evaluation, paired_difference, standard_error
from predcp.paper._table3_cells import SCORES

_REFERENCES = ("maml", "flat")


def read_scores(folder: str | Path) -> list[SavedModel]:
    """The scores of every cell in a folder (`scores` in the folder of checkpoints)."""
    paths = sorted(Path(folder).glob("*.safetensors"))
    if not paths:
        raise ValueError(f"{folder} holds no scores of few-shot cells (*.safetensors)")
    return [load_model(path, SCORES) for path in paths]


def compare_fewshot(scores: Iterable[SavedModel], part: str = "test") -> list[dict[str, Any]]:
    """Rows of the table, the best first within a data set.

    **Arguments**: `part`, `test` or `check` (validation classes).
    """
    groups: dict[str, dict[str, dict[int, SavedModel]]] = defaultdict(lambda: defaultdict(dict))
    held = [one for one in scores if f"{part}/accuracy" in one.arrays]
    cells = [Cell.from_json(one.config["cell"]) for one in held]
    labels = prior_labels(cells)
    for one, cell in zip(held, cells):
        groups[cell.data][labels[cell]][cell.seed] = one
    rows = []
    for data, priors in sorted(groups.items()):
        own = [_row(data, label, runs, priors, part) for label, runs in priors.items()]
        rows += sorted(own, key=lambda row: -row["accuracy"])
    return rows


def _row(
    data: str,
    label: str,
    runs: dict[int, SavedModel],
    priors: dict[str, dict[int, SavedModel]],
    part: str,
) -> dict[str, Any]:
    accuracy = np.stack([_accuracy(run, part) for run in runs.values()])
    over_tasks = standard_error(accuracy.mean(0))
    over_seeds = standard_error(accuracy.mean(1)) if len(runs) > 1 else 0.0
    row: dict[str, Any] = {
        "data": data,
        "prior": label,
        "seeds": len(runs),
        "tasks": accuracy.shape[1],
        "accuracy": 100.0 * float(accuracy.mean()),
        "standard_error": 100.0 * max(over_tasks, over_seeds),
        "log_likelihood": float(
            np.mean([run.arrays[f"{part}/log_likelihood"] for run in runs.values()])
        ),
        "selected_iteration": [run.config["selected_iteration"] for run in runs.values()],
    }
    if part == "test":
        tested = [_evaluation(run) for run in runs.values()]
        row["small_query_interval"] = float(np.mean([one.small_query_interval for one in tested]))
        row["calibration_error"] = float(np.mean([one.calibration_error for one in tested]))
    for reference in _REFERENCES:
        others = priors.get(reference, {})
        common = sorted(runs.keys() & others.keys())
        if reference == label or not common:
            continue
        gap = paired_difference(
            [_accuracy(runs[seed], part) for seed in common],
            [_accuracy(others[seed], part) for seed in common],
        )
        row[f"less_{reference}"] = gap.mean
        row[f"less_{reference}_error"] = gap.standard_error
        row[f"less_{reference}_degrees"] = gap.degrees
    return row


def _accuracy(run: SavedModel, part: str) -> np.ndarray:
    return run.arrays[f"{part}/accuracy"]


def _evaluation(run: SavedModel) -> Evaluation:
    names = ("accuracy", "log_likelihood", "small_accuracy", "bins")
    return Evaluation(*(run.arrays[f"test/{name}"] for name in names))


def comparison_table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a table."""
    lines = [
        "| data | prior | seeds | accuracy | less MAML | less flat | small-query interval | "
        "log-likelihood | calibration error |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            row["data"],
            row["prior"],
            str(row["seeds"]),
            f"{row['accuracy']:.2f} ± {row['standard_error']:.2f}",
            *(_difference(row, reference) for reference in _REFERENCES),
            f"± {row['small_query_interval']:.2f}" if "small_query_interval" in row else "",
            f"{row['log_likelihood']:.3f}",
            f"{row['calibration_error']:.3f}" if "calibration_error" in row else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _difference(row: dict[str, Any], reference: str) -> str:
    mean = row.get(f"less_{reference}")
    if mean is None:
        return ""
    error = row[f"less_{reference}_error"]
    return f"{mean:+.2f}" if math.isnan(error) else f"{mean:+.2f} ± {error:.2f}"
