"""Appendix A.2: shrinkage profiles of the log-Cauchy and the mixture ECP at three features."""

from typing import Any

import numpy as np

import predcp
from predcp import plot
from predcp.paper.figures._figure import Data, PaperFigure
from predcp.paper.figures._priors import LOG_CAUCHY, MIXTURE, mixture
from predcp.paper.figures._style import HORSESHOE, panel, shades

FEATURES = (0.1, 1.0, 3.0)
_STRONGLY = 0.05


def data(points: int) -> Data:
    """Profiles on a grid that is fine at both ends, and P(shrinkage < .05).

    **Arguments**: `points` a curve.
    """
    shrinkage = 0.5 - 0.5 * np.cos(np.pi * np.linspace(0.0, 1.0, points + 2)[1:-1])
    result: Data = {
        "shrinkage": shrinkage,
        "horseshoe": np.asarray(
            predcp.shrinkage_profile(predcp.paper.horseshoe_variance(), shrinkage, "variance")
        ),
    }
    for name, pi in ((LOG_CAUCHY, predcp.LogCauchy(scale=1.0)), (MIXTURE, mixture(0.5))):
        for x in FEATURES:
            prior = predcp.ComplexityPrior(pi, predcp.LinearEvidence(x, noise_scale=1.0))
            result[f"{name}/{x:g}"] = np.asarray(predcp.shrinkage_profile(prior, shrinkage))
            threshold = 1.0 / _STRONGLY - 1.0
            result[f"unshrunk/{name}/{x:g}"] = np.asarray(predcp.tail_probability(prior, threshold))
    return result


def draw(axes: Any, data: Data) -> None:
    """One panel a pi, the horseshoe in both."""
    families = ((LOG_CAUCHY, predcp.LogCauchy), (MIXTURE, predcp.GammaExponential))
    for ax, (name, family), letter in zip(axes.ravel(), families, "ab"):
        for x, tone in zip(FEATURES, shades(plot.colour(family), len(FEATURES))):
            ax.plot(data["shrinkage"], data[f"{name}/{x:g}"], color=tone, label=f"$x = {x:g}$")
        ax.plot(data["shrinkage"], data["horseshoe"], **HORSESHOE)
        panel(ax, letter, f"{name} ECP", r"shrinkage $1 / (1 + \tau)$", "density")
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 5.0))
        ax.legend(loc="upper center", handlelength=2.2)


def caption(data: Data) -> str:
    share = {x: float(data[f"unshrunk/{MIXTURE}/{x:g}"]) for x in FEATURES}
    return f"""\
**Shrinkage profiles** of the log-Cauchy (0, 1) ECP (a) and of the mixture ECP, weight .5 (b), at
x = .1, 1 and 3; the horseshoe, Beta(1/2, 1/2), is dashed. The shrinkage `1 / (1 + tau)` is 1 when
the estimate is the reference's and 0 when it is left to the data.

*What to see.* The horseshoe asks for the same amount of shrinkage whatever the feature. An ECP
follows it: with x = .1 a coefficient hardly moves a prediction, and the mass lies at 0; with x =
3 it lies near 1.

*What we chose.* sigma_y = 1; the mixture's weight .5.

*Where the paper is wrong.*
- "The mixture ECP's profile cannot place any significant density at 0": its density does vanish
  in the limit, but at x = .1 {share[0.1]:.0%} of its mass lies below a shrinkage of {_STRONGLY},
  against {share[1.0]:.1%} at x = 1. The tail of pi decides the limit; the feature decides where
  the mass is.
- Beta(1/2, 1/2) belongs to `sqrt(tau) ~ C+(0, 1)` with tau a variance. The paper also writes `tau
  ~ C+`.
"""


FIGURE = PaperFigure(
    name="appendix-shrinkage",
    paper="Appendix A.2, subfigures c and d",
    title="shrinkage profiles at x = .1, 1 and 3",
    panels=(1, 2),
    size=(6.6, 2.5),
    data=data,
    draw=draw,
    caption=caption,
)
