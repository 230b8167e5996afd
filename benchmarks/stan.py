"""Stan as the peer: `python -m benchmarks.stan` writes results/stan.json (needs `predcp[stan]`).

Both samplers see the same data, noise draws and settings, and run in turns, one chain per core; only
`Gibbs`, which tunes nothing, warms up for as long as it does by default.
Compilation is counted on neither side. PyStan hands every draw over as text, which at
thousands of parameters costs more than the sampling: figures with and without it are given.
"""

import argparse
import json
import os
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

from benchmarks import stan_programs
from benchmarks.stan_ours import (
    DRAWS,
    SAMPLERS,
    Settings,
    our_gradient_seconds,
    problem,
    sample_ours,
)
from benchmarks.stan_programs import Run, apart
from predcp._support.environment import environment

OUTPUT = Path(__file__).parent / "results" / "stan.json"


def figures(run: Run, settings: Settings, gradient_seconds: float | None = None) -> dict[str, Any]:
    """What is reported of a run; with `gradient_seconds`, also as if draws cost nothing to output."""
    steps = run.leapfrogs.sum(axis=1)
    busy = run.warmup_seconds + run.sampling_seconds
    if gradient_seconds is not None:
        busy = run.warmup_seconds + gradient_seconds * steps
    result: dict[str, Any] = {
        "wall_seconds": round(run.wall_seconds, 3),
        "core_seconds": round(float(busy.sum()), 3),
        "leapfrogs_an_iteration": round(float(run.leapfrogs.mean()), 1),
        "at_greatest_depth": round(float(np.mean(run.leapfrogs >= 2**settings.depth - 1)), 4),
        "divergent": round(float(run.divergent.mean()), 4),
    }
    for name, values in {"log_tau": run.log_tau, "log_density": run.log_density}.items():
        # One estimator for both sides.
        size = float(effective_sample_size(values))
        result[name] = {
            "mean": round(float(values.mean()), 3),
            "r_hat": round(float(split_gelman_rubin(values)), 4),
            "effective_draws": round(size, 1),
            "effective_draws_a_wall_second": round(size / run.wall_seconds, 3),
            "effective_draws_a_core_second": round(size / float(busy.sum()), 3),
        }
    return result


def compare(
    name: str, prior: str, settings: Settings, gradients: int, samplers: list[str]
) -> dict[str, Any]:
    """Both sides on one data set under one prior, in turns."""
    data = problem(name, DRAWS[name])
    gradient = round(1e6 * our_gradient_seconds(prior, data, gradients), 2)
    short = min(100, settings.draws)
    timed = apart("gradient_seconds", prior, data, warmup=short, draws=short)
    ours = {
        sampler: {
            "warmup": SAMPLERS[sampler](settings).warmup,
            **figures(sample_ours(data, prior, settings, sampler), settings),
        }
        for sampler in samplers
    }
    their_run = Run(**apart("sample", prior, data, **asdict(settings)))
    theirs = {
        "warmup": settings.warmup,
        # From a short run of its sampler: seconds of sampling over leapfrog steps, no output.
        "microseconds_a_gradient": round(1e6 * timed["gradient"], 2),
        "milliseconds_to_output_a_draw": round(1e3 * timed["draw"], 3),
        **figures(their_run, settings, timed["gradient"]),
    }
    return {
        "rows": data["N"],
        "columns": data["D"],
        "draws": data["S"] if prior == "predcp" else None,
        "microseconds_a_gradient": {"ours": gradient, "stan": theirs["microseconds_a_gradient"]},
        "ours": ours,
        "stan": theirs,
        "times_faster": {
            "a_gradient": round(theirs["microseconds_a_gradient"] / gradient, 2),
            **{
                f"{sampler}, {quantity}, a {second} second": _ratio(
                    ours[sampler][quantity], theirs[quantity], f"effective_draws_a_{second}_second"
                )
                for sampler in samplers
                for quantity in ("log_tau", "log_density")
                for second in ("wall", "core")
            },
        },
    }


def _ratio(above: dict[str, Any], below: dict[str, Any], name: str) -> float:
    return round(above[name] / below[name], 2)


def main() -> None:
    """Measure and write the figures with their circumstances."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=list(DRAWS), default=list(DRAWS))
    parser.add_argument("--priors", nargs="+", choices=stan_programs.PRIORS, default=["predcp"])
    parser.add_argument("--chains", type=int, default=Settings.chains)
    parser.add_argument("--warmup", type=int, default=Settings.warmup)
    parser.add_argument("--draws", type=int, default=Settings.draws)
    parser.add_argument("--depth", type=int, default=Settings.depth)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    parser.add_argument("--double", action="store_true", help="ours in double precision too")
    parser.add_argument("--gradients", type=int, default=1000, help="in our timed loop")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    # One core a chain, as Stan has; read when JAX starts.
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false"
    jax.config.update("jax_enable_x64", options.double)
    settings = Settings(
        options.chains,
        options.warmup,
        options.draws,
        depth=options.depth,
        seed=options.seed,
    )
    described = environment()
    for package in ("pystan", "httpstan"):
        described["versions"][package] = metadata.version(package)
    results: dict[str, Any] = {"environment": described, "settings": asdict(settings)}
    results["precision"] = "double" if options.double else "ours single, Stan double"
    for name in options.data:
        for prior in options.priors:
            print(f"{name} {prior} ...", flush=True)
            results[f"{name} {prior}"] = compare(
                name, prior, settings, options.gradients, options.samplers
            )
            print(json.dumps(results[f"{name} {prior}"], indent=2), flush=True)
            # What is measured is kept if a later one is stopped.
            options.output.parent.mkdir(exist_ok=True)
            options.output.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
