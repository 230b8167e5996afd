"""Figure 1: priors on the divergence, the ECPs they give, and the coefficient's marginals."""

from typing import Any

import numpy as np

import predcp
from predcp import plot
from predcp.paper.figures._figure import Data, PaperFigure, peak
from predcp.paper.figures._priors import LOG_CAUCHY, divergence_priors
from predcp.paper.figures._style import HORSESHOE, NOTE, panel

_FEATURES = (1.0, 0.25)


def data(points: int) -> Data:
    """Curves on grids that follow the poles at 0, and the second mode of the log-Cauchy ECP.

    **Arguments**: `points` a curve (a third of that for the marginals, which are quadratures).
    """
    kappa, tau = plot.from_zero(3.0, points), plot.from_zero(6.0, points)
    side = plot.from_zero(4.0, max(points // 3, 2))
    beta = np.concatenate([-side[::-1], side])
    result: Data = {"kappa": kappa, "tau": tau, "beta": beta}
    for name, pi in divergence_priors().items():
        result[f"pi/{name}"] = np.exp(pi.log_prob(kappa))
        for x in _FEATURES:
            prior = predcp.ComplexityPrior(pi, predcp.LinearEvidence(x, noise_scale=1.0))
            half = np.asarray(predcp.marginal(prior, side))
            result[f"marginal x={x:g}/{name}"] = np.concatenate([half[::-1], half])
            if x == 1.0:
                result[f"ecp/{name}"] = np.exp(prior.log_prob(tau))
    half = np.asarray(predcp.marginal(predcp.paper.horseshoe_variance(), side, "variance"))
    result["marginal/horseshoe"] = np.concatenate([half[::-1], half])
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.LinearEvidence(1.0))
    result["second mode"] = np.array(peak(lambda t: np.exp(prior.log_prob(t)), 1.0, 6.0))
    return result


def draw(axes: Any, data: Data) -> None:
    """Four panels in a row."""
    first, second, third, fourth = axes.ravel()
    for name, pi in divergence_priors().items():
        line = {"color": plot.colour(pi), "label": name}
        first.plot(data["kappa"], data[f"pi/{name}"], **line)
        second.plot(data["tau"], data[f"ecp/{name}"], **line)
        for ax, x in ((third, 1.0), (fourth, 0.25)):
            ax.plot(data["beta"], data[f"marginal x={x:g}/{name}"], **line)
    for ax in (third, fourth):
        ax.plot(data["beta"], data["marginal/horseshoe"], **HORSESHOE)
    at, height = data["second mode"]
    second.plot(at, height, "o", color=plot.colour(divergence_priors()[LOG_CAUCHY]), markersize=3.5)
    second.annotate(
        rf"$\tau = {at:.2f}$",
        (at, height),
        (at + 0.2, height + 0.085),
        color=NOTE,
        fontsize=7.0,
        arrowprops={"arrowstyle": "-", "color": NOTE, "linewidth": 0.6, "shrinkB": 3.0},
    )
    panel(first, "a", "priors on the divergence", r"$\kappa$ (nats)", r"$\pi(\kappa)$")
    panel(second, "b", "ECPs, $x = 1$", r"$\tau$ (a variance)", r"$p(\tau)$")
    panel(third, "c", "marginals, $x = 1$", r"$\beta$", r"$p(\beta)$")
    panel(fourth, "d", "marginals, $x = 0.25$", r"$\beta$", r"$p(\beta)$")
    first.set(xlim=(0.0, 3.0), ylim=(0.0, 2.0))
    second.set(xlim=(0.0, 6.0), ylim=(0.0, 0.5))
    for ax in (third, fourth):
        ax.set(xlim=(-4.0, 4.0), ylim=(0.0, 0.6))
    first.legend()
    fourth.legend(
        handles=[fourth.lines[-1]], loc="upper right", handlelength=1.9, borderaxespad=0.0
    )


def caption(data: Data) -> str:
    at, height = data["second mode"]
    return f"""\
**The ECP of a linear regression** `y = x beta + noise`, `beta ~ N(0, tau)`, against the reference
`beta = 0`. (a) Three priors on the divergence: exponential with mean .5, gamma (.2, 2),
log-Cauchy (0, 1). (b) The priors on the variance tau that they give at x = 1. (c, d) The density
of the coefficient at x = 1 and x = .25; the horseshoe is dashed.

*What to see.* The exponential vanishes at tau = 0 and keeps the coefficient away from the
reference; the gamma has a pole there and a light tail; the log-Cauchy has both a pole and a
second mode, the dot in (b). The same pi is a wider prior where the feature is small.

*What we chose.* The paper does not print the noise: sigma_y = 1.

*Where the paper is wrong.*
- Its text puts the second mode of the log-Cauchy "at tau = .15". It is at tau = {at:.3f};
  {height:.3f} is its height.
- The printed normaliser of the gamma has `lambda_2` where `lambda_2 ** lambda_1` belongs; ours
  integrates to one.
- "As x goes to 0 the ECP becomes heavier tailed": it becomes wider. The prior at x is exactly
  that at x = 1 with tau divided by x squared, so (d) is (c) stretched by four; the order of the
  tail does not change.
- Its caption names subfigure (c) twice; the second is (d).
"""


FIGURE = PaperFigure(
    name="figure-1",
    paper="Figure 1",
    title="priors on the divergence, ECPs and marginals of a linear regression",
    panels=(1, 4),
    size=(9.6, 2.3),
    data=data,
    draw=draw,
    caption=caption,
    points=450,
)
