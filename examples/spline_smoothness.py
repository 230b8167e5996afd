"""How much may a curve bend? The smoothness of a spline.

Reference model: the curve is a straight line.
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

KNOTS, NOISE = 10, 0.3


def bends(x):
    """Cubic radial functions at the knots, with their projection on straight lines removed."""
    basis = np.abs(x[:, None] - np.linspace(0.05, 0.95, KNOTS)) ** 3
    line = np.stack([np.ones_like(x), x], axis=1)
    return jnp.asarray(basis - line @ np.linalg.lstsq(line, basis, rcond=None)[0]) * 100.0


def model(x, y, scale_prior, log_scale):
    value = numpyro.sample("scale", scale_prior)
    tau = jnp.exp(value) if log_scale else value
    line = numpyro.sample("line", dist.Normal(0.0, 5.0).expand([2]))
    xi = numpyro.sample("xi", dist.Normal().expand([KNOTS]))
    curve = line[0] + line[1] * x + bends(x) @ (jnp.sqrt(tau) * xi)
    numpyro.sample("y", dist.Normal(numpyro.deterministic("curve", curve), NOISE), obs=y)


def main(folder="examples_output", draws=1000):
    x = np.linspace(0.0, 1.0, 40)
    y = 1.0 + 2.0 * x + np.random.default_rng(0).normal(0.0, NOISE, len(x))  # the truth is a line
    # tau is the variance of the coefficients of the bends
    complexity = predcp.LinearEvidence(bends(x), noise_scale=NOISE)
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity)
    cases = {"ECP": (prior.log_scale(), True), "half-Cauchy(1)": (dist.HalfCauchy(1.0), False)}
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 3.0), sharey=True, layout="constrained")
    for ax, (name, (scale_prior, log_scale)) in zip(axes, cases.items()):
        mcmc = MCMC(NUTS(model), num_warmup=draws, num_samples=draws, progress_bar=False)
        mcmc.run(jax.random.key(1), x, y, scale_prior, log_scale)
        curves = np.asarray(mcmc.get_samples()["curve"])
        bend = np.std(np.diff(curves, 2, axis=1), axis=1)
        print(f"{name}: posterior median of the second differences {np.median(bend):.5f}")
        ax.plot(x, y, ".", color="grey")
        ax.plot(x, curves[:: max(1, len(curves) // 25)].T, color="#D55E00", alpha=0.3, linewidth=1)
        ax.set(title=name, xlabel="x", ylabel="y")
    Path(folder).mkdir(exist_ok=True)
    figure.savefig(Path(folder) / "spline_smoothness.png", dpi=120)


if __name__ == "__main__":
    main()
