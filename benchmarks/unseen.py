"""Whether chains mix where no setting was chosen: `python -m benchmarks.unseen FILE --target COLUMN`.

Writes results/unseen.json: for the ECP and the PredCP, the R-hat of test probabilities of every split
(90% of the rows train, as in Table 1), with the moves that the sampler chose for itself, and the time. All
splits of a prior are one program, for a GPU; on a CPU take few splits. `benchmarks.leukaemia` makes such a
table. Chains go on until R-hat is below 1.01, or the time is up.
"""

import argparse
import hashlib
import tempfile
import time
from pathlib import Path
from typing import Any

import predcp.paper  # noqa: F401 (registers the model of the cells)
from benchmarks.stored import Stored
from predcp.experiments import Cell, Setting, Store, on_file, run

OUTPUT = Path(__file__).parent / "results" / "unseen.json"
PRIORS = ("ecp", "predcp")
BAR_RHAT, BAR_SECONDS = 1.01, 240.0


def measured(options: argparse.Namespace, prior: str) -> dict[str, Any]:
    """All splits of one prior."""
    settings: dict[str, Setting] = {
        "chains": 4,
        "warmup": options.warmup,
        "draws": options.draws,
        "max_draws": options.most_draws,
        "max_seconds": options.seconds,
    }
    if options.handovers is not None:
        settings["handovers"] = options.handovers
    cells = [
        Cell("file", "logistic", prior, "mcmc", split, settings=settings)
        for split in range(options.splits)
    ]
    cells = on_file(cells, str(options.file), options.target)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run("unseen", cells, store=folder, engine="batch")
        records = Store(Path(folder), "unseen").records()
    if records.failed:
        raise RuntimeError(records.failed[0].traceback)
    rhats = [record.convergence["rhat_probability"] for record in records.finished]
    found = dict(records.finished[0].convergence)
    return {
        "splits": len(rhats),
        "below": sum(rhat is not None and rhat < BAR_RHAT for rhat in rhats),
        "rhats": [None if rhat is None else round(rhat, 4) for rhat in rhats],
        "chosen": {name: found[name] for name in ("handovers", "paths") if name in found},
        "settings": settings,
        "seconds": round(time.perf_counter() - began, 1),
    }


def main() -> None:
    """Measure and add to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", required=True)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--most-draws", type=int, default=32_000)
    parser.add_argument("--seconds", type=float, default=0.5 * BAR_SECONDS, help="for each prior")
    parser.add_argument("--handovers", type=int, help="instead of those that the sampler chooses")
    parser.add_argument("--priors", nargs="+", default=PRIORS, choices=PRIORS)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    results = Stored(options.output)
    results.cells["bars"] = {"rhat": BAR_RHAT, "seconds": BAR_SECONDS}
    digest = hashlib.sha256(options.file.read_bytes()).hexdigest()
    for prior in options.priors:
        moves = "chosen moves" if options.handovers is None else f"{options.handovers} handovers"
        name = f"{options.file.stem}, {prior}, {moves}"
        results.add(name, {"sha256": digest} | measured(options, prior))


if __name__ == "__main__":
    main()
