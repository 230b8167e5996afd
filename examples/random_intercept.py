"""How much do schools differ? The variance of a random intercept in a mixed model.

Reference model: every school has the same mean.
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

SCHOOLS = 12


def likelihood(intercepts, school):
    return dist.Normal(intercepts[school], 1.0)


def model(school, y, scale_prior, log_scale):
    value = numpyro.sample("scale", scale_prior)
    tau = numpyro.deterministic("tau", jnp.exp(value) if log_scale else value)
    mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    xi = numpyro.sample("xi", dist.Normal().expand([SCHOOLS]))
    effects = numpyro.deterministic("intercepts", jnp.sqrt(tau) * xi)
    numpyro.sample("y", likelihood(mean + effects, school), obs=y)


def main(folder="examples_output", draws=1000):
    school = np.repeat(np.arange(SCHOOLS), 4)
    y = np.random.default_rng(3).normal(0.0, 1.0, len(school))  # the schools do not differ
    noise = predcp.normal_noise(jax.random.key(0), 64, (SCHOOLS,))
    complexity = predcp.PredictiveComplexity(
        likelihood, lambda tau, xi: jnp.sqrt(tau) * xi, jnp.zeros(SCHOOLS), school, noise
    )
    # a 10% chance that the schools move predictions by more than half a nat
    prior = predcp.ComplexityPrior(predcp.LogCauchy.from_tail(0.5, 0.1), complexity)
    cases = {"PredCP": (prior.log_scale(), True), "half-Cauchy(5)": (dist.HalfCauchy(5.0), False)}
    figure, ax = plt.subplots(layout="constrained")
    for offset, (name, (scale_prior, log_scale)) in enumerate(cases.items()):
        mcmc = MCMC(NUTS(model), num_warmup=draws, num_samples=draws, progress_bar=False)
        mcmc.run(jax.random.key(1), school, y, scale_prior, log_scale)
        low, middle, high = np.quantile(mcmc.get_samples()["intercepts"], [0.05, 0.5, 0.95], axis=0)
        at = np.arange(SCHOOLS) + 0.25 * offset
        ax.errorbar(at, middle, [middle - low, high - middle], fmt="o", label=name)
        print(f"{name}: variance between schools {np.median(mcmc.get_samples()['tau']):.3f}")
    ax.set(xlabel="school", ylabel="effect, 90% interval", ylim=(-1.5, 2.0))
    ax.legend(title="schools that do not differ", ncols=2, loc="upper center")
    Path(folder).mkdir(exist_ok=True)
    figure.savefig(Path(folder) / "random_intercept.png", dpi=120)


if __name__ == "__main__":
    main()
