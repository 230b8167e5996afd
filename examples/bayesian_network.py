"""Does the network need its residual layer? A Bayesian network as an Equinox module.

Reference model: the network without its residual layer, a regression on fixed features.
"""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpyro
import numpyro.distributions as dist
from numpyro.contrib.module import random_eqx_module
from numpyro.infer import MCMC, NUTS

import predcp

WIDTH, NOISE, ONE = 6, 0.1, dist.Normal(jnp.zeros(1), 1e-3)


class Network(eqx.Module):
    weights: jax.Array  # of the residual layer; the last column holds the output weights

    def __call__(self, hidden, scale):
        residual, out = scale * self.weights[:, :-1], self.weights[:, -1]
        return hidden @ out + numpyro.deterministic("added", jax.nn.relu(hidden @ residual) @ out)


def model(hidden, y, log_scale_prior):
    tau = jnp.exp(numpyro.sample("log_tau", log_scale_prior))
    net = random_eqx_module("net", Network(jnp.zeros((WIDTH, WIDTH + 1))), prior=dist.Normal())
    numpyro.sample("y", dist.Normal(net(hidden, jnp.sqrt(tau)), NOISE), obs=y)


def main(folder="examples_output", draws=300):
    x = jnp.linspace(-2.0, 2.0, 24)
    hidden = jnp.tanh(x[:, None] - jnp.linspace(-2.0, 2.0, WIDTH))
    weights, out = predcp.normal_noise(jax.random.key(1), 16, ((1, WIDTH, WIDTH), (WIDTH, 1)))
    pi = predcp.LogCauchy.from_tail(0.1, 0.1)  # a 10% chance of more than 0.1 nats
    prior = predcp.ComplexityPrior(pi, predcp.DepthComplexity(hidden, weights, out / NOISE))
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    for ax, name, truth in zip(axes, ("tanh(x)", "sin(3x)"), (jnp.tanh(x), jnp.sin(3.0 * x))):
        y = truth + NOISE * jax.random.normal(jax.random.key(0), x.shape)
        for scale, each in {"PredCP": prior.log_scale(), "tau = 1": ONE}.items():
            mcmc = MCMC(NUTS(model), num_warmup=draws, num_samples=draws, progress_bar=False)
            mcmc.run(jax.random.key(2), hidden, y, each)
            low, high = jnp.quantile(mcmc.get_samples()["added"], jnp.array([0.05, 0.95]), axis=0)
            print(f"{name}, {scale}: 90% interval of the layer, width {(high - low).mean():.3f}")
            ax.fill_between(x, low, high, alpha=0.4, linewidth=2, label=f"the layer, {scale}")
        ax.plot(x, y, ".", color="black", label="data")
        ax.set_title("data: " + name)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    Path(folder).mkdir(exist_ok=True)
    figure.savefig(Path(folder) / "bayesian_network.png", dpi=120)


if __name__ == "__main__":
    main()
