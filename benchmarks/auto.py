"""Which sampler suits which table: `python -m benchmarks.auto` writes results/auto.json.

Every table of a grid of rows, columns and families is sampled by NUTS and by Gibbs under the
PredCP. The figure is the CPU time that two chains need for 400 effective draws of the slowest of the
intercept, log tau, sigma and the coefficients: compilation, warm-up, and draws at the rate seen. The
rule of `predcp.linear.Auto` is read off these figures. What is measured already is kept.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.stored import Stored

OUTPUT = Path(__file__).parent / "results" / "auto.json"
ROWS, COLUMNS = (50, 400), (10, 100)
FAMILIES, SAMPLERS = ("logistic", "linear"), ("Nuts", "Gibbs")
WANTED = 400
WARMUP, DRAWS, CHAINS = 150, 150, 2
MOST_SECONDS = 3000.0


def table(rows: int, columns: int, family: str) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal columns, three of which matter."""
    random = np.random.default_rng(rows + columns)
    x = random.normal(size=(rows, columns))
    signal = x[:, :3] @ [1.5, -1.0, 0.5]
    if family == "linear":
        return x, signal + random.normal(size=rows)
    return x, (signal + random.logistic(size=rows) > 0).astype(int)


def once(rows: int, columns: int, family: str, sampler: str) -> dict[str, Any]:
    """Sample one table in this process."""
    from predcp import linear

    jax.config.update("jax_enable_x64", True)
    x, y = table(rows, columns, family)
    estimator = linear.LinearRegression if family == "linear" else linear.LogisticRegression
    settings = {"warmup": WARMUP, "draws": DRAWS, "chains": CHAINS, "layout": "sequential"}
    chosen = getattr(linear, sampler)(max_seconds=MOST_SECONDS, **settings)
    began, cpu = time.perf_counter(), time.process_time()
    model = estimator("predcp", inference=chosen).fit(x, y)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    # Other work on the machine slows both parts alike.
    sampling = cpu * min(model.draws_.seconds / wall, 1.0)
    effective = model.convergence_.ess or 0.0
    kept = model.draws_.values["beta"].shape[1]
    steps = WARMUP + DRAWS - model.draws_.missing
    drawing = sampling * kept / max(steps, 1)
    needed = None
    if effective > 0.0:
        needed = round(cpu - drawing + drawing * WANTED / effective, 2)
    return {
        "effective_draws": round(effective, 1),
        "rhat": model.convergence_.rhat,
        "compiling": round(cpu - sampling, 2),
        "sampling": round(sampling, 2),
        "missing": model.draws_.missing,
        "needed": needed,
    }


def measured(case: tuple[Any, ...]) -> dict[str, Any]:
    """One case in a fresh process."""
    code = f"import json; from benchmarks.auto import once; print(json.dumps(once(*{case!r})))"
    words = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--columns", type=int, nargs="+", default=COLUMNS)
    options = parser.parse_args()
    results = Stored(options.output)
    for family in FAMILIES:
        for columns in options.columns:
            for rows in options.rows:
                for sampler in SAMPLERS:
                    name = f"{family}, {rows} x {columns}, {sampler}"
                    if name not in results:
                        results.add(name, measured((rows, columns, family, sampler)))


if __name__ == "__main__":
    main()
