"""The study as tasks, each in a process of its own on one core; finished ones are not run again."""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import pandas as pd

from studies.scale_priors.designs import NAMES

PARTS = ("simulated", "real", "nuts")
# Designs whose scales are run apart, so that no process takes much longer than the others.
APART = (
    *(name for name in NAMES if name.startswith(("ticks", "surgical", "election"))),
    *("birds", "rats", "sleepstudy", "penicillin"),
)
# Run before the others: the longest first.
_FIRST = ("birds", "ticks-0.01", "ticks-0.1", "ticks-1", "ticks-10", "ticks-100", "rats")


class Task(NamedTuple):
    """A part, a design, and which of its pieces (true scale or prior; "all")."""

    part: str
    design: str
    piece: str

    @property
    def name(self) -> str:
        """Stem of the file with the result."""
        return "_".join(self)


def tasks(parts: Sequence[str], designs: Sequence[str]) -> list[Task]:
    """All tasks, the longest first."""
    from studies.scale_priors.nuts import DESIGNS, PRIORS
    from studies.scale_priors.real import real_designs

    order = [*(n for n in _FIRST if n in designs), *(n for n in designs if n not in _FIRST)]
    found = []
    if "simulated" in parts:
        for name in order:
            pieces = ("0", "1", "2", "3") if name in APART else ("all",)
            found += [Task("simulated", name, piece) for piece in pieces]
    if "real" in parts:
        kept = real_designs()
        found += [Task("real", name, "all") for name in order if name in kept]
    if "nuts" in parts:
        found += [Task("nuts", n, prior) for n in order if n in DESIGNS for prior in PRIORS]
    return found


def perform(task: Task, simulations: int, seed: int, splits: int) -> pd.DataFrame:
    """Run one task in this process."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if task.part == "simulated":
        from studies.scale_priors.cells import run_design

        part = None if task.piece == "all" else [int(task.piece)]
        return run_design(task.design, simulations, seed, part)
    if task.part == "real":
        from studies.scale_priors.real import run_real

        return run_real(task.design, splits, seed)
    from studies.scale_priors.nuts import run_nuts

    return run_nuts(task.design, task.piece, seed)


def save(frame: pd.DataFrame, path: Path) -> None:
    """Write a table so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    frame.to_parquet(part, compression="zstd", index=False)
    part.replace(path)


def run(
    todo: Sequence[Task], work: Path, out: Path, jobs: int, limit: float, options: Sequence[str]
) -> int:
    """Run tasks side by side until none is left or the time is up; returns how many are missing.

    **Arguments**: `work`, a folder for the results of single tasks; `out`, for those of whole parts.
    """
    started = time.monotonic()
    cores = sorted(os.sched_getaffinity(0))
    free: Queue[int] = Queue()
    for place in range(jobs):
        free.put(cores[place % len(cores)])
    missing = [task for task in todo if not (work / f"{task.name}.parquet").exists()]
    print(f"{len(missing)} of {len(todo)} tasks to run on {jobs} cores", flush=True)

    def one(task: Task) -> tuple[Task, int, str]:
        core = free.get()
        left = limit - (time.monotonic() - started)
        try:
            if left < 5.0:
                return task, -1, "no time left"
            return _run_pinned(task, core, work, left, options)
        finally:
            free.put(core)

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(one, task) for task in missing]
        for count, future in enumerate(as_completed(futures), 1):
            task, code, words = future.result()
            spent = time.monotonic() - started
            state = "done" if code == 0 else f"failed ({code}): {words[-600:]}"
            print(f"{spent:6.0f} s  {count}/{len(missing)}  {task.name}  {state}", flush=True)
            if count % 10 == 0:
                pack(work, out)
    pack(work, out)
    return sum(not (work / f"{task.name}.parquet").exists() for task in todo)


def _run_pinned(
    task: Task, core: int, work: Path, left: float, options: Sequence[str]
) -> tuple[Task, int, str]:
    """Run a task in its own process on one core."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(work / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "studies.scale_priors", "task", *task, *options]
    command += ["--work", str(work)]
    try:
        found = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=left,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
    except subprocess.TimeoutExpired:
        return task, -1, "no time left"
    return task, found.returncode, found.stderr


def pack(work: Path, out: Path) -> None:
    """One file for each part with all that is finished, and where it was made."""
    out.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        found = sorted(work.glob(f"{part}_*.parquet"))
        if found:
            save(pd.concat([pd.read_parquet(path) for path in found]), out / f"{part}.parquet")
    (out / "made.json").write_text(json.dumps(_made(), indent=1))


def _made() -> dict[str, Any]:
    import jax
    import numpyro

    import predcp

    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    return {
        "commit": os.environ.get("STUDY_COMMIT") or commit.strip(),
        "predcp": predcp.__version__,
        "jax": jax.__version__,
        "numpyro": numpyro.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def unpack(have: Path, work: Path) -> None:
    """Results of an earlier run as results of its tasks, which are then not run again."""
    for path in (have / f"{part}.parquet" for part in PARTS):
        if path.exists():
            for name, rows in pd.read_parquet(path).groupby("task"):
                save(rows, work / f"{name}.parquet")
