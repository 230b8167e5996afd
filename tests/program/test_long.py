"""Programs with complexity priors in a sampler: convergence, divergent steps and calibration."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS, Predictive, init_to_median
from scipy import stats

import predcp
from predcp._numerics.chains import worst_rhat
from tests.program.programs import EXAMPLES

CHAINS, WARMUP, DRAWS = 4, 1000, 1000
# Predictions rarely move by more than a nat.
STATEMENT = predcp.tail(divergence=1.0, probability=0.05)


def sampled(model, args, key=0, **sizes):
    # From the default start, far from the data, one chain in four may stay where a scale is 0.
    kernel = NUTS(model, target_accept_prob=0.95, init_strategy=init_to_median)
    sizes = {"num_warmup": WARMUP, "num_samples": DRAWS, "num_chains": CHAINS, **sizes}
    mcmc = MCMC(kernel, chain_method="vectorized", progress_bar=False, **sizes)
    mcmc.run(jax.random.key(key), *args, extra_fields=("diverging",))
    draws = {name: np.asarray(d) for name, d in mcmc.get_samples(group_by_chain=True).items()}
    return draws, int(np.sum(mcmc.get_extra_fields()["diverging"]))


def worst(draws: dict[str, np.ndarray]) -> float:
    """The largest R-hat of all quantities."""
    return max(worst_rhat(each.reshape(*each.shape[:2], -1)) for each in draws.values())


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_program_samples_as_well_as_with_its_own_prior(name):
    example = EXAMPLES[name]
    args, program = example.args(), example.for_sampling()
    draws, after = sampled(predcp.with_complexity(program, {example.scale: STATEMENT}), args)
    kept = draws if example.identified is None else {n: draws[n] for n in example.identified}
    rhat = worst(kept)
    print(f"{name}: R-hat {rhat:.4f}, {after} divergent steps")
    assert rhat < 1.01
    # One divergent step in a thousand is chance; the original is sampled only if there are more.
    if after > CHAINS * DRAWS // 1000:
        assert after <= sampled(program, args)[1]


# Calibration. Scales and data are drawn from the program with its complexity prior, and the rank of
# the scale among posterior draws must be uniform (Talts et al. 2018).


class Calibrated(NamedTuple):
    """A small program, its design, its scale, and the pi of its prior."""

    model: Callable[..., Any]
    args: tuple[Any, ...]
    scale: str


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
    "normal": Calibrated(small_normal, (jnp.array([0, 0, 1, 2, 3, 4]),), "tau"),
    "counts": Calibrated(small_counts, (), "tau"),
    "coins": Calibrated(small_coins, (jnp.array([2, 2, 2, 3, 3, 3]),), "tau"),
}
PI = predcp.Gamma(shape=0.5, scale=0.1)
REPEATS, KEPT, LEVEL = 400, 25, 1e-3


def score(model, simulated):
    """Standardised sum of normal scores of the ranks: standard normal if calibrated."""

    def fit(key, y):
        # All fits run as one program, in which each step takes as long as the longest trajectory.
        kernel = NUTS(model, target_accept_prob=0.9, max_tree_depth=7)
        sizes = {"num_warmup": 200, "num_samples": 10 * KEPT, "thinning": 10}
        mcmc = MCMC(kernel, progress_bar=False, **sizes)
        mcmc.run(key, y=y)
        return mcmc.get_samples()["tau"]

    repeats = len(simulated["tau"])
    keys = jax.random.split(jax.random.key(1), repeats)
    draws = np.asarray(jax.jit(jax.vmap(fit))(keys, simulated["y"]))
    rank = np.sum(draws < simulated["tau"][:, None], axis=1)
    uniform = np.random.default_rng(0).uniform(size=repeats)
    return float(np.sum(stats.norm.ppf((rank + uniform) / (KEPT + 1))) / np.sqrt(repeats))


def swapped(case, rest, pi=PI, **options):
    """The program with a complexity prior, and with its design."""
    model = partial(case.model, *case.args)
    return predcp.with_complexity(model, {"tau": pi}, rest=rest, draws=8, **options)


def simulate(case, rest):
    """Draws of the scale and the data from the program with its complexity prior."""
    model = swapped(case, rest, observed=["y"])
    draws = Predictive(model, num_samples=REPEATS)(jax.random.key(5))
    return {name: np.asarray(draws[name]) for name in ("tau", "y")}


def fitted(case, rest, factor=1.0):
    """The program to fit; `factor` makes the scale of its prior wrong by that much."""
    # D is nearly a square of the scale where this pi has its mass.
    return swapped(case, rest, predcp.Gamma(shape=0.5, scale=0.1 * factor**2))


def power_without_data(factor: float, repeats: int) -> float:
    """Power of the test where the data say nothing: ranks are those of a prior in a wrong one."""
    # Under this pi a Gaussian scale is half-normal.
    tau = stats.halfnorm.ppf((np.arange(100_000) + 0.5) / 100_000)
    shift = np.mean(stats.norm.ppf(stats.halfnorm.cdf(tau / factor)))
    bar = stats.norm.ppf(1.0 - LEVEL / 2.0)
    return float(stats.norm.sf(bar - abs(shift) * np.sqrt(repeats)))


def test_calibration_has_the_power_to_see_a_factor():
    assert power_without_data(1.3, REPEATS) > 0.95
    assert power_without_data(1.0001, REPEATS) < 2.0 * LEVEL


@pytest.mark.long
@pytest.mark.parametrize("rest", ["given", "prior"])
@pytest.mark.parametrize("name", CALIBRATED)
def test_posterior_draws_are_calibrated(name, rest):
    case = CALIBRATED[name]
    simulated = simulate(case, rest)
    bar = stats.norm.ppf(1.0 - LEVEL / 2.0)
    assert abs(score(fitted(case, rest), simulated)) < bar


@pytest.mark.long
@pytest.mark.parametrize("name", CALIBRATED)
def test_calibration_sees_a_scale_that_is_wrong_by_a_factor(name):
    case = CALIBRATED[name]
    simulated = simulate(case, "given")
    bar = stats.norm.ppf(1.0 - LEVEL / 2.0)
    assert abs(score(fitted(case, "given", factor=1.3), simulated)) > bar
