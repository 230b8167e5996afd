"""Simulation-based calibration of a program with three scales under one budget (Talts et al. 2018).

Scales and data are drawn from the program with its prior; the rank of each scale among its posterior
draws must be uniform. Tests and power are those of `tests.program.calibration`, at a third of the level for
each of the three scales.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, Predictive
from scipy import stats

import predcp
from tests.program.calibration import FACTOR, KEPT, LEVEL, flatness, score

NAMES = ("tau_a", "tau_b", "tau_c")
SHARES = {"tau_a": 1.0, "others": (2.0, {"tau_b": 1.0, "tau_c": 1.0})}
DATA_SETS = 480


def three(y: Any = None) -> None:
    """A normal outcome with three crossed effects of five levels each."""
    places = np.arange(24)
    effects = [places % 4, places // 6, (places * 7 % 24) // 5]
    total: Any = 0.0
    for name, place in zip("abc", effects):
        scale = numpyro.sample(f"tau_{name}", dist.HalfNormal(1.0))
        with numpyro.plate(f"levels_{name}", 5):
            xi = numpyro.sample(name, dist.Normal(0.0, 1.0))
        total = total + scale * xi[place]
    numpyro.sample("y", dist.Normal(total, 0.5), obs=y)


def program(factor: float = 1.0, total: str = "sum") -> Callable[..., Any]:
    """The program under its budget; all scales are wrong by a factor where one is given."""
    pi = predcp.Gamma(shape=2.0, scale=0.2 * factor**2)
    budget = predcp.Budget(SHARES, pi)
    return predcp.with_complexity(three, budget, noise_draws=8, observed=["y"], total=total)


@cache
def simulate(count: int, total: str = "sum") -> dict[str, np.ndarray]:
    """Draws of the log scales and of the data."""
    draws = Predictive(program(total=total), num_samples=count)(jax.random.key(1))
    return {site: np.asarray(draws[site]) for site in ("log_scales", "y")}


def ranks(
    count: int, factor: float = 1.0, part: int = 0, parts: int = 1, total: str = "sum"
) -> np.ndarray:
    """How often each rank occurs among `KEPT` posterior draws, one row per scale.

    **Arguments**: number of data sets; by how much the scales are wrong in the fits; which of `parts`
    equal shares of the data sets to fit; `total`, as in `with_complexity`.
    """
    model = program(factor, total)

    def fit(key: jax.Array, y: jax.Array) -> jax.Array:
        kernel = NUTS(model, target_accept_prob=0.9, max_tree_depth=7)
        sizes = {"num_warmup": 250, "num_samples": 10 * KEPT, "thinning": 10}
        mcmc = MCMC(kernel, progress_bar=False, **sizes)
        mcmc.run(key, y=y)
        return mcmc.get_samples()["log_scales"]

    simulated = simulate(count, total)
    mine = np.array_split(np.arange(count), parts)[part]
    keys = jax.random.split(jax.random.key(2), count)[mine]
    draws = np.asarray(jax.jit(jax.vmap(fit))(keys, simulated["y"][mine]))
    below = np.sum(draws < simulated["log_scales"][mine, None], axis=1)
    return np.stack([np.bincount(each, minlength=KEPT + 1) for each in below.T])


def bar() -> float:
    """What the size of a score must not exceed."""
    return float(stats.norm.ppf(1.0 - LEVEL / len(NAMES) / 2.0))


def verdict(counts: np.ndarray) -> dict[str, Any]:
    """Scores and flatness of the ranks, and whether they are those of a calibrated posterior."""
    scores = {name: round(score(row), 2) for name, row in zip(NAMES, counts)}
    flat = {name: round(flatness(row), 4) for name, row in zip(NAMES, counts)}
    inside = max(map(abs, scores.values())) < bar()
    calibrated = inside and min(flat.values()) > LEVEL / len(NAMES)
    return {"scores": scores, "flatness_p": flat, "calibrated": calibrated}


def shifted(counts: np.ndarray, count: int, repeats: int = 500) -> float:
    """Power against posteriors whose ranks are distributed as in `counts`, by resampling them."""
    random = np.random.default_rng(0)
    rejected = 0
    for _ in range(repeats):
        again = [random.multinomial(count, (row + 0.5) / np.sum(row + 0.5)) for row in counts]
        rejected += not verdict(np.stack(again))["calibrated"]
    return rejected / repeats


__all__ = ["DATA_SETS", "FACTOR", "bar", "ranks", "shifted", "simulate", "verdict"]
