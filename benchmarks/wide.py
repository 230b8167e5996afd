"""Tables of many columns: `python -m benchmarks.wide` writes results/wide.json.

Logistic regression under the PredCP with 500 rows. Each number of columns runs in fresh processes:

- a Gibbs sweep of four chains, in units of one product of the design with a vector, by the clock and by
  the time of the processor (which other work on the machine distorts less);
- the memory of `fit` and `predict_proba` by Gibbs and by Laplace's method. The fixed memory of the
  libraries and of the compiler is that of a table of few columns and is subtracted.

On a GPU, where memory is not that of the process, with a million columns in parts:

    python -m benchmarks.wide --columns 25000 50000 100000 1000000 --inference \\
        --output benchmarks/results/wide-gpu.json
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stored import Stored

OUTPUT = Path(__file__).parent / "results" / "wide.json"
ROWS = 500
COLUMNS = (25_000, 50_000, 100_000)
BAR_PRODUCTS, BAR_DESIGNS, BAR_SLOPE = 40.0, 3.0, 1.05
# Of a sweep at 100,000 columns, on one H200.
BAR_GPU_SECONDS = 0.012
CHAINS, SWEEPS, PRODUCTS = 4, 10, 30
# Kept by `fit` where memory is measured: enough to be read in pieces.
WARMUP, DRAWS = 5, 15
# Table that stands for the fixed memory.
FEW_COLUMNS = 9_000


def table(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal columns in single precision, three of which matter."""
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, columns), dtype=np.float32)
    signal = 2.0 * x[:, :3].sum(axis=1)
    return x, (signal + random.logistic(size=rows) > 0).astype(np.int32)


def timed(call: Callable[[], Any], times: int) -> dict[str, float]:
    """Median seconds by the clock and by the processor's time."""
    import jax

    wall, cpu = [], []
    for _ in range(times):
        began, spent = time.perf_counter(), time.process_time()
        jax.block_until_ready(call())
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - spent)
    return {
        "seconds": statistics.median(wall),
        "shortest": min(wall),
        "cpu_seconds": statistics.median(cpu),
    }


def sweeps(rows: int, columns: int) -> dict[str, Any]:
    """Time of a sweep and of a product in this process."""
    import jax
    import jax.numpy as jnp

    from predcp._support.cores import one_thread_for_small_matrices
    from predcp.linear import PredCP, Target, logistic_regression
    from predcp.linear._gibbs_model import GibbsModel
    from predcp.linear._gibbs_sweep import Sweep

    data = tuple(map(jnp.asarray, table(rows, columns)))
    target = Target(logistic_regression, data, {"prior": PredCP(), "intercept": True})
    model = GibbsModel.of(target)

    def begun(key: Any, *data: Any) -> Any:
        return Sweep.of(model, data, 1, 1, 0).start(key)

    def swept(state: Any, *data: Any) -> Any:
        sweep = Sweep.of(model, data, 1, 1, 0)
        return jax.lax.fori_loop(0, SWEEPS, lambda _, state: sweep(state)[0], state)

    axes = (0, None, None)
    state = jax.jit(jax.vmap(begun, axes))(jax.random.split(jax.random.key(0), CHAINS), *data)
    began = time.perf_counter()
    many = jax.jit(jax.vmap(swept, axes)).lower(state, *data).compile()
    compiling = time.perf_counter() - began
    vector = jnp.ones(columns, jnp.float32)
    one = jax.jit(lambda x, v: x @ v)
    jax.block_until_ready(one(data[0], vector))
    with one_thread_for_small_matrices(rows):
        state = many(state, *data)
        product = timed(lambda: one(data[0], vector), PRODUCTS)
        found = timed(lambda: many(state, *data), 3)
    sweep = {name: value / SWEEPS for name, value in found.items()}
    ratio = {name: sweep[name] / product[name] for name in sweep}
    parts = Sweep.of(model, data, 1, 1, 0).reader.parts
    return {
        "product": product,
        "sweep": sweep,
        "sweep_in_products": ratio,
        "compiling_seconds": compiling,
        "parts": parts.number,
        # The path, the coefficients twice and their predictor; and three times the part that moves.
        "reads_of_the_design": 4 + 3 / parts.number,
    }


def memory(rows: int, columns: int, inference: str) -> dict[str, Any]:
    """Largest memory of this process after a fit and after predictions."""
    from predcp.linear import Gibbs, Laplace, LogisticRegression

    x, y = table(rows, columns)
    chosen = Gibbs(warmup=WARMUP, draws=DRAWS) if inference == "gibbs" else Laplace(draws=DRAWS)
    began = time.perf_counter()
    model = LogisticRegression("predcp", inference=chosen).fit(x, y)
    seconds = time.perf_counter() - began
    fitted = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model.predict_proba(x)
    predicted = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "mebibytes_fit": round(fitted / 1024),
        "mebibytes_predict": round(predicted / 1024),
        "mebibytes_design": round(x.nbytes / 2**20, 1),
        "seconds_fit": round(seconds, 1),
        "draws": int(np.prod(model.draws_.values["beta"].shape[:2])),
    }


def fresh(call: str) -> dict[str, Any]:
    """A function of this module in a fresh process."""
    code = f"import json; from benchmarks import wide; print(json.dumps(wide.{call}))"
    words = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def slope(columns: list[int], values: list[float]) -> float:
    """Least-squares slope on log axes."""
    return round(float(np.polyfit(np.log(columns), np.log(values), 1)[0]), 3)


def with_slopes(results: dict[str, Any], rows: int) -> None:
    """Add the slopes, the bars and the memory in units of the design."""
    found = {
        int(name.split(" x ")[1]): value
        for name, value in results.items()
        if name.startswith(f"sweep, {rows} x ")
    }
    columns = sorted(found)
    if len(columns) > 1:
        results["slope_in_columns"] = {
            name: slope(columns, [found[p]["sweep"][name] for p in columns])
            for name in ("seconds", "shortest", "cpu_seconds")
        }
    for inference in ("gibbs", "laplace"):
        few = results.get(f"memory, {inference}, {rows} x {FEW_COLUMNS}")
        for name, value in results.items():
            if few is None or not name.startswith(f"memory, {inference}") or value is few:
                continue
            grown = value["mebibytes_predict"] - few["mebibytes_predict"]
            larger = value["mebibytes_design"] - few["mebibytes_design"]
            value["designs_of_memory"] = round(grown / larger, 2) if larger > 0 else math.nan
    results["bars"] = {
        "products": BAR_PRODUCTS,
        "designs": BAR_DESIGNS,
        "slope": BAR_SLOPE,
        "seconds_on_a_gpu": BAR_GPU_SECONDS,
    }


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--columns", type=int, nargs="+", default=COLUMNS)
    parser.add_argument("--inference", nargs="*", default=["gibbs"], choices=["gibbs", "laplace"])
    options = parser.parse_args()
    results = Stored(options.output)
    calls = {
        f"sweep, {options.rows} x {p}": f"sweeps({options.rows}, {p})" for p in options.columns
    }
    for inference in options.inference:
        for p in (FEW_COLUMNS, *options.columns):
            name = f"memory, {inference}, {options.rows} x {p}"
            calls[name] = f"memory({options.rows}, {p}, {inference!r})"
    for name, call in calls.items():
        if name not in results:
            results.add(name, fresh(call))
            with_slopes(results.cells, options.rows)
            results.write()


if __name__ == "__main__":
    main()
