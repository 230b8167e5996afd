"""Run the study and make its page: `python -m studies.scale_priors run` and `... report`."""

import argparse
import sys
from pathlib import Path

from studies.scale_priors.designs import NAMES
from studies.scale_priors.tasks import PARTS, Task, perform, run, save, tasks, unpack


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.scale_priors", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    whole = commands.add_parser("run", help="run what is missing, task by task")
    single = commands.add_parser("task", help="run one task in this process")
    report = commands.add_parser("report", help="make the store, the pictures and the page")
    for each in (whole, single):
        each.add_argument("--simulations", type=int, default=200)
        each.add_argument("--splits", type=int, default=20)
        each.add_argument("--seed", type=int, default=2026, help="1 for trials")
        each.add_argument("--work", type=Path, required=True, help="folder for single tasks")
    whole.add_argument("--out", type=Path, required=True, help="folder for the results of parts")
    whole.add_argument("--have", type=Path, help="results of an earlier run, not to be run again")
    whole.add_argument("--jobs", type=int, default=1)
    whole.add_argument("--limit", type=float, default=3e4, help="seconds after which to stop")
    whole.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    whole.add_argument("--designs", nargs="+", default=NAMES, choices=NAMES)
    single.add_argument("names", nargs=3, metavar=("PART", "DESIGN", "PIECE"))
    report.add_argument(
        "--results", type=Path, nargs="+", default=(), help="folders of runs; later ones prevail"
    )
    report.add_argument(
        "--replace", type=Path, nargs="+", default=(), help="later runs of some simulated cells"
    )
    report.add_argument("--check", action="store_true", help="only say whether the page is current")
    options = parser.parse_args()
    if options.command == "report":
        from studies.scale_priors.report import report

        return report(options.results, options.check, options.replace)
    if options.command == "task":
        task = Task(*options.names)
        frame = perform(task, options.simulations, options.seed, options.splits)
        save(frame.assign(task=task.name), options.work / f"{task.name}.parquet")
        return 0
    if options.have:
        unpack(options.have, options.work)
    passed = [f"--{name}={getattr(options, name)}" for name in ("simulations", "splits", "seed")]
    todo = tasks(options.parts, options.designs)
    left = run(todo, options.work, options.out, options.jobs, options.limit, passed)
    print(f"{left} tasks missing" if left else "all tasks done")
    return int(left > 0)


if __name__ == "__main__":
    sys.exit(main())
