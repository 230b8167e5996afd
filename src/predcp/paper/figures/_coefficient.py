"""Appendix A.4: the ECP on the coefficient itself, and the non-local prior beside it."""

from typing import Any

import numpy as np

import predcp
from predcp import plot
from predcp.paper.figures._figure import Data, PaperFigure, peak
from predcp.paper.figures._priors import divergence_priors, mixture
from predcp.paper.figures._style import panel, shades

FEATURES = (0.5, 1.0, 2.0)
SCALES = (0.25, 0.5, 1.0, 1.5)
WEIGHTS = (0.1, 0.3, 0.5, 0.7)
VARIANCES = (0.25, 1.0, 3.0)
NOISE_SCALE = INTERCEPT_SCALE = 1.0
_REACH = 6.0


def prior_at(pi: predcp.DivergencePrior, x: float = 1.0) -> predcp.ComplexityPrior:
    """The prior on the slope of `y = beta_0 + beta x`, with unit noise and a unit normal intercept."""
    return predcp.ComplexityPrior(pi, predcp.CoefficientEvidence(x, NOISE_SCALE, INTERCEPT_SCALE))


def non_local(beta: np.ndarray, variance: float) -> np.ndarray:
    """The second product moment prior, `beta^2 / variance N(beta; 0, variance)`."""
    normal = np.exp(-(beta**2) / (2.0 * variance)) / np.sqrt(2.0 * np.pi * variance)
    return beta**2 / variance * normal


def data(points: int) -> Data:
    """Densities on both sides of 0, which the grid follows and leaves out, and the modes of some.

    **Arguments**: `points` a side.
    """
    kappa, side = plot.from_zero(3.0, points), plot.from_zero(_REACH, points)
    beta = np.concatenate([-side[::-1], side])
    result: Data = {"kappa": kappa, "beta": beta}
    for name, pi in divergence_priors().items():
        result[f"pi/{name}"] = np.exp(pi.log_prob(kappa))
        result[f"beta/{name}"] = np.exp(prior_at(pi).log_prob(beta))
    for x in FEATURES:
        result[f"x/{x:g}"] = np.exp(prior_at(predcp.LogCauchy(scale=1.0), x).log_prob(beta))
    for scale in SCALES:
        prior = prior_at(predcp.LogCauchy(scale=scale))
        result[f"scale/{scale:g}"] = np.exp(prior.log_prob(beta))
        # Between the dip and the far tail there is one maximum.
        found = peak(lambda b, prior=prior: np.exp(prior.log_prob(b)), 0.8, _REACH)
        result[f"mode/{scale:g}"] = np.array(found)
    for weight in WEIGHTS:
        result[f"weight/{weight:g}"] = np.exp(prior_at(mixture(weight)).log_prob(beta))
    for variance in VARIANCES:
        result[f"non-local/{variance:g}"] = non_local(beta, variance)
    return result


def draw(axes: Any, data: Data) -> None:
    """Six panels, two rows of three."""
    first, second, third, fourth, fifth, sixth = axes.ravel()
    for name, pi in divergence_priors().items():
        line = {"color": plot.colour(pi), "label": name}
        first.plot(data["kappa"], data[f"pi/{name}"], **line)
        second.plot(data["beta"], data[f"beta/{name}"], **line)
    red, amber = plot.colour(predcp.LogCauchy), plot.colour(predcp.GammaExponential)
    families = (
        (third, "x", "x", FEATURES, red),
        (fourth, "scale", r"\lambda", SCALES, red),
        (fifth, "weight", r"\lambda", WEIGHTS, amber),
        (sixth, "non-local", r"\sigma", VARIANCES, "#56B4E9"),
    )
    for ax, key, symbol, values, colour in families:
        for value, tone in zip(values, shades(colour, len(values))):
            label = f"${symbol} = {value:g}$"
            ax.plot(data["beta"], data[f"{key}/{value:g}"], color=tone, label=label)
    titles = ("three $\\pi$, $x = 1$", "log-Cauchy, varying $x$", "log-Cauchy, varying scale")
    titles += ("mixture, varying weight", "non-local prior, variance $\\sigma$")
    panel(first, "a", "priors on the divergence", r"$\kappa$ (nats)", r"$\pi(\kappa)$")
    first.set(xlim=(0.0, 3.0), ylim=(0.0, 2.0))
    for ax, letter, title in zip(axes.ravel()[1:], "bcdef", titles):
        reach = 5.5 if ax is fourth else 4.0
        panel(ax, letter, title, r"$\beta$", r"$p(\beta)$", xlim=(-reach, reach))
    for ax, top in ((second, 0.6), (third, 0.5), (fourth, 0.7), (fifth, 0.5), (sixth, 0.75)):
        ax.set_ylim(0.0, top)
    for ax in axes.ravel():
        # The middle of a panel belongs to the pole.
        ax.legend(loc="upper right", handlelength=1.2, borderaxespad=0.1)


def caption(data: Data) -> str:
    modes = ", ".join(f"{data[f'mode/{scale:g}'][0]:.2f} at {scale:g}" for scale in SCALES)
    return f"""\
**The ECP on a coefficient itself**: `y = beta_0 + beta x`, `beta_0 ~ N(0, 1)`, reference `beta =
0`, so that `kappa = beta^2 x^2 / (2 s^2)` with `s^2 = sigma_y^2 + sigma_beta0^2`. (a) Three pi.
(b) The priors they give at x = 1. (c) The log-Cauchy's at three x. (d) At four scales. (e) The
mixture's. (f) The non-local prior `beta^2 / sigma N(beta; 0, sigma)`, sigma a variance.

*What to see.* The exponential leaves a hole at the reference; the gamma has a pole there and
little mass elsewhere. The log-Cauchy has a pole *and* two outer modes, at |beta| = sqrt(2) (s / x) exp(-1 +
sqrt(1 - lambda^2 / 4)) for scales lambda below 2 (here {modes}). They move out as x falls: a
small feature needs a large coefficient.

*What we chose.* sigma_y = sigma_beta0 = 1; x, lambda and sigma, which the text does not give.

*Where the paper is wrong, or unclear.*
- Modes apart from the origin are called "the defining feature of non-local priors". Their
  definition is a density that *vanishes* at the null, as in (f). The log-Cauchy and mixture ECPs
  are infinite there; only the exponential's, in (b), is non-local in that sense.
- From lambda = 2 on the outer modes are gone: what is left of "balance" is a pole and a tail.
- The sigma of the non-local prior must be a variance for the printed density to integrate to one.
"""


FIGURE = PaperFigure(
    name="appendix-coefficient",
    paper="Appendix A.4, the figure of the prior on the coefficient",
    title="the prior on the coefficient itself, and the non-local prior",
    panels=(2, 3),
    size=(8.4, 4.6),
    data=data,
    draw=draw,
    caption=caption,
)
