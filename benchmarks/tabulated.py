"""What a tabulated prior costs: `python -m benchmarks.tabulated` writes results/tabulated.json.

Two ordinary hierarchical models, each with half-normal scales, with PredCPs, and with their tables.
A sampler pays for gradients of the potential, so those are timed, one after the other as NUTS takes
them, by the clock and by the time of the processor, which other work on the machine distorts less.
With tables a gradient may cost 1.05 times what it costs with half-normal scales.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import lax
from numpyro.infer.util import initialize_model

import predcp
from predcp._support.environment import environment

OUTPUT = Path(__file__).parent / "results" / "tabulated.json"
BAR = 1.05
GROUPS, ROWS, STEPS, REPEATS, DRAWS = 50, 1000, 1000, 60, 10

# From the number of a factor to its scale, sampled in a model.
Scale = Callable[[int], Any]


def poisson(eta: Any) -> Any:
    """Counts with rate `exp(1 + eta)`."""
    return dist.Poisson(jnp.exp(1.0 + eta))


def logistic(eta: Any) -> Any:
    """Yes or no."""
    return dist.Bernoulli(logits=eta)


def data(factors: int, family: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    """Group numbers of each factor, and outcomes."""
    random = np.random.default_rng(0)
    groups = [jnp.asarray(random.integers(0, GROUPS, size=ROWS)) for _ in range(factors)]
    effects = sum(random.normal(size=GROUPS)[np.asarray(group)] * 0.7 for group in groups)
    return groups, family(jnp.asarray(effects)).sample(jax.random.key(0))


def prior_of(group: Any, family: Callable[[Any], Any]) -> predcp.ComplexityPrior:
    """The PredCP of the scale of one factor."""
    complexity = predcp.PredictiveComplexity(
        lambda effects, group: family(effects[group]),
        lambda tau, xi: tau * xi,
        jnp.zeros(GROUPS),
        group,
        predcp.normal_noise(jax.random.key(0), DRAWS, (GROUPS,)),
    )
    return predcp.ComplexityPrior(predcp.HalfCauchy(0.5), complexity)


def walk(groups: Sequence[Any], y: Any, family: Callable[[Any], Any], scale: Scale) -> Any:
    """A compiled call of `STEPS` gradients, each taken where the one before led."""

    def model():
        eta = numpyro.sample("mean", dist.Normal(0.0, 2.0))
        for place, group in enumerate(groups):
            tau = scale(place)
            with numpyro.plate(f"groups{place}", GROUPS):
                xi = numpyro.sample(f"xi{place}", dist.Normal(0.0, 1.0))
            eta = eta + tau * xi[group]
        numpyro.sample("y", family(eta), obs=y)

    start, potential, _, _ = initialize_model(jax.random.key(1), model)

    @jax.jit
    def gradients(state):
        def step(state, _):
            slope = jax.grad(potential)(state)
            return jax.tree.map(lambda at, by: at - 1e-7 * by, state, slope), None

        return lax.scan(step, state, length=STEPS)[0]

    return lambda: gradients(start.z)


def alternating(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, dict[str, float]]:
    """Median seconds of calls made in turns, by the clock and by the processor."""
    clocks = {"clock": time.perf_counter, "processor": time.process_time}
    for call in calls.values():
        jax.block_until_ready(call())
    times: dict[str, dict[str, list[float]]] = {
        clock: {name: [] for name in calls} for clock in clocks
    }
    for _ in range(repeats):
        for name, call in calls.items():
            began = {clock: now() for clock, now in clocks.items()}
            jax.block_until_ready(call())
            for clock, now in clocks.items():
                times[clock][name].append(now() - began[clock])
    return {
        clock: {name: statistics.median(each) for name, each in found.items()}
        for clock, found in times.items()
    }


def compared(factors: int, family: Callable[[Any], Any], repeats: int) -> dict[str, Any]:
    """Microseconds of a gradient with each kind of prior, and their ratios."""
    groups, y = data(factors, family)
    exact = [prior_of(group, family) for group in groups]
    tables = [prior.tabulated() for prior in exact]

    def log_scale(priors: Sequence[predcp.ComplexityPrior]) -> Scale:
        return lambda place: jnp.exp(numpyro.sample(f"log_tau{place}", priors[place].log_scale()))

    scales: dict[str, Scale] = {
        "half-normal": lambda place: numpyro.sample(f"tau{place}", dist.HalfNormal(1.0)),
        "prior": log_scale(exact),
        "table": log_scale(tables),
    }
    times = alternating(
        {name: walk(groups, y, family, scale) for name, scale in scales.items()}, repeats
    )

    def ratio(clock: str, name: str, digits: int) -> float:
        return round(times[clock][name] / times[clock]["half-normal"], digits)

    return {
        "factors": factors,
        "pieces": [table.complexity.pieces for table in tables],
        "microseconds": {
            clock: {name: round(1e6 * t / STEPS, 2) for name, t in found.items()}
            for clock, found in times.items()
        },
        "ratio_prior": ratio("clock", "prior", 2),
        "ratio_table": ratio("clock", "table", 3),
        "ratio_prior_processor": ratio("processor", "prior", 2),
        "ratio_table_processor": ratio("processor", "table", 3),
        "bar_ratio_table": BAR,
    }


def main() -> None:
    """Measure both models and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    results: dict[str, Any] = {
        "environment": environment(),
        "size": {"groups": GROUPS, "rows": ROWS, "draws": DRAWS},
    }
    for name, (factors, family) in {
        "Poisson, one factor": (1, poisson),
        "logistic, two factors": (2, logistic),
    }.items():
        print(f"{name} ...", flush=True)
        results[name] = compared(factors, family, options.repeats)
        print(json.dumps(results[name], indent=2), flush=True)
    options.output.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
