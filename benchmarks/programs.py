"""How programs sample with complexity priors: `python -m benchmarks.programs --jobs 12`.

Two parts, both unless one is named; results/programs.json gets a row as soon as it is measured.

- `programs`: each program of the tests is sampled twice by NUTS with the same settings, with its
    author's prior and with a complexity prior in place of the prior of one scale, until R-hat is below
    the bar or the draws are `MOST_DRAWS` a chain. Divergent steps are compared as shares of all steps.
- `calibration`: simulation-based calibration of three programs (tests/program/calibration.py).

Each measurement is a process of its own, on a core of its own; chains of programs with many rows have
a core each. What has a row is left out next time, so that an interrupted run goes on where it stopped;
`--again` measures it anew. With `--keep FOLDER` a sampler that is stopped goes on from its warm-up.
"""

import argparse
import json
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpyro.infer import MCMC, NUTS
from tests.program import calibration, designs
from tests.program.programs import EXAMPLES

import predcp
from predcp._numerics.chains import bulk_ess, rank_normalised_rhat, varying_quantities
from predcp._support.environment import environment
from predcp._support.workers import start_worker

OUTPUT = Path(__file__).parent / "results" / "programs.json"
CHAINS, DRAWS, MOST_DRAWS, ACCEPT = 4, 1000, 8000, 0.95
BAR_RHAT = 1.01
PRIORS = ("complexity", "original")
# Calibrations, the fits with a wrong prior last; each in so many processes.
CASES = {
    f"{name}, {rest}{', wrong' if factor != 1.0 else ''}": (name, rest, factor)
    for rest, factor in (("given", 1.0), ("prior", 1.0), ("given", calibration.FACTOR))
    for name in calibration.CALIBRATED
}
SHARES = 4
# Programs with at least so many rows run a chain on a core; below, four chains on one core cost less.
MANY_ROWS = 250
# Row, and the key in it: the prior of a program, or the share of a calibration.
Task = tuple[str, str, str]


def summary(draws: dict[str, np.ndarray], names: tuple[str, ...] | None) -> dict[str, Any]:
    """The worst R-hat and the smallest bulk ESS of the named sites, of all when left out."""
    rhat, ess = {}, {}
    for name in draws if names is None else names:
        varying = varying_quantities(draws[name].reshape(*draws[name].shape[:2], -1))
        if varying.size:
            rhat[name] = float(np.max(rank_normalised_rhat(varying)))
            ess[name] = float(np.min(bulk_ess(varying)))
    worst = max(rhat, key=lambda name: rhat[name])
    return {"rhat": round(rhat[worst], 4), "site": worst, "ess": round(min(ess.values()))}


def measure_program(
    name: str, prior: str, key: int = 0, size: int = DRAWS, keep: Path | None = None
) -> Iterator[dict[str, Any]]:
    """Sample one program, longer and longer: a row each time the draws have doubled.

    **Arguments**: `size`, number of warm-up steps, and of draws in the first row; `keep`, a folder for the
    state after the warm-up, from which an interrupted measurement goes on.
    """
    example = EXAMPLES[name]
    args, model = example.args(), example.for_sampling()
    if prior == "complexity":
        model = predcp.with_complexity(model, {example.scale: example.statement})
    mcmc = MCMC(
        NUTS(model, target_accept_prob=ACCEPT),
        num_warmup=size,
        num_samples=size,
        num_chains=CHAINS,
        chain_method="parallel" if jax.local_device_count() >= CHAINS else "vectorized",
        progress_bar=False,
    )
    start, draws, divergent, steps = time.process_time(), {}, 0, 0.0
    random, done = jax.random.PRNGKey(key), 0
    if keep is not None:
        start -= warm_up(mcmc, random, args, keep / f"{name}, {prior}, {key}, {size}.pickle")
        random = mcmc.post_warmup_state.rng_key
    while done < MOST_DRAWS:
        mcmc.num_samples = max(done, size)
        mcmc.run(random, *args, extra_fields=("diverging", "num_steps"))
        mcmc.post_warmup_state = mcmc.last_state
        random = mcmc.post_warmup_state.rng_key
        for site, new in mcmc.get_samples(group_by_chain=True).items():
            old = draws.get(site)
            draws[site] = np.asarray(new) if old is None else np.concatenate([old, new], axis=1)
        done += mcmc.num_samples
        fields = mcmc.get_extra_fields()
        divergent += int(np.sum(fields["diverging"]))
        steps += float(np.sum(fields["num_steps"]))
        row = {
            **summary(draws, example.identified),
            "draws": done,
            "divergent": divergent,
            "steps": round(steps / (CHAINS * done), 1),
            "cpu_seconds": round(time.process_time() - start, 1),
            **({"simulated_for_want_of": sorted(designs.MISSING)} if designs.MISSING else {}),
        }
        yield row
        if row["rhat"] < BAR_RHAT:
            return


def warm_up(mcmc: MCMC, random: jax.Array, args: tuple[Any, ...], path: Path) -> float:
    """Warm up, or take the state of an earlier warm-up from the file; its seconds if so."""
    if path.is_file():
        state, seconds = pickle.loads(path.read_bytes())
        mcmc.post_warmup_state = state
        return seconds
    start = time.process_time()
    mcmc.warmup(random, *args)
    state = jax.device_get(mcmc.post_warmup_state)  # Waits for the sampler.
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps((state, time.process_time() - start)))
    return 0.0


def measure_calibration(case: str, share: str) -> Iterator[dict[str, Any]]:
    """Ranks of one share of the simulated data."""
    name, rest, factor = CASES[case]
    start = time.process_time()
    counts = calibration.ranks(name, rest, factor, int(share), SHARES)
    yield {"ranks": counts.tolist(), "cpu_seconds": round(time.process_time() - start, 1)}


MEASURES: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
    "programs": measure_program,
    "calibration": measure_calibration,
}


def tasks(part: str) -> list[Task]:
    """The measurements of a part: complexity priors and true fits first."""
    if part == "programs":
        return [(part, name, prior) for prior in PRIORS for name in EXAMPLES]
    return [(part, case, str(share)) for case in CASES for share in range(SHARES)]


def judged(part: str, name: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row with what its measurements say together."""
    if part == "programs":
        row = {"scale": EXAMPLES[name].scale, "statement": str(EXAMPLES[name].statement), **row}
        ours, theirs = (row.get(prior) for prior in PRIORS)
        # Without a divergent step there is nothing to compare.
        if ours and (theirs or ours["divergent"] == 0):
            rates = [each["divergent"] / each["draws"] for each in (ours, theirs) if each]
            row["met"] = ours["rhat"] < BAR_RHAT and rates[0] <= rates[-1]
        return row
    shares = [row[str(share)] for share in range(SHARES) if str(share) in row]
    if len(shares) == SHARES:
        counts = np.sum([share["ranks"] for share in shares], axis=0)
        row["score"] = round(calibration.score(counts), 2)
        row["flatness_p"] = round(calibration.flatness(counts), 4)
        inside = abs(row["score"]) < calibration.bar()
        calibrated = inside and row["flatness_p"] > calibration.LEVEL
        row["met"] = calibrated if CASES[name][2] == 1.0 else not inside
    return row


class Results:
    """The file of results, written whole after every row."""

    def __init__(self, path: Path):
        self.path, self._lock = path, threading.Lock()
        found = json.loads(path.read_text()) if path.is_file() else {}
        self.parts = {part: found.get(part, {}) for part in MEASURES}
        for row in (row for rows in self.parts.values() for row in rows.values()):
            for measured in (each for each in row.values() if isinstance(each, dict)):
                measured.setdefault("commit", found["environment"]["commit"])
        self.parts = {
            part: {name: judged(part, name, row) for name, row in rows.items()}
            for part, rows in self.parts.items()
        }

    def has(self, task: Task) -> bool:
        """Whether a finished row of the task is there."""
        part, name, key = task
        return self.parts[part].get(name, {}).get(key, {}).get("finished", False)

    def add(self, task: Task, row: dict[str, Any], finished: bool) -> None:
        """Keep a row, and write the file."""
        part, name, key = task
        with self._lock:
            rows = self.parts[part]
            commit = environment()["commit"]
            rows.setdefault(name, {})[key] = {**row, "commit": commit, "finished": finished}
            rows[name] = judged(part, name, rows[name])
            results = {
                "environment": environment(),
                "settings": {
                    "chains": CHAINS, "warmup": DRAWS, "draws": [DRAWS, MOST_DRAWS],
                    "target_accept": ACCEPT, "start": "init_to_uniform", "bar_rhat": BAR_RHAT,
                    "data_sets": calibration.REPEATS, "bar_score": round(calibration.bar(), 2),
                    "power_without_data": round(
                        calibration.power_without_data(calibration.FACTOR), 4
                    ),
                },
                **{
                    each: {n: self.parts[each][n] for n in order if n in self.parts[each]}
                    for each, order in (("programs", EXAMPLES), ("calibration", CASES))
                },
            }  # fmt: skip
            self.path.write_text(json.dumps(results, indent=2) + "\n")


def cores_of(task: Task) -> int:
    """How many cores a measurement is given."""
    if task[0] != "programs":
        return 1
    rows = max(len(arg) for arg in EXAMPLES[task[1]].args())
    return CHAINS if rows >= MANY_ROWS else 1


def work(task: Task, cores: Sequence[int], arguments: list[str], results: Results) -> None:
    """Measure one task in a process on these cores."""
    fixed = {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
    if len(cores) > 1:
        flags = f"--xla_force_host_platform_device_count={len(cores)}"
        fixed["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"
    process = start_worker(
        "benchmarks.programs", cores[0], [*arguments, "--task", *task], override=fixed
    )
    os.sched_setaffinity(process.pid, cores)
    assert process.stdout is not None
    row: dict[str, Any] = {}
    for line in process.stdout:
        row = json.loads(line)
        results.add(task, row, finished=False)
        print(*task, json.dumps(row), flush=True)
    if process.wait() == 0 and row:
        results.add(task, row, finished=True)
    else:
        print(*task, f"failed with exit status {process.returncode}", flush=True)


def work_all(wanted: Sequence[Task], jobs: int, arguments: list[str], results: Results) -> None:
    """Measure all tasks in turn, each as soon as there are cores for it."""
    free = sorted(os.sched_getaffinity(0))[:jobs]
    changed = threading.Condition()

    def run(task: Task, cores: list[int]) -> None:
        try:
            work(task, cores, arguments, results)
        finally:
            with changed:
                free.extend(cores)
                changed.notify()

    pending = [(task, min(cores_of(task), jobs)) for task in wanted]
    with ThreadPoolExecutor(jobs) as pool:
        while pending:
            with changed:
                changed.wait_for(lambda: any(count <= len(free) for _, count in pending))
                # Small tasks fill the cores that are too few for the next large one.
                task, count = next(each for each in pending if each[1] <= len(free))
                pending.remove((task, count))
                cores = [free.pop() for _ in range(count)]
            pool.submit(run, task, cores)


def main() -> None:
    """Measure what has no row yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="programs, calibration")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", nargs="*", help="names of programs or calibrations")
    parser.add_argument("--again", action="store_true", help="measure what has a row, too")
    parser.add_argument("--size", type=int, default=DRAWS, help="warm-up steps, and first draws")
    parser.add_argument("--key", type=int, default=0, help="random seed of the samplers")
    parser.add_argument("--keep", type=Path, help="folder for states of unfinished samplers")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--task", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(MEASURES):
        parser.error(f"parts are {', '.join(MEASURES)}, got {', '.join(unknown)}")
    if options.task:
        part, name, which = options.task
        more = {"key": options.key, "size": options.size, "keep": options.keep}
        more = more if part == "programs" else {}
        for row in MEASURES[part](name, which, **more):
            print(json.dumps(row), flush=True)
        return
    results = Results(options.output)
    wanted = [
        task
        for part in options.parts or MEASURES
        for task in tasks(part)
        if not options.only or task[1] in options.only
        if options.again or not results.has(task)
    ]
    # The longest first, so that none is left alone at the end.
    wanted.sort(key=cores_of, reverse=True)
    print(f"{len(wanted)} measurements on {options.jobs} cores", flush=True)
    arguments = ["--key", str(options.key), "--size", str(options.size)]
    arguments += ["--keep", str(options.keep)] if options.keep else []
    work_all(wanted, options.jobs, arguments, results)


if __name__ == "__main__":
    main()
