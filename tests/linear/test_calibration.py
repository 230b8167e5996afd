"""Simulation-based calibration: prior draw, data, posterior, rank, for the whole stack."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from scipy import stats

import predcp
from predcp.linear import Evidence, Nuts, Predictive, Target, logistic_regression

SIMULATIONS, ROWS, COLUMNS = 40, 8, 2
DRAWS, THIN = 250, 5
DESIGN = jnp.asarray(np.random.default_rng(5).normal(size=(ROWS, COLUMNS)))


def kept(sites, x, y):
    beta = sites["beta"]
    return {"log_tau": sites["log_tau"], "beta": beta[0], "size": jnp.sum(jnp.abs(x @ beta))}


# The other prior by default in test_gibbs.
@pytest.mark.parametrize(
    "prior",
    [
        pytest.param(Evidence(predcp.Exponential(mean=0.5)), marks=pytest.mark.long),
        Predictive(predcp.Exponential(mean=0.2), draws=4),
    ],
    ids=["ecp", "predcp"],
)
def test_ranks_are_uniform(prior):
    options = {"prior": prior, "intercept": False}

    @jax.jit
    @jax.vmap
    def simulated(key):
        seeded = numpyro.handlers.seed(logistic_regression, key)
        trace = numpyro.handlers.trace(seeded).get_trace(DESIGN, **options)
        sites = {name: site["value"] for name, site in trace.items()}
        return sites["y"], kept(sites, DESIGN, None)

    y, truth = simulated(jax.random.split(jax.random.key(11), SIMULATIONS))
    designs = jnp.broadcast_to(DESIGN, (SIMULATIONS, *DESIGN.shape))
    target = Target(logistic_regression, (designs, y), options, SIMULATIONS, kept)
    sampler = Nuts(chains=1, warmup=250, draws=DRAWS, max_depth=4)
    fits = sampler.sample(target)
    for name, true in truth.items():
        ranks = [
            int(np.sum(fit.values[name][0, ::THIN] < float(value)))
            for fit, value in zip(fits, np.asarray(true))
        ]
        counts, _ = np.histogram(ranks, bins=5, range=(0, DRAWS // THIN + 1))
        assert stats.chisquare(counts).pvalue > 1e-3, (name, counts)
