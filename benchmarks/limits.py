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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stored import Stored

OUTPUT = Path(__file__).parent / "results" / "limits.json"
TABLES = ((2000, 200), (82, 5966))
# Tables for which reading the data is itself a part of the time; in single precision.
LARGE = ((500, 100_000), (1_000_000, 50))
LARGE_LIMITS = (3.0, 20.0)
# A tiny table, and other forms of one.
SMALL, FORMED = (20, 3), (2000, 200)
FORMS = ("three classes", "weights", "sparse")
FORM_LIMIT = 5.0
INFERENCES = {
    "Auto": (1.0, 5.0, 20.0, 60.0),
    "Nuts": (5.0, 20.0),
    "Gibbs": (5.0, 20.0),
    "Laplace": (5.0, 20.0),
    "MeanField": (5.0, 20.0),
}
GRACE_SHARE, GRACE_SECONDS = 0.1, 0.5


def once(inference: str, rows: int, columns: int, limit: float, form: str = "") -> dict[str, Any]:
    """One fit in this process."""
    from scipy import sparse

    from predcp import linear

    random = np.random.default_rng(0)
    kind = np.float32 if (rows, columns) in LARGE else np.float64
    x = random.standard_normal((rows, columns), kind)
    predictor = x[:, :3].sum(axis=1) + random.logistic(size=rows)
    y = np.digitize(predictor, [0.0, 1.5] if form == "three classes" else [0.0])
    weights = random.integers(1, 4, rows).astype(float) if form == "weights" else None
    given = sparse.csr_array(np.where(x > 1.0, x, 0.0)) if form == "sparse" else x
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
            model.fit(given, y, weights)
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
        found["accuracy"] = round(float(model.score(given, y)), 3)
    words = [str(one.message) for one in caught if "ConvergenceW" in str(one.category)]
    return {**found, "warnings": words}


def cases(inference: str) -> Iterator[tuple[int, int, float, str]]:
    """Rows, columns, limits and forms of a method's tables, the large ones first."""
    if inference == "Auto":
        for rows, columns in LARGE:
            yield from ((rows, columns, limit, "") for limit in LARGE_LIMITS)
        yield (*SMALL, FORM_LIMIT, "")
        yield from ((*FORMED, FORM_LIMIT, form) for form in FORMS)
    # The others differ between tables only in how long they compile.
    for rows, columns in TABLES if inference == "Auto" else TABLES[:1]:
        yield from ((rows, columns, limit, "") for limit in INFERENCES[inference])


def main() -> None:
    """Measure what is missing and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--inference", nargs="+", default=list(INFERENCES), choices=INFERENCES)
    options = parser.parse_args()
    results = Stored(options.output)
    for inference in options.inference:
        for rows, columns, limit, form in cases(inference):
            table = f"{rows} x {columns}{' ' * bool(form)}{form}"
            name = f"{inference}, {table}, {limit:g} s"
            if name in results:
                continue
            call = f"print(json.dumps(once({inference!r}, {rows}, {columns}, {limit}, {form!r})))"
            code = f"import json; from benchmarks.limits import once; {call}"
            words = [sys.executable, "-W", "ignore", "-c", code]
            done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
            results.add(name, json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
