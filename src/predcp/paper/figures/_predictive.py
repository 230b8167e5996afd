"""Figure 2: the ECP against the PredCP of a linear regression."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array

import predcp
from predcp import plot
from predcp.paper.figures._figure import Data, PaperFigure, peak
from predcp.paper.figures._priors import EXPONENTIAL, LOG_CAUCHY, divergence_priors
from predcp.paper.figures._style import panel

# Two draws at +-1 have the variance of a normal, all that a quadratic divergence sees.
_DRAWS = (-1.0, 1.0)


def _likelihood(beta: Array, x: Array) -> dist.Distribution:
    return dist.Normal(x * beta, 1.0)


def _parameters(tau: Array, xi: Array) -> Array:
    return jnp.sqrt(tau) * xi


def maps() -> dict[str, predcp.Complexity]:
    """The divergence of the evidence, and the expected divergence of the predictions, at x = 1."""
    predictive = predcp.PredictiveComplexity(
        _likelihood, _parameters, jnp.array(0.0), jnp.ones(1), jnp.array(_DRAWS)
    )
    return {"ECP": predcp.LinearEvidence(1.0, noise_scale=1.0), "PredCP": predictive}


def data(points: int) -> Data:
    """Both densities under both pi, and both maps.

    **Arguments**: `points` a curve.
    """
    tau, wide = plot.from_zero(6.0, points), np.geomspace(1e-2, 1e2, points)
    result: Data = {"tau": tau, "wide tau": wide}
    for kind, complexity in maps().items():
        result[f"kappa/{kind}"] = np.asarray(complexity(wide))
        for name in (EXPONENTIAL, LOG_CAUCHY):
            prior = predcp.ComplexityPrior(divergence_priors()[name], complexity)
            result[f"{kind}/{name}"] = np.exp(prior.log_prob(tau))
            result[f"median/{kind}/{name}"] = np.asarray(prior.icdf(0.5))
            if (kind, name) == ("ECP", EXPONENTIAL):
                mode = peak(lambda t, prior=prior: np.exp(prior.log_prob(t)), 0.05, 6.0)
                result["mode/ECP/exponential"] = np.array(mode)
    return result


def draw(axes: Any, data: Data) -> None:
    """Densities on the left, the maps behind them on the right."""
    left, right = axes.ravel()
    styles = {"ECP": "--", "PredCP": "-"}
    for name in (EXPONENTIAL, LOG_CAUCHY):
        for kind, style in styles.items():
            colour = plot.colour(divergence_priors()[name])
            label = f"{kind}, {name}"
            left.plot(
                data["tau"], data[f"{kind}/{name}"], color=colour, linestyle=style, label=label
            )
    for kind, style in styles.items():
        right.plot(
            data["wide tau"], data[f"kappa/{kind}"], color="black", linestyle=style, label=kind
        )
    left.legend(handlelength=2.4)
    right.legend(handlelength=2.4)
    panel(left, "a", "priors, $x = 1$", r"$\tau$ (a variance)", r"$p(\tau)$")
    left.set(xlim=(0.0, 6.0), ylim=(0.0, 1.1))
    panel(right, "b", "their divergences", r"$\tau$ (a variance)", r"$\kappa = D(\tau)$ (nats)")
    right.set(xscale="log", yscale="log", xlim=(1e-2, 1e2))


def caption(data: Data) -> str:
    medians = {kind: float(data[f"median/{kind}/{LOG_CAUCHY}"]) for kind in ("ECP", "PredCP")}
    mode = data["mode/ECP/exponential"][0]
    return f"""\
**ECP (dashed) against PredCP (solid)** for the linear regression of Figure 1 at x = 1,
exponential (mean .5) and log-Cauchy (0, 1). (b) The two divergences: `(tau - log(1 + tau)) / 2`
and `tau / 2`.

*What to see.* Taking the expectation outside makes every scale look more complex, so the PredCP
moves to the left: the median of tau under the log-Cauchy falls from {medians["ECP"]:.2f} to
{medians["PredCP"]:.2f}. Under the exponential the PredCP is highest at tau = 0, while the ECP
vanishes there and is highest at tau = {mode:.2f}. Near the reference the ECP's divergence is of
second order in tau and the PredCP's of first.

*What we chose.* sigma_y = 1; the draws of the coefficient are -1 and 1 standard deviations, exact
for a quadratic divergence. Panel (b) is ours.

*Beyond the paper.* The second mode that the log-Cauchy ECP has (Figure 1b) is gone: with `kappa =
tau / 2` a log-Cauchy of scale 1 is the narrowest one without it, a point of inflection at tau = 2
/ e.
"""


FIGURE = PaperFigure(
    name="figure-2",
    paper="Figure 2",
    title="ECP against PredCP of a linear regression",
    panels=(1, 2),
    size=(6.6, 2.5),
    data=data,
    draw=draw,
    caption=caption,
)
