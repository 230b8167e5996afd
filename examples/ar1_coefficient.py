"""Does yesterday tell anything about today? The coefficient of an AR(1) process.

Reference model: the series is white noise.
"""

from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import predcp


def log_likelihood(rho, y):
    """Of a stationary AR(1) series with unit variance: rho changes its memory, not its size."""
    noise = 1.0 - rho[:, None] ** 2
    residual = y[1:] - rho[:, None] * y[:-1]
    return np.sum(-0.5 * residual**2 / noise - 0.5 * np.log(noise), axis=1)


def main(folder="examples_output", points=4001):
    # One step ahead, N(rho y, 1 - rho^2) for a y of unit variance. In units of its noise the prediction
    # moves by beta = rho / sqrt(1 - rho^2), so the expected divergence is exactly beta^2 / 2.
    # At most a 10% chance that knowing yesterday is worth more than .05 nats.
    pi = predcp.Gamma.from_tail(upper=0.05, probability=0.1, shape=0.5)
    prior = predcp.ComplexityPrior(pi, predcp.CoefficientEvidence(1.0))
    step = 2.0 / points
    rho = np.linspace(-1.0 + step / 2, 1.0 - step / 2, points)
    beta = rho / np.sqrt(1.0 - rho**2)
    densities = {
        "PredCP": np.exp(prior.log_prob(jnp.asarray(beta))) * (1.0 - rho**2) ** -1.5,
        "uniform": np.full(points, 0.5),
    }
    figure, axes = plt.subplots(1, 3, figsize=(10.0, 3.0), layout="constrained")
    series, rng = {"white noise": 0.0, "memory .6": 0.6}, np.random.default_rng(5)
    for name, density in densities.items():
        axes[0].plot(rho, density, label=name)
        print(f"{name}: prior P(|rho| > .9) = {density[np.abs(rho) > 0.9].sum() * step:.3f}")
    for ax, (title, truth) in zip(axes[1:], series.items()):
        y = [rng.normal()]
        for _ in range(29):
            y.append(truth * y[-1] + np.sqrt(1.0 - truth**2) * rng.normal())
        height = log_likelihood(rho, np.array(y))
        for name, density in densities.items():
            posterior = density * np.exp(height - height.max())
            posterior = posterior / (posterior.sum() * step)
            ax.plot(rho, posterior, label=name)
            print(f"{title}, {name}: posterior mean of rho {np.sum(posterior * rho) * step:.2f}")
        ax.set(title=f"posterior, {title}, 30 days", xlabel=r"$\rho$", ylim=(0.0, None))
    axes[0].set(title="prior", xlabel=r"$\rho$", ylabel="density", ylim=(0.0, 2.0))
    axes[0].legend(frameon=False)
    Path(folder).mkdir(exist_ok=True)
    figure.savefig(Path(folder) / "ar1_coefficient.png", dpi=120)


if __name__ == "__main__":
    main()
