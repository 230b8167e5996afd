"""Appendix B.2: the outputs of a softmax as its logits are multiplied."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array

import predcp
from predcp.paper.figures._figure import Data, PaperFigure, peak
from predcp.paper.figures._style import NOTE, panel

LOGITS = (2.0, 1.85, 0.5)
_COLOURS = ("#0072B2", "#E69F00", "#D55E00")


def probabilities(tau: Any) -> np.ndarray:
    """Softmax of `tau` times the logits, classes last."""
    return np.asarray(jax.nn.softmax(jnp.asarray(tau)[..., None] * jnp.array(LOGITS), axis=-1))


def _likelihood(theta: Array, x: Array) -> Any:
    return dist.Categorical(logits=theta * x)


def _parameters(tau: Array, xi: Array) -> Array:
    return tau * xi


def complexity() -> predcp.PredictiveComplexity:
    """The divergence of those outputs from the uniform ones at tau = 0."""
    return predcp.PredictiveComplexity(
        _likelihood, _parameters, jnp.array(0.0), jnp.array([LOGITS]), jnp.ones(1)
    )


def data(points: int) -> Data:
    """Three outputs, the peak of the middle one, and the divergence from uniform.

    **Arguments**: `points` a curve.
    """
    tau = np.geomspace(1e-2, 1e2, points)
    divergence = complexity()
    return {
        "tau": tau,
        "outputs": probabilities(tau),
        "peak": np.array(peak(lambda t: probabilities(t)[..., 1], 0.1, 10.0)),
        "kappa": np.asarray(divergence(tau)),
        "supremum": np.asarray(divergence.supremum),
    }


def draw(axes: Any, data: Data) -> None:
    """Outputs on the left, the divergence and its bound on the right."""
    left, right = axes.ravel()
    for index, (logit, colour) in enumerate(zip(LOGITS, _COLOURS)):
        left.plot(data["tau"], data["outputs"][:, index], color=colour, label=f"$x = {logit:g}$")
    at, height = data["peak"]
    left.plot(at, height, "o", color=_COLOURS[1], markersize=3.5)
    left.annotate(
        rf"$\tau = {at:.2f}$", (at, height), (0.0, -11.0), textcoords="offset points", color=NOTE,
        fontsize=7.0, ha="center",
    )  # fmt: skip
    left.legend(loc="upper left")
    panel(left, "a", "softmax outputs", r"$\tau$, multiplier of the logits", "probability")
    left.set(xscale="log", xlim=(1e-2, 1e2), ylim=(0.0, 1.0))
    right.plot(data["tau"], data["kappa"], color="black")
    right.axhline(float(data["supremum"]), color=NOTE, linestyle="--", linewidth=0.9)
    right.annotate("$\\log 3$", (1.2e-2, float(data["supremum"]) - 0.08), color=NOTE, fontsize=7.0)
    panel(right, "b", "divergence from uniform", r"$\tau$", r"$\kappa = D(\tau)$ (nats)")
    right.set(xscale="log", xlim=(1e-2, 1e2), ylim=(0.0, 1.2))


def caption(data: Data) -> str:
    at, height = data["peak"]
    mass = float(predcp.LogCauchy(scale=1.0).cdf(float(data["supremum"])))
    return f"""\
**Softmax outputs as the logits (2, 1.85, .5) are multiplied by tau** (a), and their divergence
from the uniform outputs at tau = 0 (b).

*What to see.* The largest and the smallest output are monotone. The middle one rises to
{height:.3f} at tau = {at:.2f}, then falls: it fails the horizontal-line test. The divergence
increases all the same, but towards a bound.

*What we chose.* The multiplier on a logarithmic axis. Panel (b) is ours.

*Where the paper is wrong.*
- It concludes that the divergence is a bijection on to the positive numbers. It is increasing and
  *bounded*: a categorical prediction is at most log 3 = {float(data["supremum"]):.3f} nats from
  uniform. A log-Cauchy (0, 1) pulled back through it has mass {mass:.2f}, not 1, and sampling by
  inversion has no root for the rest. `ComplexityPrior` truncates pi at the bound.
- Strict convexity of the divergence alone does not make it increasing in tau; for fixed logits it
  is.
- The interval on which the smallest output decreases is printed as (1/D, 0).
"""


FIGURE = PaperFigure(
    name="appendix-softmax",
    paper="Appendix B.2",
    title="softmax outputs against tau",
    panels=(1, 2),
    size=(6.6, 2.5),
    data=data,
    draw=draw,
    caption=caption,
)
