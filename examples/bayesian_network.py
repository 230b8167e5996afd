"""Does the network need its residual layer? A Bayesian network as an equinox module.

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
        return hidden @ self.out, jax.nn.relu(hidden @ (scale * self.residual)) @ self.out


def model(hidden, y, log_scale_prior):
    tau = jnp.exp(numpyro.sample("log_tau", log_scale_prior))
    empty = Network(jnp.zeros((WIDTH, WIDTH)), jnp.zeros((WIDTH, 1)))
    base, added = random_eqx_module("net", empty, prior=dist.Normal())(hidden, jnp.sqrt(tau))
    numpyro.deterministic("added", added[:, 0])
    numpyro.sample("y", dist.Normal((base + added)[:, 0], NOISE), obs=y)


def main(folder="examples_output", draws=400):
    x = np.linspace(-2.0, 2.0, 24)
    hidden = jnp.tanh(x[:, None] - np.linspace(-2.0, 2.0, WIDTH))
    weights, out = predcp.normal_draws(jax.random.key(1), 16, ((1, WIDTH, WIDTH), (WIDTH, 1)))
    complexity = predcp.DepthComplexity(hidden, weights, out / NOISE)
    # at most a 10% chance that the layer moves a prediction by more than .1 nats
    prior = predcp.ComplexityPrior(predcp.LogCauchy.from_tail(0.1, 0.1), complexity)
    fixed = dist.Normal(0.0, 1e-3).expand([1]).to_event(1)
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.4), sharey=True, layout="constrained")
    for ax, (truth, curve) in zip(
        axes, {"tanh(x)": np.tanh(x), "sin(3x)": np.sin(3.0 * x)}.items()
    ):
        y = curve + NOISE * np.random.default_rng(0).standard_normal(len(x))
        ax.plot(x, y, ".", color="black", label="data")
        for name, each in {"PredCP": prior.log_scale(), "tau = 1": fixed}.items():
            mcmc = MCMC(NUTS(model), num_warmup=draws, num_samples=draws, progress_bar=False)
            mcmc.run(jax.random.key(2), hidden, y, each)
            low, high = np.quantile(mcmc.get_samples()["added"], [0.05, 0.95], axis=0)
            print(
                f"{truth}, {name}: the layer's share, mean 90% interval {np.mean(high - low):.3f}"
            )
            ax.fill_between(x, low, high, alpha=0.4, label=f"what the layer adds, {name}")
        ax.set(title=f"data from {truth}", xlabel="x")
    axes[0].legend(frameon=False)
    Path(folder).mkdir(exist_ok=True)
    figure.savefig(Path(folder) / "bayesian_network.png", dpi=120)


if __name__ == "__main__":
    main()
