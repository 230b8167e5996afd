"""What the core costs: `python -m benchmarks.core` writes results/core.json.

Every figure is a ratio within one run, or a time with a bar of its own; machines are noisy.
"""

import argparse
import json
import math
import statistics
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
import numpyro.distributions as dist
from jax import lax

import predcp
from predcp._support.environment import environment

OUTPUT = Path(__file__).parent / "results" / "core.json"


def seconds(function: Callable[[], Any], repeats: int) -> float:
    """Median time of a call, the first (which compiles) left out."""
    jax.block_until_ready(function())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(function())
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def alternating(
    functions: dict[str, Callable[[], Any]], repeats: int, turn: float = 0.0
) -> dict[str, float]:
    """Median times of calls made in turns of at least so many seconds: the machine's moods are shared.

    A turn of one call after a much longer program finds that one's data in the caches; a sampler
    calls the same program again and again.
    """
    for function in functions.values():
        jax.block_until_ready(function())
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            began = start = time.perf_counter()
            while True:
                jax.block_until_ready(function())
                now = time.perf_counter()
                times[name].append(now - start)
                start = now
                if now - began >= turn:
                    break
    return {name: statistics.median(values) for name, values in times.items()}


def million_draws() -> dict[str, Any]:
    """10^6 draws of a linear-regression ECP (bar: under 2 seconds on two cores)."""
    design = np.random.default_rng(0).normal(size=(50, 20))
    results = {}
    for name, pi in {
        "log-cauchy": predcp.LogCauchy(scale=1.0),
        "gamma-exponential": predcp.GammaExponential(),
    }.items():
        prior = predcp.ComplexityPrior(pi, predcp.LinearEvidence(design))
        results[name] = round(seconds(lambda p=prior: p.sample(jax.random.key(0), (10**6,)), 3), 3)
    return {"design": [50, 20], "seconds": results, "bar": 2.0}


def linear_predictor() -> dict[str, Any]:
    """Gradient of a 10-draw PredCP on a 44 x 2000 logistic design, against the likelihood's."""
    random = np.random.default_rng(0)
    results = {}
    for dtype in ("float32", "float64"):
        x = jnp.asarray(random.normal(size=(44, 2000)), dtype)
        y = jnp.asarray(random.integers(0, 2, size=44), dtype)
        local = jnp.asarray(np.abs(random.standard_cauchy(size=2000)), dtype)
        xi = jnp.asarray(random.normal(size=2000), dtype)
        noise = jnp.asarray(random.normal(size=(10, 2000)), dtype)
        pi = predcp.LogCauchy(scale=jnp.asarray(1.0, dtype), loc=jnp.asarray(0.0, dtype))

        def likelihood(state, x=x, y=y):
            log_tau, scales, effects = state
            logits = x @ (jnp.exp(log_tau) * scales * effects)
            return jnp.sum(y * logits - jax.nn.softplus(logits))

        def prior(state, x=x, noise=noise, pi=pi, homogeneous=None):
            log_tau, scales, _ = state
            complexity = predcp.PredictiveComplexity(
                lambda beta, x: dist.Bernoulli(logits=x @ beta),
                lambda tau, unit: tau * scales * unit,
                jnp.zeros(2000, x.dtype),
                x,
                noise,
                homogeneous=homogeneous,
            )
            return predcp.ComplexityPrior(pi, complexity).log_scale().log_prob(log_tau)

        state = (jnp.asarray(-3.0, dtype), local, xi)
        programs = {
            "likelihood": jax.jit(jax.grad(likelihood)),
            "linear path": jax.jit(jax.grad(prior)),
            "general path": jax.jit(
                jax.grad(lambda state, prior=prior: prior(state, homogeneous=False))
            ),
        }
        calls = {name: partial(program, state) for name, program in programs.items()}
        times = alternating(calls, 200)
        results[dtype] = {
            "microseconds": {name: round(1e6 * t, 1) for name, t in times.items()},
            "ratio_linear": round(times["linear path"] / times["likelihood"], 2),
            "ratio_general": round(times["general path"] / times["likelihood"], 2),
        }
    return {"design": [44, 2000], "draws": 10, **results, "bar_ratio_linear": 6.0}


def network(layers: int, draws: int = 5, points: int = 32, width: int = 32):
    """A residual network for the depth benchmarks, float32, small enough steps to stay finite."""
    random = np.random.default_rng(layers)
    weights = random.normal(size=(draws, layers, width, width)) / math.sqrt(width)
    hidden = np.abs(random.normal(size=(points, width)))
    output = random.normal(size=(width, 1))
    return tuple(jnp.asarray(array, jnp.float32) for array in (hidden, weights, output))


def log_cauchy(log_kappa):
    """The log density of a standard log-Cauchy's logarithm."""
    return -jnp.log1p(log_kappa**2) - jnp.log(jnp.pi)


def one_pass_a_layer(tau, hidden, weights, output):
    """Algorithm 2 of the paper without a cache: a forward pass of l layers for every layer l."""
    layers = weights.shape[1]

    def forward(scales, depth):
        def step(state, layer):
            scale, matrix = layer
            return state + jax.nn.relu(jnp.sqrt(scale) * state @ matrix), None

        start = jnp.broadcast_to(hidden, (weights.shape[0], *hidden.shape))
        stacked = jnp.moveaxis(weights[:, :depth], 1, 0)
        state, _ = lax.scan(step, start, (scales[:depth], stacked))
        return state @ output

    total = 0.0
    for layer in range(layers):

        def kappa(scale, layer=layer):
            scales = tau.at[layer].set(scale)
            gap = forward(scales, layer + 1) - forward(scales, layer)
            return jnp.mean(jnp.sum(gap**2, -1)) / 2

        value, slope = jax.jvp(kappa, (tau[layer],), (jnp.ones_like(tau[layer]),))
        total += log_cauchy(jnp.log(value)) - jnp.log(value) + jnp.log(jnp.abs(slope))
    return total


def depth(naive_layers: int) -> dict[str, Any]:
    """Value and gradient of the depth-wise prior: linear in depth, and against one pass per layer."""

    def ours(layers: int) -> Callable[[], Any]:
        arrays = network(layers)
        complexity = predcp.DepthComplexity(*arrays)
        pi = predcp.LogCauchy(scale=jnp.float32(1.0), loc=jnp.float32(0.0))
        prior = predcp.ComplexityPrior(pi, complexity)
        program = jax.jit(jax.value_and_grad(lambda tau, p: p.log_prob(tau)))
        tau = jnp.full(layers, 0.01, jnp.float32)
        return lambda: program(tau, prior)

    times = alternating({str(layers): ours(layers) for layers in (25, 50, 100)}, 40)
    arrays = network(naive_layers)
    tau = jnp.full(naive_layers, 0.01, jnp.float32)
    naive = jax.jit(jax.value_and_grad(lambda tau: one_pass_a_layer(tau, *arrays)))
    pair = alternating({"ours": ours(naive_layers), "naive": lambda: naive(tau)}, 5, turn=1.0)
    mine, theirs = ours(naive_layers)(), naive(tau)
    np.testing.assert_allclose(mine[0], theirs[0], rtol=2e-3)
    return {
        "size": {"draws": 5, "points": 32, "width": 32},
        "milliseconds": {name: round(1e3 * t, 3) for name, t in times.items()},
        "ratio_100_to_25": round(times["100"] / times["25"], 2),
        "bar_ratio_100_to_25": 4.4,
        "naive_layers": naive_layers,
        "naive_milliseconds": round(1e3 * pair["naive"], 1),
        "times_faster": round(pair["naive"] / pair["ours"], 1),
        "bar_times_faster": 100.0,
    }


def import_time(repeats: int = 7) -> dict[str, Any]:
    """`import predcp` and all its public names, against `import numpyro`, in fresh processes."""

    def run(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    codes = {
        "numpyro": "import numpyro, numpyro.distributions",
        "predcp": "import predcp",
        # Rooms such as predcp.linear are imported by those who use them.
        "every name": "import predcp; [getattr(predcp, n) for n in predcp.__all__ "
        "if n not in ('linear', 'resnet')]",
    }
    times = {
        name: statistics.median(values)
        for name, values in zip(
            codes, zip(*[[run(code) for code in codes.values()] for _ in range(repeats)])
        )
    }
    return {
        "seconds": {name: round(t, 3) for name, t in times.items()},
        "ratio": round(times["predcp"] / times["numpyro"], 2),
        "ratio_every_name": round(times["every name"] / times["numpyro"], 2),
        "bar_ratio": 1.3,
    }


def inversions() -> dict[str, Any]:
    """Evaluations an inversion takes, quantiles .001 to .999 (bar: 12)."""
    design = jnp.asarray(np.random.default_rng(0).normal(size=(30, 5)))
    noise = predcp.normal_noise(jax.random.key(0), 10, (5,), dtype=design.dtype)
    coin = predcp.PredictiveComplexity(
        lambda beta, x: dist.Bernoulli(logits=x @ beta),
        lambda tau, xi: tau * xi,
        jnp.zeros(5, design.dtype),
        design,
        noise,
    )
    from tests.evaluations import evaluations

    q = jnp.linspace(0.001, 0.999, 499)
    results = {}
    for name, complexity in {
        "linear": predcp.LinearEvidence(design),
        "logistic": predcp.LogisticEvidence(design),
        "coin": coin,
    }.items():
        log_tau = (
            predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity).log_scale().icdf(q)
        )
        counts = evaluations(complexity, complexity.log_value_and_slope(log_tau)[0])
        results[name] = {"mean": round(float(counts.mean()), 2), "most": int(counts.max())}
    return {**results, "bar_most": 12}


def main() -> None:
    """Measure everything and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--naive-layers", type=int, default=100)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    steps: dict[str, Callable[[], dict[str, Any]]] = {
        "import": import_time,
        "inversions": inversions,
        "million_draws": million_draws,
        "linear_predictor": linear_predictor,
        "depth": lambda: depth(options.naive_layers),
    }
    results: dict[str, Any] = {"environment": environment()}
    for name, step in steps.items():
        print(f"{name} ...", flush=True)
        results[name] = step()
        print(json.dumps(results[name], indent=2), flush=True)
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {OUTPUT}")


if __name__ == "__main__":
    main()
