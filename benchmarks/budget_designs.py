"""How far is the divergence of all components from the budget? `python -m benchmarks.budget_designs`.

Five programs with two components: normal outcomes, counts, coins, rare counts, and effects that are
positive. Scales are drawn from a budget below 0.3 nats, once on the sum of the components' divergences
and once on their divergence together. The divergence of the whole program is then taken with other and more
noise than the prior has seen, so that the error of its fixed draws counts too (`method="sobol"`). The bar
is 15%.
Writes results/budget_designs.json.
"""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import predcp
from benchmarks.conditions import conditions
from predcp.program._budget import _together

OUTPUT = Path(__file__).parent / "results" / "budget_designs.json"
GROUP, SITE = np.arange(24) % 6, np.arange(24) // 6
NAMES = ("groups", "sites")
LEVEL, BAR = 0.3, 0.15
NOISE, FRESH, DRAWS = 128, 1024, 200
DESIGNS = {
    "normal": (lambda e: dist.Normal(1.0 + e, 0.5), dist.Normal(0.0, 1.0)),
    "counts, rate 5": (lambda e: dist.Poisson(5.0 * jnp.exp(e)), dist.Normal(0.0, 1.0)),
    "coins": (lambda e: dist.Bernoulli(logits=0.2 + e), dist.Normal(0.0, 1.0)),
    "counts, rate 0.02": (lambda e: dist.Poisson(0.02 * jnp.exp(e)), dist.Normal(0.0, 1.0)),
    "normal, positive effects": (lambda e: dist.Normal(1.0 + e, 0.5), dist.HalfNormal(1.0)),
}


def program(family: Any, effect: Any) -> Any:
    """Two crossed effects, each with a scale."""

    def model(y: Any = None) -> None:
        groups = numpyro.sample("groups", dist.HalfNormal(1.0))
        sites = numpyro.sample("sites", dist.HalfNormal(1.0))
        with numpyro.plate("six", 6):
            first = numpyro.sample("first", effect)
        with numpyro.plate("four", 4):
            second = numpyro.sample("second", effect)
        total = groups * jnp.asarray(first)[GROUP] + sites * jnp.asarray(second)[SITE]
        numpyro.sample("y", family(total), obs=y)

    return model


def errors(model: Any, total: Any) -> dict[str, Any]:
    """Relative differences of the fresh divergence from the total that was drawn."""
    budget = predcp.Budget(dict.fromkeys(NAMES, 1.0), predcp.Exponential(mean=0.1))
    y = jnp.ones(24)
    prior = predcp.budget_of(model, budget, y, total=total, noise_draws=NOISE, method="sobol")
    tau = prior.sample(jax.random.key(1), (DRAWS,))
    parts = jax.jit(prior.complexity.__call__)(tau)
    whole: Any = prior.complexity
    own = jax.jit(lambda tau: jax.lax.map(whole.together, tau))
    drawn = np.asarray(parts.sum(-1) if total == "sum" else own(tau))
    options: dict[str, Any] = {"rest": "prior", "noise_draws": FRESH, "key": jax.random.key(2)}
    options["method"] = "sobol"
    fresh = jax.jit(lambda tau: jax.lax.map(_together(model, NAMES, (y,), {}, **options), tau))
    kept = drawn < LEVEL
    gaps = np.asarray(fresh(tau))[kept] / drawn[kept] - 1.0
    quantiles = np.quantile(gaps, [0.0, 0.05, 0.5, 0.95, 1.0])
    found = predcp.diagnose(prior)
    return {
        "draws": int(kept.sum()),
        "lowest, 5%, median, 95%, highest": [round(float(each), 4) for each in quantiles],
        "within_bar": round(float(np.mean(np.abs(gaps) <= BAR)), 3),
        "verdict": found.verdict,
        "said": found.reasons[-1],
    }


def study() -> dict[str, Any]:
    return {
        name: {total: errors(program(*design), total) for total in ("sum", "together")}
        for name, design in DESIGNS.items()
    }


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    results: dict[str, Any] = {
        "below_nats": LEVEL,
        "bar": BAR,
        "noise": NOISE,
        "fresh_noise": FRESH,
        "designs": study(),
        "environment": conditions(),
    }
    OUTPUT.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results["designs"], indent=1))
