"""Run studies side by side on one device, over several calls: `python -m studies.device`.

    python -m studies.device start --work WORK JOB ...     # returns at once, the jobs go on
    python -m studies.device collect --work WORK --seconds 500 --output OUT

A job is a list of `predcp run` command lines, one after another, in a session of its own. All write to
WORK: stores, checkpoints (an interrupted job that is started again goes on), logs. `collect` waits
for the jobs, at most so long, ends nothing, and packs what is finished.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from predcp.experiments import Setting
from predcp.paper import table3_pooled_search

_HERE = Path(__file__).parent.parent
_SEARCH, _POOLED = "table3-pooled-search", "table3-pooled"
Steps = list[list[str]]


def _pooled(*pairs: tuple[str, str]) -> Steps:
    return [[_POOLED, "--data", data, "--seeds", seeds] for data, seeds in pairs]


def _each(experiment: str, *sets: str) -> Steps:
    return [[experiment, "--data", data] for data in sets]


def _searched(data: str, **settings: Setting) -> Steps:
    """The cells of the search with these settings: programs compile side by side in jobs of their own."""
    cells = [
        cell
        for cell in table3_pooled_search()
        if cell.data == data and settings.items() <= dict(cell.settings).items()
    ]
    return [[_SEARCH, *(word for cell in cells for word in ("--cell", cell.key[:12]))]]


_HALF: dict[str, Setting] = {"precision": "bfloat16"}
JOBS: dict[str, Steps] = {
    "search-1": _searched("fc100-1shot", inner_steps=5, **_HALF),
    "search-1-steps": _searched("fc100-1shot", inner_steps=2),
    "search-1-exact": _searched("fc100-1shot", precision="default"),
    "search-5": _searched("fc100-5shot"),
    "search-omniglot-1": _searched("omniglot-1shot", inner_steps=1),
    "search-omniglot-3": _searched("omniglot-1shot", inner_steps=3),
    "shift-1": _each("shift", "yacht", "boston"),
    "shift-2": _each("shift", "energy", "concrete"),
    "shift-3": _each("shift", "wine"),
    "off-1": _each("switched-off", "power"),
    "off-2": _each("switched-off", "yacht", "boston", "energy"),
    "off-3": _each("switched-off", "concrete", "wine"),
    "pooled-1": _pooled(("fc100-1shot", "0-2")),
    "pooled-5": _pooled(("fc100-5shot", "0-1")),
    "pooled-omniglot": _pooled(("omniglot-1shot", "0-0")),
    "pooled-class-1": _pooled(("cifar100-by-class-1shot", "0-2")),
    "pooled-rest": _pooled(
        ("fc100-5shot", "2-2"), ("fc100-1shot", "3-4"), ("cifar100-by-class-1shot", "3-4")
    ),
}


def start(work: Path, jobs: list[str]) -> None:
    """Begin jobs in sessions of their own, from a copy of the sources that no later call changes."""
    for name in ("src", "studies"):
        shutil.copytree(_HERE / name, work / "code" / name, dirs_exist_ok=True)
    (work / "logs").mkdir(parents=True, exist_ok=True)
    code = work / "code"
    paths = os.pathsep.join([str(code / "src"), str(code)])
    environment = os.environ | {
        "PYTHONPATH": paths,
        "PYTHONUNBUFFERED": "1",
        # Programs share the memory of the device, and what they compiled.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_COMPILATION_CACHE_DIR": str(work / "compiled"),
    }
    for job in jobs:
        (work / "logs" / f"{job}.ended").unlink(missing_ok=True)
        with (work / "logs" / f"{job}.log").open("a", encoding="utf-8") as log:
            subprocess.Popen(
                [sys.executable, "-m", "studies.device", "job", "--work", str(work), job],
                cwd=code,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        print(f"started {job}")


def run_job(work: Path, job: str) -> None:
    """The steps of a job, one after another; a step that fails does not keep the next from running."""
    places = ["--store", str(work / "results"), "--checkpoints", str(work / "checkpoints")]
    began = time.monotonic()
    for step in JOBS[job]:
        command = ["run", *step, "--engine", "batch", "--together", "200", "--quiet", *places]
        code = subprocess.run([sys.executable, "-m", "predcp", *command], check=False).returncode
        print(f"{time.monotonic() - began:.0f} s: {' '.join(step)} ended with {code}")
    (work / "logs" / f"{job}.ended").touch()


def collect(work: Path, seconds: float, output: Path) -> None:
    """Wait until the jobs have ended or the time is up, then pack stores, scores and logs."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and _running(work):
        time.sleep(1.0)
    output.mkdir(parents=True, exist_ok=True)
    folders = sorted((work / "results").glob("*")) if (work / "results").is_dir() else []
    for folder in folders:
        pack(output / f"{folder.name}.tar.gz", [folder])
    pack(output / "scores.tar.gz", [work / "checkpoints" / "scores"])
    logs = [*(work / "logs").glob("*"), *(work / "checkpoints").glob("*.log")]
    pack(output / "logs.tar.gz", logs)
    for path in sorted((work / "logs").glob("*.log")):
        print(f"== {path.stem}\n{path.read_text('utf-8')[-600:]}")
    for path in sorted((work / "checkpoints").glob("*.log")):
        print(f"== {path.stem}: {path.read_text('utf-8').splitlines()[-1][:300]}")
    print("running:", ", ".join(_running(work)) or "nothing")


def _running(work: Path) -> list[str]:
    logs = work / "logs"
    return [path.stem for path in logs.glob("*.log") if not path.with_suffix(".ended").exists()]


def pack(path: Path, members: list[Path]) -> None:
    """Pack folders that are there, without claims on cells."""
    with tarfile.open(path, "w:gz") as archive:
        for member in members:
            if member.exists():
                archive.add(member, member.name, filter=_without_claims)


def _without_claims(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if ".claims" in member.name else member


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=("start", "job", "collect"))
    parser.add_argument("jobs", nargs="*", choices=[[], *JOBS], help=", ".join(JOBS))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_intermixed_args()
    work = arguments.work.resolve()
    if arguments.task == "start":
        start(work, arguments.jobs)
    elif arguments.task == "job":
        run_job(work, arguments.jobs[0])
    else:
        collect(work, arguments.seconds, arguments.output or work / "packed")


if __name__ == "__main__":
    main()
