"""Does yesterday predict today? The coefficient of an AR(1) process.

Reference model: the series is white noise.
"""

from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import predcp


def series(rho, count, days=30):
    """Stationary AR(1) series of unit variance, shape (days, count)."""
    y = np.random.default_rng(2024).standard_normal((days, count))
    for day in range(1, days):
        y[day] = rho * y[day - 1] + np.sqrt(1.0 - rho**2) * y[day]
    return y


def posterior(beta, y):
    """Posterior weights (points, series) of prior draws of beta = rho / sqrt(1 - rho^2)."""
    now, before, precision = y[1:], y[:-1], 1.0 + beta[:, None, None] ** 2
    misfit = precision * (now - beta[:, None, None] / np.sqrt(precision) * before) ** 2
    height = 0.5 * np.sum(np.log(precision) - misfit, axis=1)
    return np.asarray(jax.nn.softmax(height, axis=0))


def main(folder="examples_output", points=1001):
    # The one-step prediction N(rho y, 1 - rho^2) moves by beta standard deviations of its noise, so
    # the expected divergence is beta^2 / 2. The statement: a 30% chance of more than 0.1 nats.
    pi = predcp.LogCauchy.from_tail(upper=0.1, probability=0.3, scale=2.0)
    prior = predcp.ComplexityPrior(pi, predcp.CoefficientEvidence(1.0))
    level = (np.arange(points) + 0.5) / points
    beta, flat = np.clip(prior.icdf(level), -1e3, 1e3), 2.0 * level - 1.0
    figure, axes = plt.subplot_mosaic([[0, 1], [2, 3]], figsize=(8.0, 5.0), layout="constrained")
    for name, b in {"ECP": beta, "uniform": flat / np.sqrt(1.0 - flat**2)}.items():
        rho = b / np.sqrt(1.0 + b**2)
        bars = {"bins": np.linspace(-1.0, 1.0, 41), "density": True, "alpha": 0.5, "label": name}
        axes[0].hist(rho, **bars)
        for panel, truth in ((1, 0.0), (2, 0.6)):
            axes[panel].hist(rho, weights=posterior(b, series(truth, 1))[:, 0], **bars)
            axes[panel].set(title=f"posterior, one series, truth {truth:g}", xlabel=r"$\rho$")
        truths = np.linspace(0.0, 0.9, 10)
        errors = [rho @ posterior(b, series(truth, 300)) - truth for truth in truths]
        error = np.sqrt(np.mean(np.square(errors), axis=1))
        axes[3].plot(truths, error)
        print(f"{name}: error at rho 0: {error[0]:.3f}, 0.5: {error[5]:.3f}, 0.9: {error[9]:.3f}")
    axes[0].set(title="prior", xlabel=r"$\rho$", ylim=(0.0, 2.2))
    axes[0].legend()
    axes[3].set(title="error of the mean, 300 series", xlabel=r"true $\rho$", ylim=(0.0, None))
    Path(folder).mkdir(exist_ok=True)
    figure.savefig(Path(folder) / "ar1_coefficient.png", dpi=120)


if __name__ == "__main__":
    main()
