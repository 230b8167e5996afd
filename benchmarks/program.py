"""What the door costs: `python -m benchmarks.program` writes results/program.json.

Ratios are within one run. The gradient of a whole program with a complexity prior of S draws may
cost `1 + 1.2 S / 4` times that of the original; the audit of a thousand rows has five seconds,
compilation included.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer.util import initialize_model
from tests.program.programs import EXAMPLES

import predcp
from benchmarks.core import alternating
from predcp._support.environment import environment

OUTPUT = Path(__file__).parent / "results" / "program.json"
DRAWS = 16
BAR_GRADIENT = 1.0 + 1.2 * DRAWS / 4.0
BAR_AUDIT = 5.0


def gradient_of(model: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    """A call of the compiled gradient of a program's potential, at its initial values."""
    info = initialize_model(jax.random.key(0), model, model_args=args)
    gradient = jax.jit(jax.value_and_grad(info.potential_fn))
    return partial(gradient, info.param_info.z)


def gradients(repeats: int) -> dict[str, Any]:
    """Gradient of the potential with a complexity prior against the original."""
    results: dict[str, Any] = {}
    for name in ("radon, intercepts", "grouseticks"):
        example = EXAMPLES[name]
        args, program = example.args(), example.for_sampling()
        calls = {"original": gradient_of(program, args)}
        for rest in ("given", "prior"):
            swapped = predcp.with_complexity(
                program,
                {example.scale: predcp.Gamma(shape=0.5, scale=1.0)},
                rest=rest,
                noise_draws=DRAWS,
            )
            calls[rest] = gradient_of(swapped, args)
        times = alternating(calls, repeats, turn=0.02)
        results[name] = {
            "microseconds": {label: round(1e6 * t, 1) for label, t in times.items()},
            "ratio_given": round(times["given"] / times["original"], 2),
            "ratio_prior": round(times["prior"] / times["original"], 2),
        }
    return {"draws": DRAWS, **results, "bar_ratio": BAR_GRADIENT}


def counts(group, x, y):
    """A model of a thousand counts with two scales."""
    beta = numpyro.sample("beta", dist.Normal(0, 1).expand([3]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(1))
    slope = numpyro.sample("slope", dist.HalfCauchy(1))
    with numpyro.plate("groups", 50):
        a = numpyro.sample("a", dist.Normal(0, sigma))
        b = numpyro.sample("b", dist.Normal(0, slope))
    rate = jnp.exp(x @ beta + a[group] + b[group] * x[:, 0])
    numpyro.sample("y", dist.Poisson(rate), obs=y)


def audit_once() -> float:
    """Seconds of one audit of a thousand rows in this process, compilation included."""
    jax.config.update("jax_enable_x64", True)
    random = np.random.default_rng(0)
    data = random.integers(0, 50, 1000), random.normal(size=(1000, 3)), random.poisson(2.0, 1000)
    # Starting JAX itself is not part of an audit.
    jnp.zeros(3).block_until_ready()
    start = time.perf_counter()
    predcp.audit(counts, *data)
    return time.perf_counter() - start


def audits(repeats: int) -> dict[str, Any]:
    """Audits in fresh processes without a cache of compiled programs."""
    code = "from benchmarks.program import audit_once; print(audit_once())"
    times = []
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
        times.append(float(done.stdout.split()[-1]))
    return {
        "rows": 1000,
        "scales": 2,
        "seconds": round(float(np.median(times)), 2),
        "bar": BAR_AUDIT,
    }


def main() -> None:
    """Measure everything and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--audits", type=int, default=3)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    results: dict[str, Any] = {"environment": environment()}
    for name, step in {
        "gradient": partial(gradients, options.repeats),
        "audit": partial(audits, options.audits),
    }.items():
        print(f"{name} ...", flush=True)
        results[name] = step()
        print(json.dumps(results[name], indent=2), flush=True)
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
