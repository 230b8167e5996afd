"""Does a promise about predictions hold at every base rate? `python -m benchmarks.budget` answers.

Counts with two components (groups and a slope) and base rates from 0.01 to 100. The promise is that all
components together move the predictions by more than 0.1 nats with probability 0.1. Three priors: a
budget on the sum of the components' divergences, a budget on their divergence together, and R2-D2 with the
pseudo-variance `1 / rate` of a Poisson outcome, set so that its promise holds at base rate 1. The door is
`budget_of(total="together")` of the NumPyro program with its default nodes, and with as many fixed draws
(`method="sobol"`) for comparison. All are judged by the exact divergence of the scales that they draw.

Divergences are exact: `E KL[Poisson(m e^h) || Poisson(m)] = m (w e^(w/2) - expm1(w/2))` for `h ~ N(0, w)`.
Writes results/budget.json, in which measured cells stay, and the picture of "From R2-D2 to a budget".
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist

import predcp
from benchmarks.stored import Stored

OUTPUT = Path(__file__).parent / "results" / "budget.json"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "budget.png"
RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
UPPER, PROBABILITY = 0.1, 0.1
DRAWS = 10_000
# How the door integrates over the effects, and how many draws of the scales judge it.
DOOR = {"nodes": "auto", "draws": "sobol"}
NOISE = 16
DOOR_DRAWS = {"nodes": 2000, "draws": 1000}
DOOR_RATES = (0.01, 0.1, 1.0, 10.0, 100.0)
X = np.random.default_rng(0).normal(size=40)
X = (X - X.mean()) / X.std()


def exact(rate: float, variances: Any) -> Any:
    """Mean over the rows of the expected divergence, from the variance of each log rate."""
    return rate * jnp.mean(variances * jnp.exp(variances / 2) - jnp.expm1(variances / 2), axis=-1)


class Component(predcp.ScalarComplexity):
    """One component of the log rate, with standard deviation `tau * size` in each row."""

    unit = "standard deviation"

    def __init__(self, rate: float, sizes: np.ndarray):
        self.rate, self.squares = jnp.asarray(rate), jnp.asarray(sizes**2)

    def bind(self):
        def log_value(log_tau):
            w = jnp.exp(2.0 * log_tau) * self.squares
            # In units of tau^2, and of the largest exponential, which leave floating point first.
            top = jnp.max(w) / 2
            ratio = jnp.where(w > 0.0, -jnp.expm1(-w / 2) / jnp.where(w > 0.0, w, 1.0), 0.5)
            terms = self.squares * jnp.exp(w / 2 - top) * (1.0 - ratio)
            return 2.0 * log_tau + top + jnp.log(self.rate * jnp.mean(terms))

        def evaluate(log_tau):
            value, rate = jax.jvp(log_value, (log_tau,), (jnp.ones_like(log_tau),))
            return value, jnp.log(rate)

        return evaluate


def budget(rate: float, total: str) -> np.ndarray:
    """Draws of the divergence of both components together, under a budget."""
    maps = {"group": Component(rate, np.ones_like(X)), "slope": Component(rate, X)}

    def together(tau):
        return exact(rate, tau[0] ** 2 + tau[1] ** 2 * jnp.asarray(X) ** 2)

    pi = predcp.Exponential.from_tail(UPPER, PROBABILITY)
    prior = predcp.BudgetPrior(
        predcp.Budget({"group": 1.0, "slope": 1.0}, pi),
        predcp.SeparateComplexity(maps, together),
        total,
    )
    draws = prior.sample(jax.random.key(0), (DRAWS,))
    return np.asarray(jax.vmap(together)(draws))


def door(rate: float, kind: str) -> np.ndarray:
    """The exact divergence of scales that are drawn from the program's own budget."""

    def model(y: Any = None) -> None:
        groups = numpyro.sample("groups", dist.HalfNormal(1.0))
        slope = numpyro.sample("slope", dist.HalfNormal(1.0))
        with numpyro.plate("eight", 8):
            effect = numpyro.sample("effect", dist.Normal(0.0, 1.0))
        weight = numpyro.sample("weight", dist.Normal(0.0, 1.0))
        log_rate = groups * jnp.asarray(effect)[np.arange(40) % 8] + slope * weight * X
        numpyro.sample("y", dist.Poisson(rate * jnp.exp(log_rate)), obs=y)

    pi = predcp.Exponential.from_tail(UPPER, PROBABILITY)
    budget = predcp.Budget({"groups": 1.0, "slope": 1.0}, pi)
    options: dict[str, Any] = {"total": "together", "method": DOOR[kind], "noise_draws": NOISE}
    prior = predcp.budget_of(model, budget, jnp.ones(40), **options)
    # In parts, because each draw of the scales has an array of rows and nodes.
    keys = jax.random.split(jax.random.key(0), DOOR_DRAWS[kind] // 250)
    tau = np.concatenate([np.asarray(prior.sample(key, (250,))) for key in keys])
    variances = tau[:, :1] ** 2 + tau[:, 1:] ** 2 * X**2
    return np.asarray(exact(rate, jnp.asarray(variances)))


def r2d2(rate: float, mean: float) -> np.ndarray:
    """The same under R2-D2: `R^2 ~ Beta(mean, precision 2)`, total variance `R^2 / (1 - R^2) / rate`."""
    random = np.random.default_rng(1)
    r2 = random.beta(2.0 * mean, 2.0 * (1.0 - mean), DRAWS)
    share = random.uniform(size=DRAWS)
    total = r2 / (1.0 - r2) / rate
    variances = total[:, None] * (share[:, None] + (1.0 - share[:, None]) * X**2)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(exact(rate, jnp.asarray(variances)))
    # inf - inf: the variance left floating point, and the divergence with it.
    return np.nan_to_num(values, nan=np.inf)


def above(draws: np.ndarray) -> float:
    return float(np.mean(draws > UPPER))


def closed_forms() -> dict[str, Any]:
    # The mean of R^2 with which R2-D2 keeps the promise at base rate 1, by bisection.
    low, high = 1e-3, 0.9
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if above(r2d2(1.0, middle)) > PROBABILITY else (middle, high)
    return {
        "promise": {"nats": UPPER, "probability": PROBABILITY},
        "draws": DRAWS,
        "mean_r2": high,
        "rates": RATES,
        "budget_together": [above(budget(rate, "together")) for rate in RATES],
        "budget_sum": [above(budget(rate, "sum")) for rate in RATES],
        "r2d2": [above(r2d2(rate, high)) for rate in RATES],
    }


def cell(kind: str, rate: float) -> str:
    return f"budget_of with {NOISE} {kind}, base rate {rate:g}"


def draw(cells: dict[str, Any]) -> None:
    found = cells["closed forms"]
    labels = {
        "budget_together": "budget, components together",
        "budget_sum": "budget, sum of components",
        "r2d2": "R2-D2, pseudo-variance 1 / rate",
    }
    figure, axes = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
    for name, label in labels.items():
        axes.plot(found["rates"], found[name], marker="o", markersize=4, label=label)
    for kind in DOOR:
        values = [cells[cell(kind, rate)]["above"] for rate in DOOR_RATES]
        label = f"budget_of, together, {NOISE} {kind}"
        axes.plot(DOOR_RATES, values, marker="s", markersize=4, ls=":", label=label)
    axes.axhline(PROBABILITY, color="grey", linewidth=0.8, linestyle="--")
    axes.set(xscale="log", xlabel="base rate", ylim=(0.0, None))
    axes.set_ylabel(f"P(joint kappa > {UPPER} nats)")
    axes.legend(frameon=False)
    figure.savefig(PICTURE, dpi=120)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    stored = Stored(OUTPUT)
    for kind in DOOR:
        for rate in DOOR_RATES:
            if cell(kind, rate) not in stored:
                found = {"above": above(door(rate, kind)), "draws": DOOR_DRAWS[kind]}
                stored.add(cell(kind, rate), found)
    if "closed forms" not in stored:
        stored.add("closed forms", closed_forms())
    draw(stored.cells)
