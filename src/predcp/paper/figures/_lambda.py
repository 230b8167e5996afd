"""Appendix A.1: the ECP as the parameter of pi varies, mixture and log-Cauchy."""

from typing import Any

import numpy as np

import predcp
from predcp import plot
from predcp.paper.figures._figure import Data, PaperFigure
from predcp.paper.figures._priors import mixture
from predcp.paper.figures._style import panel, shades

WEIGHTS = (0.1, 0.3, 0.5, 0.7, 0.9)
SCALES = (0.25, 0.5, 1.0, 2.0)


def data(points: int) -> Data:
    """One curve per weight of the mixture, and one per scale of the log-Cauchy.

    **Arguments**: `points` a curve.
    """
    tau = plot.from_zero(8.0, points)
    evidence = predcp.LinearEvidence(1.0, noise_scale=1.0)
    result: Data = {"tau": tau}
    for weight in WEIGHTS:
        prior = predcp.ComplexityPrior(mixture(weight), evidence)
        result[f"mixture/{weight:g}"] = np.exp(prior.log_prob(tau))
    for scale in SCALES:
        prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=scale), evidence)
        result[f"log-Cauchy/{scale:g}"] = np.exp(prior.log_prob(tau))
        result[f"median/{scale:g}"] = np.asarray(prior.icdf(0.5))
    return result


def draw(axes: Any, data: Data) -> None:
    """Two panels, light to dark as the parameter grows."""
    left, right = axes.ravel()
    families = (
        (left, "mixture", WEIGHTS, predcp.GammaExponential),
        (right, "log-Cauchy", SCALES, predcp.LogCauchy),
    )
    for ax, name, values, family in families:
        for value, tone in zip(values, shades(plot.colour(family), len(values))):
            ax.plot(
                data["tau"], data[f"{name}/{value:g}"], color=tone, label=rf"$\lambda = {value:g}$"
            )
        ax.legend()
    panel(left, "a", "mixture: weight of the gamma", r"$\tau$ (a variance)", r"$p(\tau)$")
    panel(right, "b", "log-Cauchy: scale", r"$\tau$ (a variance)", r"$p(\tau)$")
    left.set(xlim=(0.0, 6.0), ylim=(0.0, 0.5))
    right.set(xlim=(0.0, 8.0), ylim=(0.0, 0.55))


def caption(data: Data) -> str:
    median = float(data["median/1"])
    return f"""\
**The ECP as pi's parameter varies** (linear regression, x = 1, sigma_y = 1). (a) The mixture
`lambda` gamma (.2, 2) `+ (1 - lambda)` exponential (mean .5). (b) The log-Cauchy with scale
lambda.

*What to see.* In (a) lambda moves mass from the exponential's bump to the gamma's pole at 0, one
for one. In (b) a small scale gathers the prior around its median, tau = {median:.2f}, with only a
thin pole; a large one spreads it over orders of magnitude, and pole and tail take all.

*What we chose.* The values of lambda, which the paper's text does not give.

*Where the paper is wrong, or silent.* The scale of a log-Cauchy with location 0 does not move its
median: kappa = 1, and here tau = {median:.2f}, for every curve of (b). It says how sure one is,
not how much complexity is expected; for that the location must move (`LogCauchy.from_tail`). The
gamma's printed normaliser is wrong (see Figure 1).
"""


FIGURE = PaperFigure(
    name="appendix-lambda",
    paper="Appendix A.1, subfigures a and b",
    title="the ECP as lambda varies, mixture and log-Cauchy",
    panels=(1, 2),
    size=(6.6, 2.5),
    data=data,
    draw=draw,
    caption=caption,
)
