"""Run stored cells again and compare: `python -m benchmarks.rerun table1 --data allaml --prior predcp`.

Cells of one program run together, as `predcp run --engine batch` runs them. The scores of the new run
are set beside the stored ones: in how many cells all bits agree, and the mean difference over cells with
its standard error. Where a sampler's rounding changed, the difference is Monte Carlo error alone, and
its mean should lie within two or three standard errors of zero.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from predcp import experiments
from predcp._support.environment import environment
from predcp.experiments import Cell, Record, Store, mean_and_error

ROOT = Path(__file__).parents[1]
# Metrics for which the difference is called large beyond so many standard errors.
_ERRORS = 3.0


def compare(old: Mapping[Cell, Record], new: Mapping[Cell, Record]) -> dict[str, Any]:
    """Stored against new scores of the same cells, one entry per part and metric."""
    found: dict[str, Any] = {}
    pairs = [(_scores(old[cell]), _scores(record)) for cell, record in new.items()]
    for name in pairs[0][0]:
        gaps = [after[name] - before[name] for before, after in pairs]
        mean, error = mean_and_error(gaps)
        within = error is not None and abs(mean) <= _ERRORS * error
        found[name] = {
            "stored_mean": mean_and_error([before[name] for before, _ in pairs])[0],
            "new_mean": mean_and_error([after[name] for _, after in pairs])[0],
            "mean_difference": mean,
            "standard_error": error,
            "largest_difference": max(map(abs, gaps)),
            "cells_with_the_same_bits": sum(gap == 0.0 for gap in gaps),
            f"within_{_ERRORS:g}_standard_errors": within or not any(gaps),
        }
    return found


def _scores(record: Record) -> dict[str, float]:
    return {f"{part} {name}": value for part, name, value in record.metrics}


def main() -> None:
    """Run, compare and write the figures with their circumstances."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiment")
    parser.add_argument("--data", action="append", required=True)
    parser.add_argument("--prior", action="append", required=True)
    parser.add_argument("--inference", action="append")
    parser.add_argument("--splits")
    parser.add_argument("--store", type=Path, default=ROOT / "results")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    # Registers its models and experiments.
    import predcp.paper  # noqa: F401

    folder, cells = experiments.experiment_cells(arguments.experiment)
    cells = experiments.select(
        cells,
        data=arguments.data,
        prior=arguments.prior,
        inference=arguments.inference or (),
        splits=arguments.splits,
    )
    stored = Store(arguments.store, folder)
    old = {cell: stored.read(cell) for cell in cells}
    with tempfile.TemporaryDirectory() as place:
        started = time.perf_counter()
        tally = experiments.run(folder, cells, place, engine="batch")
        seconds = time.perf_counter() - started
        again = Store(Path(place), folder)
        new = {cell: again.read(cell) for cell in cells if again.status(cell) == "finished"}
    if not new:
        raise SystemExit(f"none of the {tally.total} cells finished")
    first = old[cells[0]]
    figures = ("rhat_max", "rhat_probability", "ess_probability_min", "ess_tau")
    result = {
        "experiment": folder,
        "data": arguments.data,
        "prior": arguments.prior,
        "inference": arguments.inference,
        "cells": len(cells),
        "failed": tally.failed,
        "seconds": round(seconds, 1),
        "scores": compare(old, new),
        "convergence": {
            name: {"stored": _range(old, name), "new": _range(new, name)}
            for name in figures
            if name in first.convergence
        },
        "settings": dict(cells[0].settings),
        "stored_environment": dict(first.environment),
        "environment": environment(),
    }
    name = f"rerun-{folder}-{'-'.join(arguments.data)}.json"
    output = arguments.output or Path(__file__).parent / "results" / name
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(json.dumps(result["scores"], indent=1))
    print(f"wrote {output}")


def _range(records: Mapping[Cell, Record], name: str) -> list[float]:
    """Smallest and largest figure over cells."""
    values = [float(record.convergence[name] or "nan") for record in records.values()]
    return [min(values), max(values)]


if __name__ == "__main__":
    main()
