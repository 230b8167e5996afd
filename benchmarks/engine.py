"""What the engine itself costs: `python -m benchmarks.engine` writes results/engine.json.

Empty cells are run in growing grids on one store, so that a cost that is not linear shows.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import predcp.paper  # noqa: F401 (registers the model of empty cells)
from predcp._support.environment import environment
from predcp.experiments import Cell, Store, result_rows, run

OUTPUT = Path(__file__).parent / "results" / "engine.json"
GOALS = {"milliseconds_a_cell": 20.0, "report_seconds": 5.0}


def empty_cells(count: int) -> list[Cell]:
    """Ten data sets, ten priors, and as many splits as it takes."""
    return [
        Cell(f"data{number % 10}", "empty", f"prior{number // 10 % 10}", "exact", number // 100)
        for number in range(count)
    ]


def measure(store: Path, before: int, count: int) -> dict[str, Any]:
    """Grow the grid from `before` to `count` cells, then query and report it."""
    cells = empty_cells(count)
    seconds_run = _seconds(lambda: run("empty", cells[before:], store))
    seconds_resume = _seconds(lambda: run("empty", cells, store))
    seconds_query = _seconds(lambda: result_rows(Store(store, "empty")))
    command = [sys.executable, "-m", "predcp", "report", "empty", "--store", str(store)]
    seconds_report = _seconds(lambda: subprocess.run(command, check=True, capture_output=True))
    files = [
        path for path in (store / "empty").rglob("*") if path.is_file() and path.name == "cell.json"
    ]
    return {
        "cells": count,
        "new_cells": count - before,
        "run_seconds": round(seconds_run, 3),
        "milliseconds_a_cell": round(1e3 * seconds_run / (count - before), 3),
        "resume_seconds": round(seconds_resume, 3),
        "query_seconds": round(seconds_query, 3),
        "report_seconds": round(seconds_report, 3),
        "store_bytes": sum(path.stat().st_size for path in files),
        "store_files": len(files),
    }


def measure_pool(store: Path, count: int, workers: int) -> dict[str, Any]:
    """The pool's cost a cell, its start included."""
    seconds = _seconds(
        lambda: run("pool", empty_cells(count), store, engine="pool", workers=workers)
    )
    return {
        "cells": count,
        "workers": workers,
        "milliseconds_a_cell": round(1e3 * seconds / count, 3),
    }


def main() -> None:
    """Measure and write the figures with their circumstances."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2500, 5000, 10_000])
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        grids, before = [], 0
        for size in arguments.sizes:
            grids.append(measure(Path(folder), before, size))
            print(json.dumps(grids[-1]), flush=True)
            before = size
        pool = measure_pool(Path(folder), min(1000, before), workers=2)
    first, last = grids[0], grids[-1]
    overall = 1e3 * sum(grid["run_seconds"] for grid in grids) / last["cells"]
    figures = {
        "milliseconds_a_cell": round(overall, 3),
        "report_seconds": last["report_seconds"],
    }
    growth = last["cells"] / first["cells"]
    result = {
        "goals": GOALS,
        "figures": {"cells": last["cells"], **figures},
        "met": all(figures[name] < goal for name, goal in GOALS.items()),
        "grids": grids,
        "pool": pool,
        # 1 is linear; a fixed cost (imports, plots) makes it smaller.
        "growth_over_linear": {
            "store_bytes": round(last["store_bytes"] / first["store_bytes"] / growth, 3),
            "report_seconds": round(last["report_seconds"] / first["report_seconds"] / growth, 3),
        },
        "settings": {"sizes": arguments.sizes, "engine": "process", "fsync": True},
        "environment": environment(),
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(f"wrote {arguments.output}")


def _seconds(action: Any) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
