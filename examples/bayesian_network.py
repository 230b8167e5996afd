"""Does the network need its hidden layer? A Bayesian network as an equinox module.

Reference model: the network without its residual layer, a regression on fixed features.
"""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.contrib.module import random_eqx_module
from numpyro.infer import MCMC, NUTS

import predcp

WIDTH, NOISE = 6, 0.1


class Network(eqx.Module):
    residual: jax.Array
    out: jax.Array

    def __call__(self, hidden, scale):
        return (hidden + jax.nn.relu(hidden @ (scale * self.residual))) @ self.out


def model(hidden, y, log_scale_prior):
    tau = jnp.exp(numpyro.sample("log_tau", log_scale_prior))
    empty = Network(jnp.zeros((WIDTH, WIDTH)), jnp.zeros((WIDTH, 1)))
    mean = random_eqx_module("net", empty, prior=dist.Normal())(hidden, jnp.sqrt(tau))[:, 0]
    numpyro.sample("y", dist.Normal(numpyro.deterministic("mean", mean), NOISE), obs=y)


def main(folder="examples_output", draws=500):
    x = np.linspace(-2.0, 2.0, 24)
    y = np.tanh(x) + NOISE * np.random.default_rng(0).standard_normal(len(x))  # one feature will do
    hidden = jnp.tanh(x[:, None] - np.linspace(-2.0, 2.0, WIDTH))
    weights, out = predcp.normal_draws(jax.random.key(1), 16, ((1, WIDTH, WIDTH), (WIDTH, 1)))
    complexity = predcp.DepthComplexity(hidden, weights, out / NOISE)
    prior = predcp.ComplexityPrior(predcp.LogCauchy(1.0), complexity)  # of a vector, here of one
    fixed = dist.Normal(0.0, 1e-3).expand([1]).to_event(1)
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 3.0), sharey=True, layout="constrained")
    for ax, (name, each) in zip(axes, {"PredCP": prior.log_scale(), "tau = 1": fixed}.items()):
        mcmc = MCMC(NUTS(model), num_warmup=draws, num_samples=draws, progress_bar=False)
        mcmc.run(jax.random.key(2), hidden, y, each)
        mean = np.asarray(mcmc.get_samples()["mean"])
        print(f"{name}: spread of the curves {mean.std(0).mean():.3f}")
        ax.plot(x, mean[:: max(1, draws // 25)].T, color="#D55E00", alpha=0.3, linewidth=1)
        ax.set_title(name)
    Path(folder).mkdir(exist_ok=True)
    figure.savefig(Path(folder) / "bayesian_network.png", dpi=120)


if __name__ == "__main__":
    main()
