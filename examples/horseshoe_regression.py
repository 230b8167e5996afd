"""Few rows, many columns: the global scale of a horseshoe regression.

Reference model: no column has any effect.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

import predcp

ROWS, COLUMNS = 40, 60


def model(x, y, scale_prior):
    local = numpyro.sample("lambda", dist.HalfCauchy().expand([COLUMNS]))
    if scale_prior == "ECP":
        # the map depends on the local scales of the current draw
        evidence = predcp.RowEvidence(x, local_scales=local)
        prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), evidence).log_scale()
        tau = jnp.exp(numpyro.sample("log_tau", prior))
    else:
        tau = numpyro.sample("tau", dist.HalfCauchy(1.0))
    xi = numpyro.sample("xi", dist.Normal().expand([COLUMNS]))
    beta = numpyro.deterministic("beta", tau * local * xi)
    numpyro.sample("y", dist.Normal(x @ beta, 1.0), obs=y)


def main(folder="examples_output", draws=600):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, COLUMNS))
    truth = np.array([3.0, -2.0, 1.5] + [0.0] * (COLUMNS - 3))
    y = x @ truth + rng.standard_normal(ROWS)
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.0), sharey=True, layout="constrained")
    for ax, scale_prior in zip(axes, ("ECP", "half-Cauchy(1)")):
        sampler = NUTS(model, target_accept_prob=0.9, max_tree_depth=8)
        mcmc = MCMC(sampler, num_warmup=draws, num_samples=draws, progress_bar=False)
        mcmc.run(jax.random.key(1), x, y, scale_prior, extra_fields=("num_steps",))
        low, middle, high = np.quantile(mcmc.get_samples()["beta"], [0.05, 0.5, 0.95], axis=0)
        error = np.sqrt(np.mean((middle - truth) ** 2))
        steps = np.mean(mcmc.get_extra_fields()["num_steps"])
        print(f"{scale_prior}: error of beta {error:.3f}, {steps:.0f} gradients per draw")
        ax.errorbar(np.arange(COLUMNS), middle, [middle - low, high - middle], fmt=".", linewidth=1)
        ax.plot(truth, "_", color="black")
        ax.set(title=scale_prior, xlabel="column", ylabel="coefficient, 90% interval")
    Path(folder).mkdir(exist_ok=True)
    figure.savefig(Path(folder) / "horseshoe_regression.png", dpi=120)


if __name__ == "__main__":
    main()
