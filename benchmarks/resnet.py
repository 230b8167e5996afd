"""What residual networks cost: `python -m benchmarks.resnet` writes results/resnet.json.

Every figure is a ratio within one run, or a time with a bar of its own; machines are noisy.
`--table` measures a step of all 160 fits of every data set of Table 2 instead: for a GPU.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from predcp._support.environment import environment
from predcp.experiments import Silent, Store, run
from predcp.paper import EXPERIMENTS
from predcp.resnet import Model, Network, Objective, as_layer_prior
from predcp.resnet._rows import ROWS
from predcp.resnet._training import Data, Optimiser, programs, seed_words, steps_of

OUTPUT = Path(__file__).parent / "results" / "resnet.json"
GOALS = {
    "predcp_over_inverse_gamma": 1.2,
    "depth_exponent": 1.1,
    "boston_4500_epochs_seconds": 60.0,
}
PRIORS = ("fixed-0.1", "fixed-1", "inverse-gamma", "predcp")
# Training rows and columns of the data sets of Table 2.
SHAPES = {
    "boston": (455, 13),
    "concrete": (927, 8),
    "energy": (691, 8),
    "kin8nm": (7373, 8),
    "power": (8611, 4),
    "wine": (1439, 11),
    "yacht": (277, 6),
}
_BATCH, _EPOCHS = 32, 4500


def rows(count: int, columns: int, seed: int = 0) -> Data:
    """Numbers of the given shape; their values do not matter to the time."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((count, columns)).astype(np.float32)
    return Data(jnp.asarray(x), jnp.asarray(np.sin(x[:, 0])))


def trainer(
    prior: str, shape: tuple[int, int], layers: int = 1, normalize: Any = None
) -> Callable[[int], Any]:
    """A function that trains a network on for so many epochs."""
    network = Network(shape[1], 50, layers, normalize=normalize)
    model = Model(network, (as_layer_prior(prior),), ROWS)
    program = programs(model, Optimiser(), _BATCH, many=False)
    data = rows(*shape)
    held = [program.start(seed_words(0), jnp.zeros((), jnp.float32))]
    objective = Objective(0, 1.0 / shape[0])

    def train(epochs: int) -> Any:
        held[0] = program.advance(held[0], data, objective, epochs)
        return jax.block_until_ready(held[0].epoch)

    return train


def alternating(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Times of several calls made in turns, so that they share the machine's moods."""
    for function in functions.values():
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            started = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - started)
    return times


def step_ratio(repeats: int) -> dict[str, Any]:
    """A PredCP step over an inverse-gamma step, in Table 2's network and in a deeper one."""
    found: dict[str, Any] = {}
    for layers in (1, 5):
        trainers = {
            name: trainer(name, SHAPES["boston"], layers, "layer" if layers > 1 else None)
            for name in ("predcp", "inverse-gamma")
        }
        epochs = 20 if layers == 1 else 5
        times = alternating({n: partial(t, epochs) for n, t in trainers.items()}, repeats)
        ratios = [a / b for a, b in zip(times["predcp"], times["inverse-gamma"])]
        steps = epochs * steps_of(SHAPES["boston"][0], _BATCH)[1]
        found[f"{layers} hidden layers above the first"] = {
            "ratio": round(statistics.median(ratios), 3),
            "microseconds_a_step": {
                name: round(1e6 * statistics.median(values) / steps, 1)
                for name, values in times.items()
            },
        }
    return found


def depth_growth(depths: tuple[int, ...], repeats: int) -> dict[str, Any]:
    """Time of a step against depth; exponent 1 is linear."""
    trainers = {layers: trainer("predcp", (64, 8), layers, "layer") for layers in depths}
    times = alternating({str(n): partial(t, 5) for n, t in trainers.items()}, repeats)
    steps = 5 * steps_of(64, _BATCH)[1]
    each = {name: min(values) / steps for name, values in times.items()}
    exponent = np.polyfit(np.log(depths), np.log(list(each.values())), 1)[0]
    return {
        "milliseconds_a_step": {name: round(1e3 * value, 3) for name, value in each.items()},
        "exponent": round(float(exponent), 3),
    }


def boston(epochs: int) -> dict[str, Any]:
    """One split of boston under the PredCP, compiling included."""
    started = time.perf_counter()
    train = trainer("predcp", SHAPES["boston"])
    train(1)
    compiled = time.perf_counter() - started
    train(epochs - 1)
    total = time.perf_counter() - started
    return {
        "epochs": epochs,
        "seconds": round(total, 1),
        "of_which_compiling": round(compiled, 1),
    }


def boston_cell() -> dict[str, Any] | None:
    """The same split as a cell of Table 2 by the engine `pool`, which keeps a fit to one core.

    The whole command: start of Python, data, compiling, 4500 epochs, predictions. None without data.
    """
    cell = next(
        cell
        for cell in EXPERIMENTS["table2"]()
        if (cell.data, cell.prior, cell.inference, cell.split) == ("boston", "predcp", "vi", 0)
    )
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        tally = run("table2", [cell], folder, engine="pool", progress=Silent())
        seconds = time.perf_counter() - started
        if tally.failed:
            return None
        (record,) = Store(Path(folder), "table2").records().finished
        training = record.convergence["training_seconds"]
    return {"seconds": round(seconds, 1), "of_which_training": round(float(training or 0.0), 1)}


def table(epochs: int, fits: int) -> dict[str, Any]:
    """A step of all fits of a data set in one program, and what the whole table would take."""
    found, whole = {}, 0.0
    for name, (count, columns) in SHAPES.items():
        model = Model(
            Network(columns, 50, 1), tuple(map(as_layer_prior, PRIORS)), ROWS, quirks=True
        )
        program = programs(model, Optimiser(), _BATCH, many=True)
        data = jax.tree.map(lambda leaf: jnp.stack([leaf] * fits), rows(count, columns))
        halves = jnp.asarray(np.arange(fits) % 2, jnp.float32)
        objective = Objective(
            jnp.asarray(np.arange(fits) % len(PRIORS), jnp.int32),
            jnp.full(fits, 1.0 / count, jnp.float32),
            *[halves] * 3,
            jnp.zeros(fits, jnp.float32),
        )
        started = time.perf_counter()
        seeds = jnp.stack([seed_words(0, n) for n in range(fits)])
        state = program.start(seeds, jnp.zeros(fits, jnp.float32))
        state = program.advance(state, data, objective, 1)
        jax.block_until_ready(state.epoch)
        compiling = time.perf_counter() - started
        steps = steps_of(count, _BATCH)[1]
        # The same number of steps for every set.
        here = max(1, epochs * 14 // steps)
        started = time.perf_counter()
        state = program.advance(state, data, objective, here)
        jax.block_until_ready(state.epoch)
        step = (time.perf_counter() - started) / (here * steps)
        seconds = step * steps * _EPOCHS
        whole += seconds + compiling
        found[name] = {
            "microseconds_a_step": round(1e6 * step, 1),
            "table_seconds": round(seconds, 1),
            "compiling_seconds": round(compiling, 1),
        }
        print(name, json.dumps(found[name]), flush=True)
    return {"fits": fits, "data": found, "whole_table_minutes": round(whole / 60.0, 2)}


def main() -> None:
    """Measure and write the figures with their circumstances."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--epochs", type=int, default=_EPOCHS, help="of the boston split")
    parser.add_argument("--table", action="store_true", help="a step of every data set instead")
    parser.add_argument("--fits", type=int, default=160)
    parser.add_argument("--step", action="store_true", help="only a PredCP step over another's")
    parser.add_argument("--output", type=Path, default=None)
    arguments = parser.parse_args()
    if arguments.table:
        result: dict[str, Any] = {"table": table(20, arguments.fits)}
        output = arguments.output or OUTPUT.with_name("resnet-table.json")
    elif arguments.step:
        ratios = step_ratio(arguments.repeats)
        goal = GOALS["predcp_over_inverse_gamma"]
        met = {name: each["ratio"] <= goal for name, each in ratios.items()}
        result = {"goal": goal, "met": met, "step": ratios}
        output = arguments.output or OUTPUT.with_name("resnet-step.json")
    else:
        # First, while its program is not compiled yet.
        split = boston(arguments.epochs)
        print(json.dumps(split), flush=True)
        by_pool = boston_cell()
        print(json.dumps(by_pool), flush=True)
        ratios = step_ratio(arguments.repeats)
        print(json.dumps(ratios), flush=True)
        growth = depth_growth((10, 25, 50, 100), max(3, arguments.repeats // 3))
        print(json.dumps(growth), flush=True)
        figures: dict[str, Any] = {
            "predcp_over_inverse_gamma": ratios["1 hidden layers above the first"]["ratio"],
            "depth_exponent": growth["exponent"],
            "boston_4500_epochs_seconds": None if by_pool is None else by_pool["seconds"],
        }
        result = {
            "goals": GOALS,
            "figures": figures,
            "met": {
                name: None if figures[name] is None else figures[name] <= goal
                for name, goal in GOALS.items()
            },
            "step": ratios,
            "depth": growth,
            "boston_in_this_process": split,
            "boston_by_the_pool": by_pool,
        }
        output = arguments.output or OUTPUT
    result |= {"environment": environment()}
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(f"wrote {output}")


if __name__ == "__main__":
    main()
