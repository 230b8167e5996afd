"""Simulation-based calibration of small programs with complexity priors (Talts et al. 2018).

Scales and data are drawn from a program with its complexity prior, and the rank of the scale among
posterior draws must be uniform. The test is two-sided, at level `LEVEL`, on the mean normal score of
the ranks, which a prior that is wrong by a factor moves; a chi-square test looks at their histogram.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, Predictive
from scipy import stats

import predcp

PI = predcp.Gamma(shape=0.5, scale=0.1)
REPEATS, KEPT, LEVEL = 400, 25, 1e-3
# By how much the scale is wrong in the fits that the test must reject.
FACTOR = 1.3


class Calibrated(NamedTuple):
    """A small program with a scale `tau` and data `y`, and its design."""

    model: Callable[..., Any]
    args: tuple[Any, ...]


def small_normal(group, y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    sigma = numpyro.sample("sigma", dist.LogNormal(0, 0.3))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    z = numpyro.sample("z", dist.Normal(0, 1).expand([5]).to_event(1))
    numpyro.sample("y", dist.Normal(mu + tau * z[group], sigma).to_event(1), obs=y)


def small_counts(y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 0.5))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    z = numpyro.sample("z", dist.Normal(0, 1).expand([6]).to_event(1))
    numpyro.sample("y", dist.Poisson(jnp.exp(mu + tau * z)).to_event(1), obs=y)


def small_coins(trials, y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    z = numpyro.sample("z", dist.Normal(0, 1).expand([6]).to_event(1))
    rows = dist.Binomial(trials, logits=mu + tau * z).to_event(1)
    numpyro.sample("y", rows, obs=y)


CALIBRATED = {
    "normal": Calibrated(small_normal, (np.array([0, 0, 1, 2, 3, 4]),)),
    "counts": Calibrated(small_counts, ()),
    "coins": Calibrated(small_coins, (np.array([2, 2, 2, 3, 3, 3]),)),
}


def _swapped(case: Calibrated, rest: str, pi: Any, **options: Any) -> Callable[..., Any]:
    """The program with a complexity prior, and with its design."""
    model = partial(case.model, *case.args)
    return predcp.with_complexity(model, {"tau": pi}, rest=rest, noise_draws=8, **options)


@cache
def simulate(name: str, rest: str) -> dict[str, np.ndarray]:
    """`REPEATS` draws of the scale and the data from a program with its complexity prior."""
    model = _swapped(CALIBRATED[name], rest, PI, observed=["y"])
    draws = Predictive(model, num_samples=REPEATS)(jax.random.key(5))
    return {site: np.asarray(draws[site]) for site in ("tau", "y")}


def ranks(name: str, rest: str, factor: float = 1.0, part: int = 0, parts: int = 1) -> np.ndarray:
    """How often each rank of the scale occurs among `KEPT` posterior draws.

    **Arguments**: `factor`, by which the scale of the prior in the fits is wrong; `part`, which of
    `parts` equal shares of the simulated data to fit.
    """
    # D is nearly a square of the scale where this pi has its mass.
    pi = predcp.Gamma(shape=0.5, scale=0.1 * factor**2)
    model = _swapped(CALIBRATED[name], rest, pi)

    def fit(key: jax.Array, y: jax.Array) -> jax.Array:
        # All fits run as one program, in which each step takes as long as the longest trajectory.
        kernel = NUTS(model, target_accept_prob=0.9, max_tree_depth=7)
        sizes = {"num_warmup": 200, "num_samples": 10 * KEPT, "thinning": 10}
        mcmc = MCMC(kernel, progress_bar=False, **sizes)
        mcmc.run(key, y=y)
        return mcmc.get_samples()["tau"]

    simulated = simulate(name, rest)
    mine = np.array_split(np.arange(REPEATS), parts)[part]
    keys = jax.random.split(jax.random.key(1), REPEATS)[mine]
    draws = np.asarray(jax.jit(jax.vmap(fit))(keys, simulated["y"][mine]))
    below = np.sum(draws < simulated["tau"][mine, None], axis=1)
    return np.bincount(below, minlength=KEPT + 1)


def score(counts: np.ndarray) -> float:
    """Standardised mean normal score of the ranks: standard normal if calibrated."""
    # A rank stands for one of equally likely cells of a standard normal: its mean there.
    edges = stats.norm.ppf(np.linspace(0.0, 1.0, len(counts) + 1))
    centres = -len(counts) * np.diff(stats.norm.pdf(edges))
    return float(counts @ centres / np.sqrt(counts.sum() * np.mean(centres**2)))


def flatness(counts: np.ndarray) -> float:
    """p-value of a chi-square test that pairs of ranks are equally frequent."""
    return float(stats.chisquare(counts.reshape(-1, 2).sum(axis=1)).pvalue)


def bar() -> float:
    """What the size of a score must not exceed."""
    return float(stats.norm.ppf(1.0 - LEVEL / 2.0))


def power_without_data(factor: float, repeats: int = REPEATS) -> float:
    """Power of the test where the data say nothing: ranks are those of a prior in a wrong one."""
    # Under this pi a Gaussian scale is half-normal.
    tau = stats.halfnorm.ppf((np.arange(100_000) + 0.5) / 100_000)
    shift = np.mean(stats.norm.ppf(stats.halfnorm.cdf(tau / factor)))
    return float(stats.norm.sf(bar() - abs(shift) * np.sqrt(repeats)))
