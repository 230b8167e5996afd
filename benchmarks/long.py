"""Time and memory of tables of many rows: `python -m benchmarks.long` writes results/long.json.

Logistic regression under the PredCP with 50 columns by Laplace's method, each size in a fresh process,
compilation included. Memory is the largest of the process, the table itself included.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from predcp._support.environment import environment

OUTPUT = Path(__file__).parent / "results" / "long.json"
COLUMNS = 50
ROWS = (10_000, 100_000, 1_000_000)
BAR_SECONDS, BAR_GIBIBYTES, BAR_SLOPE = 60.0, 4.0, 1.05


def once(rows: int, inference: str) -> dict[str, Any]:
    """Fit one table in this process."""
    from predcp.linear import LogisticRegression

    random = np.random.default_rng(0)
    x = random.normal(size=(rows, COLUMNS))
    y = (0.3 * x[:, :5].sum(axis=1) + random.logistic(size=rows) > 0).astype(int)
    began, cpu = time.perf_counter(), time.process_time()
    model = LogisticRegression("predcp", inference=inference).fit(x, y)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    error = np.abs(model.coef_[0, :5] - 0.3).max()
    return {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "gibibytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "largest_error_of_a_coefficient": round(float(error), 4),
        "figures": dict(model.draws_.figures),
    }


def measured(rows: int, inference: str) -> dict[str, Any]:
    """One size in a fresh process."""
    code = f"import json; from benchmarks.long import once; print(json.dumps(once({rows}, {inference!r})))"
    words = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--inference", default="laplace")
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    options = parser.parse_args()
    results: dict[str, Any] = {"environment": environment()}
    for rows in options.rows:
        name = f"{options.inference}, {rows} x {COLUMNS}"
        print(f"{name} ...", flush=True)
        results[name] = measured(rows, options.inference)
        print(f"  {results[name]}", flush=True)
    first, last = options.rows[0], options.rows[-1]
    times = [results[f"{options.inference}, {n} x {COLUMNS}"]["seconds"] for n in (first, last)]
    results["slope"] = round(math.log(times[1] / times[0]) / math.log(last / first), 3)
    results["bars"] = {
        "seconds": BAR_SECONDS,
        "gibibytes": BAR_GIBIBYTES,
        "slope": BAR_SLOPE,
    }
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    print(f"slope {results['slope']}")


if __name__ == "__main__":
    main()
