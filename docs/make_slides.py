"""Make the pictures of the sliders on the page "The idea": `python docs/make_slides.py`."""

from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import predcp
from predcp import plot

FOLDER = Path(__file__).parent / "images" / "idea"
FEATURES = (0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 5.0, 10.0)
UPPERS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_KAPPA, _TAU = (1e-5, 1e3), (1e-3, 1e3)
_QUARTILES = np.array([0.25, 0.5, 0.75])


def change_of_variables(pi: predcp.DivergencePrior, x: float, title: str) -> Figure:
    """Draw a prior on the divergence, the map of a linear regression, and the prior on its scale.

    **Arguments**: `pi`, the prior; `x`, the feature of the one row; `title`.
    """
    complexity = predcp.LinearEvidence(x, noise_scale=1.0)
    prior = predcp.ComplexityPrior(pi, complexity)
    colour = plot.colour(pi)
    kappa, tau = np.geomspace(*_KAPPA, 400), np.geomspace(*_TAU, 400)
    figure, axes = plt.subplots(
        2, 2, figsize=(7.0, 5.0), layout="constrained", width_ratios=(1, 3), height_ratios=(3, 1.2)
    )
    (left, middle), (corner, below) = axes
    left.sharey(middle)
    below.sharex(middle)
    corner.axis("off")
    # Densities of the logarithms: on logarithmic axes, equal areas are equal probabilities.
    left.fill_betweenx(kappa, np.exp(pi.log_prob(kappa)) * kappa, color=colour, alpha=0.3)
    below.fill_between(tau, np.exp(prior.log_prob(tau)) * tau, color=colour, alpha=0.3)
    middle.loglog(tau, complexity(tau), color="black", linewidth=2)
    for k, t in zip(np.asarray(pi.icdf(_QUARTILES)), np.asarray(prior.icdf(_QUARTILES))):
        style = {"color": colour, "linewidth": 2.0 if k == float(pi.icdf(0.5)) else 1.0}
        left.axhline(k, **style)
        middle.plot([_TAU[0], t, t], [k, k, _KAPPA[0]], **style)
        below.axvline(t, **style)
    middle.set(xlim=_TAU, ylim=_KAPPA, title=title)
    left.set(ylabel=r"divergence $\kappa$ (nats)", title=r"$\pi(\kappa)$", xlim=(0.35, 0.0))
    below.set(xlabel=r"variance of the coefficient, $\tau$", ylabel=r"$p(\tau)$", ylim=(0.0, 0.7))
    middle.annotate(r"$\kappa = D(\tau)$", (0.03, 0.9), xycoords="axes fraction")
    left.set_xticks([])
    below.set_yticks([])
    for ax in (left, middle, below):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def save(figure: Figure, name: str) -> None:
    """Save a picture as a small PNG.

    **Arguments**: `figure`, the picture; `name`, its file name without the suffix.
    """
    path = FOLDER / f"{name}.png"
    figure.savefig(path, dpi=100)
    plt.close(figure)
    with Image.open(path) as image:
        image.convert("RGB").quantize(32, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    """Save every picture under docs/images/idea."""
    jax.config.update("jax_enable_x64", True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for index, x in enumerate(FEATURES):
        save(
            change_of_variables(predcp.LogCauchy(scale=1.0), x, f"a feature of size {x:g}"),
            f"x-{index}",
        )
    for index, upper in enumerate(UPPERS):
        pi = predcp.LogCauchy.from_tail(upper, 0.1)
        title = rf"$P(\kappa > {upper:g}) = 0.1$"
        save(change_of_variables(pi, 1.0, title), f"u-{index}")


if __name__ == "__main__":
    main()
