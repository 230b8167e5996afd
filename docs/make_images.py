"""Make the pictures of the README and the pages: `python docs/make_images.py [NAME ...]`."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

import predcp
from predcp import plot
from predcp._support.png import png
from predcp.experiments import Store
from predcp.paper import Training, depth_picture, training_picture

FOLDER = Path(__file__).parent / "images"
_COLOURS = {"ECP": "#0072B2", "PredCP": "#D55E00"}

# Body-mass index, blood pressure and log triglycerides of the first 20 patients of the diabetes
# study of Efron, Hastie, Johnstone and Tibshirani (2004).
_PATIENTS = """
32.1 101 4.8598  21.6  87 3.8918  30.5  93 4.6728  25.3  84 4.8903  23.0 101 4.2905
22.6  89 4.1897  22.0  90 3.9512  26.2 114 4.2485  32.1  83 4.4773  30.0  85 5.3845
18.6  97 3.9512  28.0  85 3.5835  23.7  92 4.3041  26.2  97 5.0626  24.0  91 4.2905
24.7 118 5.0370  30.3 109 5.2149  27.5 111 4.9416  25.4  84 4.4427  24.7  83 4.5433
"""


def design() -> Float[Array, "20 3"]:
    """Three standardised measurements of twenty patients."""
    rows = np.array(_PATIENTS.split(), dtype=float).reshape(-1, 3)
    return jnp.asarray((rows - rows.mean(0)) / rows.std(0))


def _logistic(beta: Array, x: Array) -> dist.Distribution:
    return dist.Bernoulli(logits=x @ beta)


def _standard_deviation(tau: Array, xi: Array) -> Array:
    return tau * xi


def patient_priors(draws: int = 10) -> dict[str, predcp.ComplexityPrior]:
    """An ECP and a PredCP on the standard deviation of the coefficients of a logistic regression.

    **Arguments**: `draws`, the number of draws of the coefficients that the PredCP averages over.
    """
    x, pi = design(), predcp.LogCauchy(scale=1.0)
    predictive = predcp.PredictiveComplexity(
        likelihood=_logistic,
        parameters=_standard_deviation,
        reference=jnp.zeros(x.shape[1]),
        x=x,
        noise=predcp.normal_noise(jax.random.key(0), draws, (x.shape[1],)),
    )
    return {
        "ECP": predcp.ComplexityPrior(pi, predcp.LogisticEvidence(x)),
        "PredCP": predcp.ComplexityPrior(pi, predictive),
    }


def ecp_and_predcp() -> Figure:
    """The densities of both priors of the README, and the complexity maps behind them."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
    tau = plot.from_zero(4.0)
    for name, prior in patient_priors().items():
        style = {"color": _COLOURS[name], "label": name, "linewidth": 2.0}
        plot.density(prior, left, tau, **style)
        left.fill_between(*left.lines[-1].get_data(), color=_COLOURS[name], alpha=0.12)
        plot.complexity(prior.complexity, right, np.geomspace(1e-2, 1e2, 400), **style)
        median = prior.icdf(jnp.asarray(0.5))
        right.plot(median, prior.complexity(median), "o", color=_COLOURS[name])
    figure.suptitle("Logistic regression, 20 patients, 3 measurements: priors on one scale")
    left.set(title="The priors", xlim=(0.0, 4.0), ylim=(0.0, 1.0))
    left.set_xlabel(r"standard deviation of the coefficients, $\tau$")
    right.set(title="What a scale does to predictions", xlim=(1e-2, 1e2), ylim=(1e-4, 1e2))
    right.set_xlabel(r"standard deviation of the coefficients, $\tau$")
    right.set_ylabel(r"divergence from a fair coin, $\kappa$ (nats)")
    right.annotate("at most log 2", (1.3e-2, 0.8), color=_COLOURS["PredCP"])
    right.plot([], [], "o", color="grey", label="median of the prior")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    right.legend(frameon=False, loc="upper left")
    return figure


def pis() -> dict[str, predcp.DivergencePrior]:
    """The priors on the divergence, with the paper's parameters."""
    return {
        "exponential (mean .5)": predcp.Exponential(mean=0.5),
        "gamma (.2, 2)": predcp.Gamma(shape=0.2, scale=2.0),
        "log-Cauchy (1)": predcp.LogCauchy(scale=1.0),
        "mixture (.5)": predcp.GammaExponential(weight=0.5, shape=0.2, scale=2.0, mean=0.5),
    }


def pi_and_ecp() -> Figure:
    """Figure 1a and 1b: priors on the divergence, and the ECPs they give at x = 1."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained")
    grid = plot.from_zero(6.0)
    for name, pi in pis().items():
        prior = predcp.ComplexityPrior(pi, predcp.LinearEvidence(1.0))
        plot.divergence_prior(pi, left, grid / 2.0, label=name)
        plot.density(prior, right, grid, label=name)
    left.set(title=r"priors on the divergence, $\pi(\kappa)$", ylim=(0.0, 2.0), xlim=(0.0, 3.0))
    right.set(title=r"ECPs of a linear regression, $x = 1$", ylim=(0.0, 0.5), xlim=(0.0, 6.0))
    left.legend(frameon=False)
    return figure


def marginals() -> Figure:
    """Figures 1c and 1d: the coefficient's marginal at x = 1 and x = .25."""
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.4), sharey=True, layout="constrained")
    side = plot.from_zero(4.0, 150)
    beta = np.concatenate([-side[::-1], side])
    for ax, x in zip(axes, (1.0, 0.25)):
        for name, pi in pis().items():
            prior = predcp.ComplexityPrior(pi, predcp.LinearEvidence(x))
            plot.marginal(prior, ax, beta, label=name)
        ax.set(title=f"$x = {x:g}$", ylim=(0.0, 0.6), xlim=(-4.0, 4.0))
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def second_mode() -> Figure:
    """The second mode of the log-Cauchy ECP."""
    figure, ax = plt.subplots(figsize=(5.0, 3.0), layout="constrained")
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.LinearEvidence(1.0))
    tau = plot.from_zero(10.0)
    plot.density(prior, ax, tau)
    height = float(np.exp(prior.log_prob(2.455)))
    ax.plot(2.455, height, "o", color="black")
    ax.annotate(rf"$\tau = 2.455$, height {height:.3f}", (2.455, height), (3.0, 0.2))
    ax.axvline(0.15, color="grey", linestyle=":")
    ax.annotate("the paper's .15", (0.15, 0.38), (0.35, 0.38), color="grey")
    ax.set(ylim=(0.0, 0.42), xlim=(0.0, 10.0))
    return figure


def _linear(beta: Array, x: Array) -> dist.Distribution:
    return dist.Normal(x * beta, 1.0)


def _variance(tau: Array, xi: Array) -> Array:
    return jnp.sqrt(tau) * xi


def linear_ecp_and_predcp() -> Figure:
    """Figure 2: the ECP (dashed) and the PredCP (solid) of a linear regression, x = 1."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained")
    draws = predcp.normal_noise(jax.random.key(0), 1024, (), method="sobol")
    maps = {
        "ECP": predcp.LinearEvidence(1.0),
        "PredCP": predcp.PredictiveComplexity(
            _linear, _variance, jnp.array(0.0), jnp.ones(1), draws
        ),
    }
    tau = plot.from_zero(6.0)
    for name, map in maps.items():
        style = "--" if name == "ECP" else "-"
        plot.complexity(map, left, np.geomspace(1e-3, 1e3, 200), label=name, linestyle=style)
        for pi_name in ("exponential (mean .5)", "log-Cauchy (1)"):
            prior = predcp.ComplexityPrior(pis()[pi_name], map)
            plot.density(prior, right, tau, label=f"{name}, {pi_name}", linestyle=style)
    left.legend(frameon=False)
    right.legend(frameon=False, fontsize="small")
    right.set(ylim=(0.0, 1.0), xlim=(0.0, 6.0))
    return figure


def joint_density() -> Figure:
    """Figure 3a: the joint density of the scales of two layers, residual and plain."""
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")
    hidden = jnp.abs(jax.random.normal(jax.random.key(1), (20, 8)))
    weights = predcp.normal_noise(jax.random.key(2), 10, (2, 8, 8))
    output_weights = jax.random.normal(jax.random.key(3), (8, 1)) / 8**0.5
    grid = np.geomspace(1e-3, 1e2, 80)
    for ax, residual in zip(axes, (True, False)):
        map = predcp.DepthComplexity(hidden, weights, output_weights, residual=residual)
        prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), map)
        plot.joint_density(prior, ax, grid, grid)
        ax.set(title="residual network" if residual else "plain network")
    figure.suptitle(r"density of $(\log \tau_1, \log \tau_2)$")
    return figure


def depth() -> Figure:
    """Test error and active layers against depth, from the stored results."""
    return depth_picture(Store(FOLDER.parents[1] / "results", "depth"))


def few_shot_modules() -> Figure:
    """Accuracy, scale and kappa over training, from the stored histories of one seed."""
    path = FOLDER.parents[1] / "results" / "table3-training.json"
    runs = [Training.from_json(run) for run in json.loads(path.read_text(encoding="utf-8"))]
    shown = (
        (1, "predcp-log-cauchy-1e-3"),
        (5, "flat"),
        (5, "predcp-half-cauchy-1e-3"),
        (5, "shrinkage-log-cauchy-1e-1"),
    )
    return training_picture([run for key in shown for run in runs if (run.shots, run.prior) == key])


def sensitivity() -> Figure:
    """The posterior of the program on the page about sensitivity, with pi raised to three powers."""
    page = (FOLDER.parent / "how-to" / "sensitivity.md").read_text(encoding="utf-8")
    program = page.split("```python\n")[1].split("```")[0]
    made: dict[str, Any] = {}
    exec(program, made)
    sigma, log_pi = (made["tree"][group]["sigma"] for group in ("posterior", "log_prior"))
    log_sigma, log_pi = np.log(np.ravel(sigma)), np.ravel(log_pi)
    figure, ax = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
    grid = np.linspace(np.log(0.02), np.log(3.0), 300)
    for power, colour in {0.8: "#0072B2", 1.0: "black", 1.25: "#D55E00"}.items():
        weights = np.exp((power - 1.0) * (log_pi - log_pi.max()))
        density = gaussian_kde(log_sigma, weights=weights)(grid)
        label = r"the prior as stated" if power == 1.0 else rf"$\pi^{{{power:g}}}$"
        ax.plot(np.exp(grid), density, color=colour, label=label)
    ax.set(xscale="log", ylim=(0.0, None), yticks=[])
    ax.set_xlabel(r"standard deviation of the log odds of hospitals, $\sigma$")
    ax.set_ylabel(r"posterior density of $\log \sigma$")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(frameon=False)
    return figure


def audit() -> Figure:
    """The audit that the page for modellers shows, made by the code of that page."""
    page = (FOLDER.parent / "how-to" / "modeller.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    names: dict[str, Any] = {}
    # The program, and what its prior says.
    exec("\n".join(code[:2]), names)
    return names["figure"]


FIGURES: tuple[Callable[[], Figure], ...] = (
    ecp_and_predcp,
    pi_and_ecp,
    marginals,
    second_mode,
    linear_ecp_and_predcp,
    joint_density,
    depth,
    few_shot_modules,
    sensitivity,
    audit,
)


def main() -> None:
    """Save every picture under docs/images, or those named."""
    jax.config.update("jax_enable_x64", True)
    for make in [each for each in FIGURES if each.__name__ in (sys.argv[1:] or [each.__name__])]:
        print(make.__name__, flush=True)
        (FOLDER / f"{make.__name__}.png").write_bytes(png(make()))
        plt.close("all")


if __name__ == "__main__":
    main()
