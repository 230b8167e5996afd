"""How long a person waits: `python -m benchmarks.interactive` writes results/interactive.json.

Each call runs in a fresh process, compilation included, on tables of sizes that people have.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import predcp
from predcp._support.environment import environment

OUTPUT = Path(__file__).parent / "results" / "interactive.json"


def scaled(tau, xi):
    """Coefficients of scale tau."""
    return tau * xi


def coin(theta, x):
    """A logistic regression."""
    return dist.Bernoulli(logits=x @ theta)


def student_t(theta, x):
    """A regression with heavy-tailed noise."""
    return dist.StudentT(4.0, x @ theta, 1.0)


def prior_of(likelihood: Any) -> predcp.ComplexityPrior:
    """A prior of 1000 rows and 5 columns."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(1000, 5)))
    noise = predcp.normal_noise(jax.random.key(0), 10, (5,))
    complexity = predcp.PredictiveComplexity(likelihood, scaled, jnp.zeros(5), x, noise)
    return predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity)


def diagnose(likelihood: Any) -> dict[str, Any]:
    """Diagnose that prior."""
    return {"rows": 1000, "verdict": predcp.diagnose(prior_of(likelihood)).verdict}


def marginal(likelihood: Any) -> dict[str, Any]:
    """The density of a coefficient at the 400 points of a plot."""
    points = jnp.linspace(-3.0, 3.0, 400)
    found = predcp.marginal(prior_of(likelihood), points, unit="standard deviation")
    return {"rows": 1000, "highest": round(float(found.max()), 4)}


def tabulated(likelihood: Any) -> dict[str, Any]:
    """The table of its map."""
    table: Any = prior_of(likelihood).tabulated().complexity
    return {"rows": 1000, "pieces": table.pieces}


def quantiles(likelihood: Any) -> dict[str, Any]:
    """Three quantiles."""
    found = prior_of(likelihood).icdf(jnp.asarray([0.05, 0.5, 0.95]))
    return {"rows": 1000, "median": round(float(found[1]), 4)}


def draws(likelihood: Any) -> dict[str, Any]:
    """A thousand draws of the scale."""
    found = prior_of(likelihood).sample(jax.random.key(1), (1000,))
    return {"rows": 1000, "median": round(float(jnp.median(found)), 4)}


def diabetes() -> tuple[Any, np.ndarray, np.ndarray]:
    """Linear regression on 309 rows and 10 columns."""
    from sklearn.datasets import load_diabetes

    from predcp.linear import LinearRegression

    x, y = load_diabetes(return_X_y=True)
    return LinearRegression, x[:309], y[:309]


def breast_cancer() -> tuple[Any, np.ndarray, np.ndarray]:
    """Logistic regression on 398 rows and 30 columns."""
    from sklearn.datasets import load_breast_cancer

    from predcp.linear import LogisticRegression

    x, y = load_breast_cancer(return_X_y=True)
    return LogisticRegression, x[:398], y[:398]


def fit(table: Any, inference: str) -> dict[str, Any]:
    """Fit under the PredCP, two chains of 200 draws after 200 of warm-up for each sampler."""
    from predcp.linear import Gibbs, Nuts

    estimator, x, y = table()
    settings = {"warmup": 200, "draws": 200, "chains": 2}
    samplers = {"gibbs": Gibbs, "nuts": Nuts}
    chosen = samplers[inference](**settings) if inference in samplers else inference
    x = (x - x.mean(0)) / x.std(0)
    estimator(prior="predcp", inference=chosen).fit(x, y)
    return {"rows": len(x), "columns": x.shape[1]}


def laplace_wide() -> dict[str, Any]:
    """Laplace on 82 rows and 5,966 columns."""
    from predcp.linear import LogisticRegression

    random = np.random.default_rng(0)
    x = random.normal(size=(82, 5966))
    y = (x[:, :3].sum(1) + random.normal(size=82) > 0).astype(int)
    LogisticRegression(prior="predcp", inference="laplace").fit(x, y)
    return {"rows": 82, "columns": 5966}


def auto() -> dict[str, Any]:
    """The default inference on 400 rows and 10 columns."""
    from predcp.linear import LogisticRegression

    random = np.random.default_rng(0)
    x = random.normal(size=(400, 10))
    y = (x[:, :2].sum(1) + random.normal(size=400) > 0).astype(int)
    model = LogisticRegression().fit(x, y)
    return {"rows": 400, "columns": 10, "rhat": model.convergence_.rhat, "bar_rhat": 1.01}


CASES: dict[str, tuple[Any, float | None]] = {
    # The call and its bar in seconds, if it has one of its own.
    "diagnose, Bernoulli": (lambda: diagnose(coin), 15.0),
    "diagnose, Student-t": (lambda: diagnose(student_t), 15.0),
    "marginal, Bernoulli": (lambda: marginal(coin), 15.0),
    "marginal, Student-t": (lambda: marginal(student_t), 15.0),
    "quantiles, Bernoulli": (lambda: quantiles(coin), 15.0),
    "quantiles, Student-t": (lambda: quantiles(student_t), 15.0),
    "draws, Bernoulli": (lambda: draws(coin), 15.0),
    "draws, Student-t": (lambda: draws(student_t), 15.0),
    "tabulated, Bernoulli": (lambda: tabulated(coin), 15.0),
    "tabulated, Student-t": (lambda: tabulated(student_t), 15.0),
    "gibbs, 309 x 10": (lambda: fit(diabetes, "gibbs"), None),
    "nuts, 309 x 10": (lambda: fit(diabetes, "nuts"), None),
    "gibbs, 398 x 30": (lambda: fit(breast_cancer, "gibbs"), None),
    "nuts, 398 x 30": (lambda: fit(breast_cancer, "nuts"), None),
    "laplace, 82 x 5966": (laplace_wide, 8.0),
    "auto, 400 x 10": (auto, 20.0),
}
# Gibbs may take so many times as long as NUTS.
BAR_GIBBS = 2.0


def once(name: str) -> None:
    """Run one case in this process and print what it took."""
    jax.config.update("jax_enable_x64", True)
    # Starting JAX itself is not part of a call.
    jnp.zeros(3).block_until_ready()
    start = time.perf_counter()
    found = CASES[name][0]()
    print(json.dumps(found | {"seconds": round(time.perf_counter() - start, 2)}))


def measured(name: str) -> dict[str, Any]:
    """One case in a fresh process."""
    code = f"from benchmarks.interactive import once; once({name!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    bar = CASES[name][1]
    return found if bar is None else found | {"bar_seconds": bar}


def main() -> None:
    """Measure everything and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="measure again the cases whose name has this in it")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    results: dict[str, Any] = {"environment": environment()}
    if options.only is not None and options.output.exists():
        results = json.loads(options.output.read_text())
    for name in CASES:
        if options.only is None or options.only in name:
            print(f"{name} ...", flush=True)
            results[name] = measured(name)
            if options.only is not None:
                # The others were measured at another commit.
                results[name]["environment"] = environment()
            print(json.dumps(results[name]), flush=True)
    for size in ("309 x 10", "398 x 30"):
        if not {f"gibbs, {size}", f"nuts, {size}"} <= results.keys():
            continue
        ratio = results[f"gibbs, {size}"]["seconds"] / results[f"nuts, {size}"]["seconds"]
        results[f"gibbs over nuts, {size}"] = {"ratio": round(ratio, 2), "bar": BAR_GIBBS}
    options.output.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
