"""The posteriors of three models in NumPyro, PyMC and Stan: `python -m benchmarks.posteriors`.

Samples each model with the engines that are installed here and keeps quantiles of every parameter with
their Monte Carlo errors in results/posteriors.json; engines may be run in environments of their own,
one after the other. Then engines are compared two by two: NumPyro, PyMC and Stan with each other,
PyMC's other samplers with NumPyro. A pair agrees if its largest difference is one that equal posteriors
exceed as rarely as one quantity differs by 3 errors; how many are beyond 3 is stored beside it.
"""

import argparse
import itertools
import json
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tests.exports.posteriors import (
    ACCEPT,
    CHAINS,
    DRAWS,
    EXAMPLES,
    PARAMETERS,
    QUANTILES,
    WARMUP,
    farthest_of,
    in_numpyro,
    in_pymc,
    in_stan,
    quantiles,
)

from benchmarks.conditions import conditions

OUTPUT = Path(__file__).parent / "results" / "posteriors.json"
# The packages that an engine needs (a folder here is called stan, too), and what draws with it.
ENGINES = {
    "numpyro": (("numpyro",), in_numpyro),
    "pymc": (("pymc",), in_pymc),
    "stan": (("httpstan",), lambda example, draws: in_stan(example, draws=draws)[0]),
    "pymc with nutpie": (("pymc", "nutpie"), partial(in_pymc, sampler="nutpie")),
    "pymc with numpyro": (("pymc",), partial(in_pymc, sampler="numpyro")),
    "pymc with blackjax": (("pymc", "blackjax"), partial(in_pymc, sampler="blackjax")),
}
PAIRS = [
    pair
    for pair in itertools.combinations(ENGINES, 2)
    if "numpyro" in pair or pair == ("pymc", "stan")
]
PACKAGES = {"httpstan": "pystan"}
BAR = 3.0


def measure(engine: str, name: str, draws: int) -> dict[str, Any]:
    """Quantiles and errors of one model in one engine."""
    needed, draw = ENGINES[engine]
    found, errors = quantiles(draw(EXAMPLES[name], draws=draws))
    versions = {each: metadata.version(PACKAGES.get(each, each)) for each in needed}
    return {
        "quantiles": found.tolist(),
        "errors": errors.tolist(),
        "environment": conditions() | {"engine": versions},
    }


def compared(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Differences of two engines over all models, in Monte Carlo errors."""
    result = {}
    for pair in PAIRS:
        both = {name: row for name, row in rows.items() if set(pair) <= set(row)}
        each = {name: _apart(*(row[engine] for engine in pair)) for name, row in both.items()}
        if each:
            apart = np.stack([*each.values()])
            result[" and ".join(pair)] = {
                "models": [*each],
                "quantities": int(apart.size),
                "largest": round(float(apart.max()), 2),
                "bar_for_largest": round(farthest_of(apart.size), 2),
                "agree": bool(apart.max() < farthest_of(apart.size)),
                "beyond": int(np.sum(apart > BAR)),
                "largest_of_log_tau": round(float(apart[..., 0].max()), 2),
            }
    return result


def _apart(first: dict[str, Any], second: dict[str, Any]) -> np.ndarray:
    error = np.hypot(np.array(first["errors"]), np.array(second["errors"]))
    return np.abs(np.array(first["quantiles"]) - np.array(second["quantiles"])) / error


def main() -> None:
    """Sample what is not stored yet, then compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = [name for name, (needed, _) in ENGINES.items() if all(map(find_spec, needed))]
    parser.add_argument("--engines", nargs="*", choices=list(ENGINES), default=here)
    parser.add_argument("--again", action="store_true", help="measure stored ones, too")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of each of the chains")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    stored = json.loads(options.output.read_text()) if options.output.is_file() else {}
    # Longer chains are stored apart.
    key = "results" if options.draws == DRAWS else f"results of {options.draws} draws"
    rows = stored.get(key, {}).get("models", {})
    for name, engine in itertools.product(EXAMPLES, options.engines):
        row = rows.setdefault(name, {})
        if engine in row and not options.again:
            continue
        row[engine] = measure(engine, name, options.draws)
        stored["settings"] = {
            "chains": CHAINS, "warmup": WARMUP, "draws": DRAWS, "target_accept": ACCEPT,
            "quantiles": QUANTILES, "parameters": PARAMETERS, "bar_in_errors": BAR,
        }  # fmt: skip
        stored[key] = {"compared": compared(rows), "models": rows}
        options.output.write_text(json.dumps(stored) + "\n")
        print(name, engine, json.dumps(stored[key]["compared"]), flush=True)


if __name__ == "__main__":
    main()
