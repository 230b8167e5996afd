"""Is there a pattern in time? The amplitude of a Gaussian process.

Reference model: the rate of events is constant.
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

WEEKS, LENGTH, RATE = 40, 6.0, 3.0


def process(tau, xi):
    """A smooth process of variance tau, from white noise xi."""
    gap = np.arange(WEEKS)[:, None] - np.arange(WEEKS)
    root = np.linalg.cholesky(np.exp(-0.5 * (gap / LENGTH) ** 2) + 1e-5 * np.eye(WEEKS))
    return jnp.sqrt(tau) * (root @ xi)


def model(counts, scale_prior, log_scale):
    value = numpyro.sample("scale", scale_prior)
    xi = numpyro.sample("xi", dist.Normal().expand([WEEKS]))
    height = process(jnp.exp(value) if log_scale else value, xi)
    rate = numpyro.deterministic("rate", RATE * jnp.exp(height))
    numpyro.sample("counts", dist.Poisson(rate), obs=counts)


def main(folder="examples_output", draws=1000):
    counts = np.random.default_rng(2).poisson(RATE, WEEKS)  # the true rate is constant
    noise = predcp.normal_noise(jax.random.key(0), 16, (WEEKS,))
    complexity = predcp.PredictiveComplexity(
        lambda f, _: dist.Poisson(RATE * jnp.exp(f)), process, jnp.zeros(WEEKS), None, noise
    )
    # a 5% chance that the pattern moves predictions by more than half a nat
    prior = predcp.ComplexityPrior(predcp.HalfCauchy.from_tail(0.5, 0.05), complexity)
    cases = {"PredCP": (prior.log_scale(), True), "half-Cauchy": (dist.HalfCauchy(1.0), False)}
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 3.0), sharey=True, layout="constrained")
    for ax, (name, (scale_prior, log_scale)) in zip(axes, cases.items()):
        mcmc = MCMC(NUTS(model), num_warmup=draws, num_samples=draws, progress_bar=False)
        mcmc.run(jax.random.key(1), counts, scale_prior, log_scale)
        low, middle, high = np.quantile(mcmc.get_samples()["rate"], [0.05, 0.5, 0.95], axis=0)
        print(f"{name}: rate {np.mean(middle):.2f}, standard deviation {np.std(middle):.2f}")
        ax.fill_between(np.arange(WEEKS), low, high, color="#0072B2", alpha=0.25, linewidth=0)
        ax.plot(np.stack([middle, counts], axis=1))
        ax.set(title=name, xlabel="week", ylabel="events per week")
    Path(folder).mkdir(exist_ok=True)
    figure.savefig(Path(folder) / "gp_amplitude.png", dpi=120)


if __name__ == "__main__":
    main()
