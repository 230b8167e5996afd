"""What the joint predictive divergence costs and changes: `python -m benchmarks.joint`.

Cost: value and elasticity at one scale against the point-wise map with the same draws, 500 rows and 32
draws, for counts (forward passes at every scale in both). The bar is a factor of 3. Change: the joint
divergence as a fraction of N times the point-wise one, for a linear model, a spline, a Gaussian process and
a residual network. Writes results/joint.json and the picture of the page "Which composition".
"""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist

import predcp
from benchmarks.conditions import conditions
from benchmarks.core import alternating

OUTPUT = Path(__file__).parent / "results" / "joint.json"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "joint_divergence.png"
BAR = 3.0
ROWS, DRAWS = 500, 32


def root(tau, xi):
    return jnp.sqrt(tau) * xi


def counts(beta, x):
    return dist.Poisson(jnp.exp(0.3 + x @ beta))


def shrunk(tau, xi):
    """No power of tau: both maps make forward passes at every scale."""
    return jnp.sqrt(tau / (1.0 + 0.1 * tau)) * xi


def costs(repeats: int = 5) -> dict[str, Any]:
    x = jnp.asarray(np.random.default_rng(0).normal(size=(ROWS, 10))) / 4.0
    noise = predcp.normal_noise(jax.random.key(0), DRAWS, (10,), method="antithetic")
    arguments = (counts, shrunk, jnp.zeros(10), x, noise)
    maps = {
        "point-wise": predcp.PredictiveComplexity(*arguments),
        "joint": predcp.JointComplexity(*arguments),
    }
    program = jax.jit(lambda complexity, u: complexity.log_value_and_elasticity(u))
    calls = {
        name: lambda each=each: program(each, jnp.asarray(-1.0)) for name, each in maps.items()
    }
    times = alternating(calls, repeats, turn=0.05)
    return {
        "microseconds": {name: round(1e6 * each, 1) for name, each in times.items()},
        "ratio": round(times["joint"] / times["point-wise"], 2),
        "bar": BAR,
    }


def normal(features, width):
    """A normal model that is linear in `width` standardised weights."""
    return lambda beta, x: dist.Normal(features @ beta, 0.5), jnp.zeros(width), (width,)


def designs(rows: int = 60) -> dict[str, Any]:
    random = np.random.default_rng(1)
    place = np.linspace(-1.0, 1.0, rows)
    knots = np.linspace(-0.9, 0.9, 12)
    spline = np.maximum(place[:, None] - knots, 0.0)
    kernel = np.exp(-0.5 * ((place[:, None] - place) / 0.3) ** 2)
    values, vectors = np.linalg.eigh(kernel)
    process = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, -20:]
    linear = random.normal(size=(rows, 5)) / np.sqrt(5.0)
    found = {
        "linear model, 5 columns": normal(jnp.asarray(linear), 5),
        "spline, 12 knots": normal(jnp.asarray(spline), 12),
        "Gaussian process": normal(jnp.asarray(process), 20),
    }
    x = jnp.asarray(random.normal(size=(rows, 4)))
    body, head = jnp.asarray(random.normal(size=(4, 8))), jnp.asarray(random.normal(size=8)) / 8.0

    def network(weights, inputs):
        hidden = jax.nn.relu(x @ body)
        return dist.Normal((hidden + jax.nn.relu(hidden @ weights)) @ head, 0.5)

    found["residual network, one layer"] = (network, jnp.zeros((8, 8)), (8, 8))
    return found


def changes() -> dict[str, Any]:
    """Joint divergence over N times the point-wise one, against the point-wise one per row."""
    log_tau = jnp.linspace(-14.0, 6.0, 60)
    curves = {}
    for name, (likelihood, reference, shape) in designs().items():
        if len(shape) == 1:
            # Points with the moments of the noise: the point-wise divergence is exact too.
            points = np.sqrt(shape[0]) * np.eye(shape[0])
            noise = jnp.asarray(np.concatenate([points, -points]))
        else:
            noise = predcp.normal_noise(jax.random.key(1), 64, shape, method="antithetic")
        arguments = (likelihood, root, reference, None, noise)
        each = predcp.PredictiveComplexity(*arguments)(jnp.exp(log_tau))
        whole = predcp.JointComplexity(*arguments)(jnp.exp(log_tau))
        curves[name] = {
            "point_wise": [round(float(v), 6) for v in each],
            "fraction": [round(float(v), 4) for v in whole / (60.0 * each)],
        }
    return curves


def draw(curves: dict[str, Any]) -> None:
    figure, axes = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
    for name, curve in curves.items():
        axes.plot(curve["point_wise"], curve["fraction"], label=name)
    axes.set(xscale="log", xlim=(1e-4, 10.0), ylim=(0.0, 1.0))
    axes.set(xlabel="point-wise kappa, nats per row", ylabel="joint over N point-wise")
    axes.legend(frameon=False)
    figure.savefig(PICTURE, dpi=120)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    results = {"cost": costs(), "change": changes(), "environment": conditions()}
    OUTPUT.write_text(json.dumps(results, indent=1) + "\n")
    draw(results["change"])
    print(json.dumps(results["cost"], indent=1))
    for name, curve in results["change"].items():
        at = int(np.argmin(np.abs(np.log(np.asarray(curve["point_wise"]) / 0.1))))
        print(name, curve["point_wise"][at], curve["fraction"][at], curve["fraction"][0])
