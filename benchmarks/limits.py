"""Whether `max_seconds` is kept: `python -m benchmarks.limits` writes results/limits.json.

Logistic regression under the PredCP, each fit in a fresh process. The time is that of `fit`, compilation
included. `Auto` always answers, and says with what; the other methods may end with a TimeoutError. A
limit counts as kept if the fit took at most a tenth, or half a second, longer: a step that has begun
is finished. The time of the processor is stored, too: beside other work the clock says less. What is
measured already is kept.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stored import Stored

OUTPUT = Path(__file__).parent / "results" / "limits.json"
TABLES = ((2000, 200), (82, 5966))
# Tables for which reading the data is itself a part of the time; in single precision.
LARGE = ((500, 100_000), (1_000_000, 50))
LARGE_LIMITS = (3.0, 20.0)
INFERENCES = {
    "Auto": (1.0, 5.0, 20.0, 60.0),
    "Nuts": (5.0, 20.0),
    "Gibbs": (5.0, 20.0),
    "Laplace": (5.0, 20.0),
    "MeanField": (5.0, 20.0),
}
GRACE_SHARE, GRACE_SECONDS = 0.1, 0.5


def once(inference: str, rows: int, columns: int, limit: float) -> dict[str, Any]:
    """One fit in this process."""
    from predcp import linear

    random = np.random.default_rng(0)
    kind = np.float32 if (rows, columns) in LARGE else np.float64
    x = random.standard_normal((rows, columns), kind)
    y = (x[:, :3].sum(axis=1) + random.logistic(size=rows) > 0).astype(int)
    said: list[str] = []

    def report(done: int, total: int, words: str | None = None) -> None:
        if words is not None and words not in said:
            said.append(words)

    chosen = getattr(linear, inference)(max_seconds=limit)
    model = linear.LogisticRegression("predcp", inference=chosen, progress=report)
    found: dict[str, Any] = {}
    began, spent = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(x, y)
        except TimeoutError as error:
            found["error"] = str(error)
        seconds = time.perf_counter() - began
        spent = time.process_time() - spent
    found["seconds"], found["cpu_seconds"] = round(seconds, 2), round(spent, 2)
    found["kept"] = seconds <= limit + max(GRACE_SHARE * limit, GRACE_SECONDS)
    found["progress"] = said
    if "error" not in found:
        found["answer"] = model.draws_.sampler or inference
        found["draws"] = int(np.prod(model.draws_.values["beta"].shape[:2]))
        found["accuracy"] = round(float(model.score(x, y)), 3)
    words = [str(one.message) for one in caught if "ConvergenceW" in str(one.category)]
    return {**found, "warnings": words}


def main() -> None:
    """Measure what is missing and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--inference", nargs="+", default=list(INFERENCES), choices=INFERENCES)
    options = parser.parse_args()
    results = Stored(options.output)
    for inference in options.inference:
        # The others differ between tables only in how long they compile.
        tables = (*TABLES, *LARGE) if inference == "Auto" else TABLES[:1]
        for rows, columns in tables:
            for limit in LARGE_LIMITS if (rows, columns) in LARGE else INFERENCES[inference]:
                name = f"{inference}, {rows} x {columns}, {limit:g} s"
                if name in results:
                    continue
                call = f"print(json.dumps(once({inference!r}, {rows}, {columns}, {limit})))"
                code = f"import json; from benchmarks.limits import once; {call}"
                words = [sys.executable, "-W", "ignore", "-c", code]
                done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
                results.add(name, json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
