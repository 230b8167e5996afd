"""What a complexity prior costs in PyMC: `python -m benchmarks.pymc_bridge`.

The gradient of a whole model with the prior through the bridge, S = 16, against that of the original
model: with one scale, with two, and with priors that have no table. Both are compiled by PyMC and timed
in turn within one run, in processor time. Writes results/pymc_bridge.json, by version of PyMC: run it in
an environment of each.
"""

import argparse
import json
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pymc as pm

import predcp
from benchmarks.conditions import conditions
from predcp.bridges import pymc as bridge

OUTPUT = Path(__file__).parent / "results" / "pymc_bridge.json"
DRAWS = 16
BAR = 2.0
SENTENCE = predcp.tail(divergence=1.0, probability=0.05)


def schools() -> pm.Model:
    """Eight means: the smallest model there is, so the largest share for the prior."""
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    error = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    with pm.Model() as model:
        mean, tau = pm.Normal("mean", 0, 5), pm.HalfCauchy("tau", 5)
        pm.Normal("y", mean + tau * pm.Normal("z", shape=8), error, observed=y)
    return model


def radon() -> pm.Model:
    """Made-up measurements in 919 houses of 85 counties, as large as the well-known data."""
    random = np.random.default_rng(0)
    county, floor = random.integers(0, 85, 919), random.integers(0, 2, 919)
    with pm.Model() as model:
        mean, slope = pm.Normal("mean", 0, 5), pm.Normal("slope")
        tau, sigma = pm.HalfNormal("tau"), pm.HalfNormal("sigma")
        effects = tau * pm.Normal("z", shape=85)
        eta = mean + effects[county] + slope * floor
        pm.Normal("y", eta, sigma, observed=random.normal(size=919))
    return model


def counts() -> pm.Model:
    """Made-up counts of 400 in 118 groups."""
    random = np.random.default_rng(0)
    group = random.integers(0, 118, 400)
    with pm.Model() as model:
        mean, tau = pm.Normal("mean"), pm.HalfNormal("tau")
        effects = tau * pm.Normal("z", shape=118)
        pm.Poisson("y", pm.math.exp(mean + effects[group]), observed=random.poisson(2.0, 400))
    return model


def crossed(scales: Callable[[], Any]) -> pm.Model:
    """Made-up counts of 400 in 59 groups of one kind and 59 of another; the scales of both are given."""
    random = np.random.default_rng(0)
    groups = random.integers(0, 59, (2, 400))
    with pm.Model() as model:
        mean, tau = pm.Normal("mean"), scales()
        effects = tau[:, None] * pm.Normal("z", shape=(2, 59))
        eta = mean + effects[0][groups[0]] + effects[1][groups[1]]
        pm.Poisson("y", pm.math.exp(eta), observed=random.poisson(2.0, 400))
    return model


def two_scales() -> dict[str, pm.Model]:
    """The model of two scales as it is, and with one prior for each scale as a batch."""
    single = bridge.prior_of(counts(), "tau", SENTENCE, noise_draws=DRAWS)
    prior = predcp.ComplexityPrior(predcp.HalfCauchy(jnp.array([0.3, 0.6])), single.complexity)
    return {
        "original": crossed(lambda: pm.HalfNormal("tau", shape=2)),
        "bridge": crossed(lambda: bridge.scale("tau", prior)),
    }


def network(scales: Callable[[], Any], hidden: np.ndarray, layers: int) -> pm.Model:
    """A residual network on made-up data with a scale (a variance) for each layer of weights."""
    rows, width = hidden.shape
    with pm.Model() as model:
        tau, state = scales(), hidden
        weights, output = pm.Normal("w", shape=(layers, width, width)), pm.Normal("v", shape=width)
        for layer in range(layers):
            change = pm.math.dot(state, pm.math.sqrt(tau[layer]) * weights[layer])
            state = state + pm.math.maximum(change, 0.0)
        y = np.random.default_rng(1).normal(size=rows)
        pm.Normal("y", pm.math.dot(state, output), 1.0, observed=y)
    return model


def depth() -> dict[str, Any]:
    """A network of three layers as it is, and with ordered scales, which have no table; and their prior."""
    random, layers, width = np.random.default_rng(0), 3, 16
    hidden = np.maximum(random.normal(size=(100, width)), 0.0)
    noise = random.normal(size=(DRAWS, layers, width, width))
    complexity = predcp.DepthComplexity(hidden, noise, random.normal(size=(width, 1)))
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity)
    return {
        "original": network(lambda: pm.HalfNormal("tau", shape=layers), hidden, layers),
        "bridge": network(lambda: bridge.scale("tau", prior), hidden, layers),
        "prior in JAX": prior,
    }


def another_pi() -> dict[str, Any]:
    """The counts with a pi that is not ours, which has no table; and the prior."""
    prior = bridge.prior_of(counts(), "tau", dist.LogNormal(), noise_draws=DRAWS)
    better = bridge.with_complexity(counts(), {"tau": dist.LogNormal()}, noise_draws=DRAWS)
    return {"original": counts(), "bridge": better, "prior in JAX": prior}


def one_scale(model: pm.Model) -> dict[str, pm.Model]:
    """A model as it is, and with the sentence for its scale."""
    better = bridge.with_complexity(model, {"tau": SENTENCE}, noise_draws=DRAWS)
    return {"original": model, "bridge": better}


def gradient_of(model: pm.Model | predcp.ComplexityPrior) -> Callable[[], Any]:
    """A call of the compiled log density and gradient at the initial point of a model, or at a median."""
    if isinstance(model, predcp.ComplexityPrior):
        log_prior = model.log_scale()
        compiled = jax.jit(jax.value_and_grad(lambda each: jnp.sum(log_prior.log_prob(each))))
        median = log_prior.icdf(jnp.full(log_prior.shape(), 0.5))
        return lambda: jax.block_until_ready(compiled(median))
    function = model.logp_dlogp_function(ravel_inputs=True)
    function.set_extra_values({})
    start = pm.blocking.DictToArrayBijection.map(
        {value.name: model.initial_point()[value.name] for value in model.value_vars}
    )
    values, gradient = function(start.data)
    assert np.all(np.isfinite(gradient)) and np.isfinite(values)
    return lambda: function(start.data)


def in_turn(calls: dict[str, Callable[[], Any]], repeats: int, count: int) -> dict[str, float]:
    """The median processor time of one call, by name."""

    def one(call: Callable[[], Any], count: int) -> float:
        start = time.process_time()
        for _ in range(count):
            call()
        return (time.process_time() - start) / count

    # The first call compiles; slow calls are few.
    counts = {
        name: max(5, min(count, int(0.05 / min(one(call, 1), one(call, 5)))))
        for name, call in calls.items()
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(one(call, counts[name]))
    return {name: float(np.median(each)) for name, each in times.items()}


def measure(models: dict[str, Any], repeats: int, count: int) -> dict[str, Any]:
    """Microseconds of the gradients; the ratio of the second to the first."""
    times = in_turn({name: gradient_of(each) for name, each in models.items()}, repeats, count)
    return {
        "microseconds": {name: round(1e6 * each, 2) for name, each in times.items()},
        "ratio": round(ratio := times["bridge"] / times["original"], 3),
        "within_bar": ratio <= BAR,
    }


MODELS: dict[str, Callable[[], dict[str, Any]]] = {
    "schools": lambda: one_scale(schools()),
    "radon": lambda: one_scale(radon()),
    "counts": lambda: one_scale(counts()),
    "two scales": two_scales,
    "another pi": another_pi,
    "depth": depth,
}


def main() -> None:
    """Measure models, and store each row with its conditions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--repeats", type=int, default=41)
    parser.add_argument("--count", type=int, default=500, help="most calls in one turn")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    version = f"pymc {metadata.version('pymc')}"
    for name in options.models:
        row = measure(MODELS[name](), options.repeats, options.count)
        row["environment"] = conditions() | {"pytensor": metadata.version("pytensor")}
        print(name, row, flush=True)
        stored = json.loads(options.output.read_text()) if options.output.is_file() else {}
        stored |= {"draws": DRAWS, "bar_ratio": BAR}
        stored.setdefault(version, {})[name] = row
        options.output.write_text(json.dumps(stored, indent=2) + "\n")


if __name__ == "__main__":
    main()
