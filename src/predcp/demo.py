"""The main job in small: an ECP and a PredCP for one design, in numbers, in words, in a picture.

Run it with `make demo` or `python -m predcp.demo`.
"""

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

import predcp

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
PICTURE = "ecp_and_predcp.png"
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


def _likelihood(beta: Array, x: Array) -> dist.Distribution:
    return dist.Bernoulli(logits=x @ beta)


def _parameters(tau: Array, xi: Array) -> Array:
    return tau * xi


def priors(draws: int = 10) -> dict[str, predcp.ComplexityPrior]:
    """An ECP and a PredCP on the standard deviation of the coefficients of a logistic regression.

    **Arguments**: `draws`, how many draws of the coefficients the PredCP averages over.
    """
    x, pi = design(), predcp.LogCauchy(1.0)
    predictive = predcp.PredictiveComplexity(
        likelihood=_likelihood,
        parameters=_parameters,
        reference=jnp.zeros(x.shape[1]),
        x=x,
        draws=predcp.normal_draws(jax.random.key(0), draws, (x.shape[1],)),
    )
    return {
        "ECP": predcp.ComplexityPrior(pi, predcp.LogisticEvidence(x)),
        "PredCP": predcp.ComplexityPrior(pi, predictive),
    }


def _quantiles(prior: predcp.ComplexityPrior) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of the scale, and the divergence at each."""
    tau = prior.icdf(jnp.asarray(QUANTILES))
    return np.asarray(tau), np.asarray(prior.complexity(tau))


def _table(name: str, tau: np.ndarray, kappa: np.ndarray) -> str:
    """Quantiles of the scale, the divergence there, and the probability of a typical patient."""
    typical = 1.0 / (1.0 + np.exp(-tau * np.sqrt(np.mean(np.sum(design() ** 2, axis=1)))))
    lines = [f"{name}: {'quantile':>9} {'tau':>10} {'kappa, nats':>13} {'0.5 becomes':>13}"]
    indent = " " * (len(name) + 2)
    for row in zip(QUANTILES, tau, kappa, typical):
        lines.append(indent + "{:>9.0%} {:>10.4g} {:>13.4g} {:>13.3f}".format(*row))
    return "\n".join(lines)


def _words(name: str, kappa: np.ndarray) -> str:
    # The ECP's divergence is between latent utilities, whose sign is the outcome.
    what = "latent utilities" if name == "ECP" else "predictions"
    median, most = kappa[QUANTILES.index(0.5)], kappa[QUANTILES.index(0.95)]
    return (
        f"Half of the {name} keeps {what} within {median:.3g} nats a patient of the reference,\n"
        f"a fair coin for everybody; 95% of it keeps them within {most:.3g} nats."
    )


def draw(both: dict[str, predcp.ComplexityPrior], path: Path) -> None:
    """Save the picture: the densities of both priors, and the complexity maps behind them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from predcp import plot

    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
    tau = plot.from_zero(4.0)
    for name, prior in both.items():
        style = {"color": _COLOURS[name], "label": name, "linewidth": 2.0}
        plot.density(prior, left, tau, **style)
        left.fill_between(*left.lines[-1].get_data(), color=_COLOURS[name], alpha=0.12)
        plot.complexity(prior.complexity, right, np.geomspace(1e-2, 1e2, 400), **style)
        median = [values[QUANTILES.index(0.5)] for values in _quantiles(prior)]
        right.plot(*median, "o", color=_COLOURS[name])
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
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(output: str | Path = "demo_output") -> None:
    """Build both priors, print what they say, save the picture of both.

    **Arguments**: `output`, the folder of the picture.
    """
    started = time.perf_counter()

    def progress(message: str) -> None:
        print(f"[{time.perf_counter() - started:5.1f} s] {message}", flush=True)

    progress("building an ECP and a PredCP for a logistic regression on a 20 x 3 design")
    both = priors()
    for name, prior in both.items():
        progress(f"computing quantiles of the {name} (the first use compiles)")
        tau, kappa = _quantiles(prior)
        print(f"\n{_table(name, tau, kappa)}\n\n{_words(name, kappa)}\n", flush=True)
        progress(f"diagnosing the {name}")
        print(f"\n{predcp.diagnose(prior)}\n", flush=True)
    print(
        "tau is the standard deviation of the coefficients. '0.5 becomes' is the predicted\n"
        "probability of a patient whose log-odds are one standard deviation up at that tau.\n"
    )
    path = Path(output) / PICTURE
    progress("drawing")
    draw(both, path)
    progress(f"picture of both: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="demo_output", help="folder of the picture")
    main(parser.parse_args().output)
