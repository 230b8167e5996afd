"""Speed of few-shot training: `python -m benchmarks.fewshot` writes results/fewshot.json.

Milliseconds an iteration of MAML, sigma-MAML and the PredCP on the shapes of FC100, 5-way 1-shot,
beside ordinary second-order MAML in PyTorch (a loop over tasks, and `torch.func` with vmap), with the
same network, batch and device, in one run. The images are made up: their content costs nothing.
`--small` tries it on a CPU in a minute.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from predcp._support.environment import environment
from predcp.fewshot import ConvNet, Pool, Run, Settings, Trainer, as_module_prior

OUTPUT = Path(__file__).parent / "results" / "fewshot.json"
GOALS = {
    "predcp_milliseconds": 3.3,
    "predcp_over_flat": 1.2,
    "over_torch_loop": 25.0,
    "over_torch_vmap": 15.0,
}
SINGLE = ("maml", "flat", "predcp-exponential-1e-4")
# What a table trains in one program: four priors, three seeds.
TABLE = [
    (prior, seed)
    for prior in ("maml", "flat", "shrinkage-log-cauchy-1e-1", "predcp-exponential-1e-4")
    for seed in range(3)
]


def made_up(classes: int, each: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Random images in classes."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (classes * each, size, size, 3), dtype=np.uint8)
    return images, np.repeat(np.arange(classes), each)


def measure_ours(
    network: ConvNet,
    settings: Settings,
    runs: Sequence[tuple[str, int]],
    pool: Pool,
    iterations: int,
    repeats: int,
) -> dict[str, Any]:
    """Milliseconds an iteration of all runs together, and what compiling took."""
    trainer = Trainer(
        network, settings, [Run(as_module_prior(prior), seed) for prior, seed in runs], pool
    )
    state = trainer.start()
    began = time.perf_counter()
    state, _ = jax.block_until_ready(trainer.advance(state, iterations))
    compiled = time.perf_counter() - began
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        state, _ = jax.block_until_ready(trainer.advance(state, iterations))
        times.append(1e3 * (time.perf_counter() - began) / iterations)
    finite = bool(np.isfinite(np.asarray(state.meta.log_sigma)).all())
    best = min(times)
    return {
        "runs": len(runs),
        "precision": network.precision,
        "unroll": settings.unroll,
        "milliseconds": best,
        "milliseconds_all": times,
        "milliseconds_a_run": best / len(runs),
        "tasks_a_second": 1e3 * len(runs) * settings.meta_batch / best,
        "first_call_seconds": compiled,
        "finite": finite,
    }


def _gap(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    return ours["tasks_a_second"] / theirs["tasks_a_second"]


def figures(parts: dict[str, Any]) -> dict[str, float]:
    """The figures that have goals, as far as their parts are there."""
    found: dict[str, float] = {}
    predcp, flat = parts.get("predcp"), parts.get("flat")
    if predcp:
        found["predcp_milliseconds"] = predcp["milliseconds"]
    if predcp and flat:
        found["predcp_over_flat"] = predcp["milliseconds"] / flat["milliseconds"]
    for name in ("loop", "vmap"):
        theirs = parts.get(f"torch_{name}", {})
        if "maml" in parts and "tasks_a_second" in theirs:
            # Of the same algorithm: MAML alone in its program against MAML.
            found[f"over_torch_{name}"] = _gap(parts["maml"], theirs)
            if "table" in parts:
                found[f"table_over_torch_{name}"] = _gap(parts["table"], theirs)
    return found


def met(found: dict[str, float]) -> dict[str, bool]:
    """Which goals are met, of those measured."""
    lower = ("predcp_milliseconds", "predcp_over_flat")
    return {
        name: found[name] <= goal if name in lower else found[name] >= goal
        for name, goal in GOALS.items()
        if name in found
    }


def main() -> None:
    """Measure and write the figures with their circumstances, after every part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="tiny shapes, for a CPU")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--torch-iterations", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--shots", type=int, default=1)
    parser.add_argument("--stride", type=int, default=2)
    parser.add_argument("--parts", nargs="+", help="maml flat predcp table table_bfloat16 ...")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    settings = Settings(shots=arguments.shots)
    network = ConvNet(channels=arguments.channels, stride=arguments.stride)
    classes, each = 60, 600
    if arguments.small:
        settings = replace(settings, queries=3, meta_batch=2, inner_steps=2)
        network = replace(network, channels=4, blocks=2)
        arguments.size, arguments.iterations, arguments.torch_iterations = 8, 5, 2
        classes, each = 10, 20
    images, labels = made_up(classes, each, arguments.size)
    pool = Pool.of(images, labels)

    def ours(network: ConvNet, settings: Settings, runs: Any) -> Callable[[], dict[str, Any]]:
        return lambda: measure_ours(
            network, settings, runs, pool, arguments.iterations, arguments.repeats
        )

    def theirs(kind: str) -> Callable[[], dict[str, Any]]:
        def measure() -> dict[str, Any]:
            from benchmarks.fewshot_torch import measure_torch

            return measure_torch(
                kind, network, settings, images, labels, arguments.torch_iterations
            )

        return measure

    half = replace(network, precision="bfloat16")
    exact = replace(network, precision="highest")
    rolled = replace(settings, unroll=False)
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "maml": ours(network, settings, [(SINGLE[0], 0)]),
        "flat": ours(network, settings, [(SINGLE[1], 0)]),
        "predcp": ours(network, settings, [(SINGLE[2], 0)]),
        "torch_loop": theirs("loop"),
        "torch_vmap": theirs("vmap"),
        "table": ours(network, settings, TABLE),
        "table_bfloat16": ours(half, settings, TABLE),
        "predcp_rolled": ours(network, rolled, [(SINGLE[2], 0)]),
        "predcp_bfloat16": ours(half, settings, [(SINGLE[2], 0)]),
        "predcp_highest": ours(exact, settings, [(SINGLE[2], 0)]),
    }
    chosen = arguments.parts or list(parts)
    unknown = [name for name in chosen if name not in parts]
    if unknown:
        parser.error(f"--parts {unknown}: there are {', '.join(parts)}")
    measured: dict[str, Any] = {}
    for name in chosen:
        try:
            measured[name] = parts[name]()
        except ImportError as error:
            measured[name] = {"left_out": str(error)}
        print(name, json.dumps(measured[name]), flush=True)
        found = figures(measured)
        result = {
            "goals": GOALS,
            "figures": {key: round(value, 4) for key, value in found.items()},
            "met": met(found),
            "parts": measured,
            "settings": {
                "network": network.to_config(),
                "training": settings.to_config(),
                "size": arguments.size,
                "iterations": arguments.iterations,
            },
            "environment": environment(),
        }
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
