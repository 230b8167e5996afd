"""Compare priors task by task: `python -m predcp.fewshot.compare FOLDER` reads what cells kept.

A row a data set and prior: accuracy over all tasks and seeds with its standard error, the paper's
small-query interval, log-likelihood, calibration, and the paired differences from MAML and flat scales.
"""

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from predcp._support.saved import SavedModel, load_model
from predcp.experiments import Cell
from predcp.experiments._labels import prior_labels
from predcp.fewshot._evaluate import Evaluation, paired_difference, standard_error
from predcp.fewshot.cell import SCORES

_REFERENCES = ("maml", "flat")


def read_scores(folder: str | Path) -> list[SavedModel]:
    """The scores of every cell in a folder (`PREDCP_CHECKPOINTS`/scores)."""
    paths = sorted(Path(folder).glob("*.safetensors"))
    if not paths:
        raise ValueError(f"{folder} holds no scores of few-shot cells (*.safetensors)")
    return [load_model(path, SCORES) for path in paths]


def compare(scores: Iterable[SavedModel], part: str = "test") -> list[dict[str, Any]]:
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
    return row


def _accuracy(run: SavedModel, part: str) -> np.ndarray:
    return run.arrays[f"{part}/accuracy"]


def _evaluation(run: SavedModel) -> Evaluation:
    names = ("accuracy", "log_likelihood", "small_accuracy", "bins")
    return Evaluation(*(run.arrays[f"test/{name}"] for name in names))


def markdown(rows: Sequence[dict[str, Any]]) -> str:
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; with `--json` the rows of test and of validation tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", choices=("test", "check"), default="test")
    parser.add_argument("--json", action="store_true", help="both parts, as JSON")
    given = parser.parse_args(arguments)
    scores = read_scores(given.folder)
    if given.json:
        print(json.dumps({part: compare(scores, part) for part in ("test", "check")}, indent=1))
    else:
        print(markdown(compare(scores, given.part)))


if __name__ == "__main__":
    main()
