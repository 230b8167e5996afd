"""Simulation-based calibration: prior draw, data, posterior, rank, for the whole stack.

Ranks of the true values among posterior draws are uniform if the posterior is right. As normal scores
they have mean 0 and a known mean square. A posterior that is too narrow or too wide by a factor f
multiplies the scores by about 1 / f, which their mean square shows far better than counts in bins.
The power of the test is computed below and asserted.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from scipy import stats

import predcp
from predcp.linear import (
    ECP,
    Gibbs,
    Nuts,
    PredCP,
    Target,
    linear_regression,
    logistic_regression,
)

SIMULATIONS, RANKED = 400, 19
# Two-sided, for each statistic of each quantity.
LEVEL = 1e-3
FACTOR, POWER = 1.3, 0.99


def scores(draws=RANKED):
    """The normal score of each rank from 0 to the number of draws."""
    return stats.norm.ppf((np.arange(draws + 1) + 0.5) / (draws + 1))


def failures(ranks):
    """Which statistics of uniform ranks are out of their range, with their standard scores."""
    z, count = scores(), len(ranks)
    square = np.sqrt(count) * (np.mean(z[ranks] ** 2) - np.mean(z**2)) / np.std(z**2)
    mean = np.sqrt(count) * np.mean(z[ranks]) / np.std(z)
    bound = stats.norm.ppf(1.0 - LEVEL / 2.0)
    found = {"mean": mean, "mean square": square}
    return {name: value for name, value in found.items() if not abs(value) < bound}


def rank_probabilities(factor):
    """Of each rank, where the posterior's standard deviation is `factor` times too small."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    below = stats.norm.cdf(factor * nodes)
    each = stats.binom.pmf(np.arange(RANKED + 1)[:, None], RANKED, below)
    return each @ (weights / weights.sum())


def power(factor):
    """The probability that the mean square fails, by its normal approximation."""
    z, probabilities = scores(), rank_probabilities(factor)
    mean = probabilities @ z**2
    spread = np.sqrt((probabilities @ z**4 - mean**2) / SIMULATIONS)
    width = stats.norm.ppf(1.0 - LEVEL / 2.0) * np.std(z**2) / np.sqrt(SIMULATIONS)
    middle = np.mean(z**2)
    inside = stats.norm.cdf([middle - width, middle + width], mean, spread)
    return 1.0 - (inside[1] - inside[0])


@pytest.mark.parametrize("factor", [FACTOR, 1.0 / FACTOR])
def test_a_posterior_wrong_by_a_factor_is_caught(factor):
    assert power(factor) > POWER
    # The approximation against the test itself, on ranks drawn from the wrong posterior.
    random = np.random.default_rng(0)
    probabilities = rank_probabilities(factor)
    caught = np.mean(
        [
            bool(failures(random.choice(RANKED + 1, SIMULATIONS, p=probabilities)))
            for _ in range(2000)
        ]
    )
    assert caught > POWER - 0.01


def test_a_right_posterior_passes():
    random = np.random.default_rng(1)
    wrong = [bool(failures(random.integers(0, RANKED + 1, SIMULATIONS))) for _ in range(5000)]
    assert np.mean(wrong) < 4 * LEVEL
    assert power(1.0) < 2 * LEVEL


RANDOM = np.random.default_rng(7)
MANY_ROWS = jnp.asarray(RANDOM.normal(size=(6, 2)))
# More columns than rows, two of them nearly the same.
MANY_COLUMNS = jnp.asarray(RANDOM.normal(size=(4, 6)) @ np.diag([1, 1, 1, 1, 1, 0.5]))
MANY_COLUMNS = MANY_COLUMNS.at[:, 1].set(MANY_COLUMNS[:, 0] + 0.1 * MANY_COLUMNS[:, 1])


def ranked(sites, x, y):
    beta = sites["beta"]
    return {"log_tau": sites["log_tau"], "beta": beta[0], "size": jnp.sum(jnp.abs(x @ beta))}


# Warm-up, and steps between two ranked draws: about as many as one effective draw takes.
NUTS = (Nuts, {"max_depth": 5}, 300, 8)
GIBBS = (Gibbs, {"lattice": 0}, 40, 5)
LATTICE = (Gibbs, {"lattice": 32}, 40, 5)
EXPONENTIAL = predcp.Exponential(mean=0.5)
CASES = {
    "gibbs-columns": (GIBBS, logistic_regression, ECP(EXPONENTIAL), MANY_COLUMNS),
    "gibbs-rows": (GIBBS, logistic_regression, PredCP(EXPONENTIAL, noise_draws=4), MANY_ROWS),
    "gibbs-linear": (LATTICE, linear_regression, ECP(EXPONENTIAL), MANY_COLUMNS),
    "nuts-ecp": (NUTS, logistic_regression, ECP(EXPONENTIAL), MANY_ROWS),
    "nuts-predcp": (NUTS, logistic_regression, PredCP(EXPONENTIAL, noise_draws=4), MANY_ROWS),
}


@pytest.mark.parametrize(
    "name",
    [
        name if name == "gibbs-rows" else pytest.param(name, marks=pytest.mark.long)
        for name in CASES
    ],
)
def test_ranks_are_uniform(name):
    (sampler, settings, warmup, thin), model, prior, design = CASES[name]
    options = {"prior": prior, "intercept": True}

    @jax.jit
    @jax.vmap
    def simulated(key):
        seeded = numpyro.handlers.seed(model, key)
        trace = numpyro.handlers.trace(seeded).get_trace(design, **options)
        sites = {name: site["value"] for name, site in trace.items()}
        return sites["y"], ranked(sites, design, None)

    y, truth = simulated(jax.random.split(jax.random.key(11), SIMULATIONS))
    designs = jnp.broadcast_to(design, (SIMULATIONS, *design.shape))
    target = Target(model, (designs, y), options, SIMULATIONS, ranked)
    fits = sampler(chains=1, warmup=warmup, draws=RANKED * thin, **settings).sample(target)
    for quantity, true in truth.items():
        drawn = np.stack([fit.values[quantity][0, thin - 1 :: thin] for fit in fits])
        assert drawn.shape == (SIMULATIONS, RANKED)
        ranks = np.sum(drawn < np.asarray(true)[:, None], axis=1)
        assert not failures(ranks), (quantity, failures(ranks))
