"""Are posteriors of three scales under a budget calibrated? `python -m benchmarks.budget_sbc --jobs 16`.

Simulation-based calibration (tests/program/budget_calibration.py), once with the right prior and once with
scales that are wrong by a factor, from which the power of the test is known. Data sets are shared out
between processes, each on a core of its own. Writes results/budget_sbc.json.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tests.program import budget_calibration

from benchmarks.conditions import conditions

OUTPUT = Path(__file__).parent / "results" / "budget_sbc.json"


def _settle(places: Any) -> None:
    """Double precision, on a core of its own."""
    jax.config.update("jax_enable_x64", True)
    with places.get_lock():
        place, places.value = places.value, places.value + 1
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[place % len(cores)]})


def run(count: int, jobs: int, parts: int) -> dict[str, Any]:
    """Ranks of both arms, summed over the processes."""
    arms = {"right": 1.0, "wrong": budget_calibration.FACTOR}
    counts: dict[str, Any] = dict.fromkeys(arms, 0)
    started, done = time.perf_counter(), 0
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _settle, (context.Value("i", 0),)) as pool:
        tasks = {
            pool.submit(budget_calibration.ranks, count, factor, part, parts): arm
            for arm, factor in arms.items()
            for part in range(parts)
        }
        for task in as_completed(tasks):
            counts[tasks[task]] = counts[tasks[task]] + task.result()
            done += 1
            seconds = time.perf_counter() - started
            print(f"{done} of {len(tasks)} shares, {seconds:.0f} s", flush=True)
    found = {arm: budget_calibration.verdict(each) for arm, each in counts.items()}
    return {
        "data_sets": count,
        "bar_score": round(budget_calibration.bar(), 2),
        "factor_of_wrong_scales": budget_calibration.FACTOR,
        "power": budget_calibration.shifted(counts["wrong"], count),
        **found,
        "ranks": {arm: np.asarray(each).tolist() for arm, each in counts.items()},
        "seconds": round(time.perf_counter() - started),
        "environment": conditions(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--data-sets", type=int, default=budget_calibration.DATA_SETS)
    parser.add_argument("--parts", type=int, help="shares of the data sets, one program each")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    given = parser.parse_args()
    results = run(given.data_sets, given.jobs, given.parts or given.jobs)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps({key: results[key] for key in ("power", "right", "wrong", "seconds")}))
