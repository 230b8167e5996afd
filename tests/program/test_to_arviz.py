"""The ArviZ tree of a sampler's draws: densities by hand, and power-scaling of pi."""

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy import stats

import predcp

ERROR = np.array([1.0, 2.0, 1.5, 1.0])
Y = np.array([0.3, -1.2, 2.0, 0.7])
PI = predcp.LogCauchy(scale=1.0, loc=-1.0)


def schools(error, y):
    tau = numpyro.sample("tau", dist.HalfCauchy(1.0))
    z = numpyro.sample("z", dist.Normal().expand([4]).to_event(1))
    numpyro.sample("y", dist.Normal(tau * z, error), obs=y)


def test_the_groups_have_the_densities_and_can_be_power_scaled():
    swapped = predcp.with_complexity(schools, {"tau": PI}, noise_draws=2)
    kernel = numpyro.infer.NUTS(swapped)
    mcmc = numpyro.infer.MCMC(
        kernel, num_warmup=50, num_samples=60, num_chains=2, progress_bar=False,
        chain_method="sequential",
    )  # fmt: skip
    mcmc.run(jax.random.key(0), ERROR, Y)
    tree = predcp.to_arviz(mcmc, ERROR, Y)
    posterior, log_prior = tree["posterior"], tree["log_prior"]
    assert set(log_prior.data_vars) == {"tau", "z"}
    tau, z = posterior["tau"].to_numpy(), posterior["z"].to_numpy()
    assert tau.shape == (2, 60)
    kappa = jnp.exp(predcp.complexity_of(schools, "tau", ERROR, Y, noise_draws=2).log_value_and_elasticity(
        jnp.log(tau)
    )[0])  # fmt: skip
    np.testing.assert_allclose(log_prior["tau"], PI.log_prob(kappa), rtol=1e-6)
    np.testing.assert_allclose(log_prior["z"], stats.norm.logpdf(z).sum(-1), rtol=1e-6)
    wanted = stats.norm.logpdf(Y, tau[..., None] * z, ERROR)
    np.testing.assert_allclose(tree["log_likelihood"]["y"], wanted, rtol=1e-6)
    of_pi = arviz_stats.psense(tree, var_names=["tau"], group_var_names=["tau"])
    assert float(of_pi["tau"]) > 0.0
