"""How long `predcp compare` takes on a table that people have.

`python -m benchmarks.compare` writes results/compare.json: scikit-learn's breast cancer table, six models
and the base rate, five folds, on two cores, in a fresh process, workers and compilation included.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from predcp._support.environment import environment

OUTPUT = Path(__file__).parent / "results" / "compare.json"
MODELS = ("predcp", "ecp", "horseshoe", "sklearn-l1", "sklearn-l2", "boosting")
BAR_SECONDS = 120.0


def write_table(path: Path) -> None:
    """The breast cancer table as a CSV file with the target `diagnosis`."""
    from sklearn.datasets import load_breast_cancer

    found: Any = load_breast_cancer(as_frame=True)
    names = found.target_names[found.target]
    found.data.assign(diagnosis=names).to_csv(path, index=False)


def measured(jobs: int) -> dict[str, Any]:
    """Run the command and say what it found."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "breast.csv"
        write_table(path)
        words = [sys.executable, "-m", "predcp", "compare", str(path), "--target", "diagnosis"]
        for model in ("base-rate", *MODELS):
            words += ["--model", model]
        words += ["--folds", "5", "--repeats", "1", "--jobs", str(jobs), "--quiet", "--json"]
        words += ["--output", f"{folder}/comparison"]
        began = time.perf_counter()
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
        seconds = time.perf_counter() - began
    found = json.loads(done.stdout)
    return {
        "seconds": round(seconds, 1),
        "bar_seconds": BAR_SECONDS,
        "jobs": jobs,
        "sentence": found["sentence"],
        "scores": found["scores"],
    }


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    results = {"environment": environment(), "breast cancer, 569 x 30": measured(options.jobs)}
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
