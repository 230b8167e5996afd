"""Appendix C: functions of 5 and 25 layers under three priors, residual and plain."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import predcp
from predcp.paper.figures._figure import Data, PaperFigure
from predcp.paper.figures._networks import depth_map, draw_weights, functions
from predcp.paper.figures._style import panel

DEPTHS = (5, 25)
KINDS = {"residual": True, "plain": False}
PRIORS = {"normal": "#0072B2", "horseshoe": "black", "PredCP": "#D55E00"}
WIDTH, DRAWS, INPUTS, SHOWN, MEASURED = 30, 5, 40, 5, 40


def turns(values: np.ndarray) -> np.ndarray:
    """Total variation in units of the range: 1 for a monotone function, 2 for one bump.

    **Arguments**: functions, shape (count, points).
    """
    variation = np.sum(np.abs(np.diff(values, axis=1)), axis=1)
    return variation / np.ptp(values, axis=1)


def data(points: int) -> Data:
    """Functions from the same weights under each prior, the scales behind them, and their turns.

    **Arguments**: `points` of the input.
    """
    x = jnp.linspace(-3.0, 3.0, points)
    result: Data = {"x": np.asarray(x)}
    for row, (kind, residual) in enumerate(KINDS.items()):
        for depth in DEPTHS:
            keys = jax.random.split(jax.random.key(10 * row + depth), 4)
            inputs = jnp.linspace(-3.0, 3.0, INPUTS)
            complexity = depth_map(
                draw_weights(keys[0], DRAWS, depth, WIDTH), inputs, residual, normalize="batch"
            )
            prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity)
            fresh = draw_weights(keys[1], MEASURED, depth, WIDTH)
            horseshoe = predcp.paper.horseshoe_variance().sample(keys[2], (MEASURED, depth))
            scales = {
                "normal": jnp.zeros((MEASURED, depth)),
                "horseshoe": jnp.log(jnp.asarray(horseshoe)),
                "PredCP": prior.log_scale().sample(keys[3], (MEASURED,)),
            }
            for name, log_tau in scales.items():
                case = f"{kind}/{depth}/{name}"
                drawn = np.asarray(functions(fresh, log_tau, x, residual, "batch"))
                result[f"functions/{case}"] = drawn[:SHOWN]
                result[f"log tau/{case}"] = np.asarray(log_tau)
                result[f"turns/{case}"] = turns(drawn)
                result[f"size/{case}"] = np.sqrt(np.mean(drawn**2, axis=1))
    return result


def draw(axes: Any, data: Data) -> None:
    """Columns: priors; rows: kind and depth. Every function is in units of its own size."""
    cases = [(kind, depth) for kind in KINDS for depth in DEPTHS]
    for row, (kind, depth) in enumerate(cases):
        for column, (name, colour) in enumerate(PRIORS.items()):
            ax, case = axes[row, column], f"{kind}/{depth}/{name}"
            drawn = data[f"functions/{case}"]
            low, high = drawn.min(1, keepdims=True), drawn.max(1, keepdims=True)
            width = 0.5 if (kind, depth) == ("plain", max(DEPTHS)) else 1.0
            ax.plot(data["x"], ((drawn - low) / (high - low)).T, color=colour, linewidth=width)
            number = np.median(data[f"turns/{case}"])
            title = f"{name}: {number:.1f} turns, size {_short(np.median(data[f'size/{case}']))}"
            ylabel = f"{kind}, {depth} layers" if column == 0 else ""
            panel(ax, "", title, "$x$" if row == len(cases) - 1 else "", ylabel)
            ax.set(xlim=(-3.0, 3.0), ylim=(-0.05, 1.05), yticks=[0, 1])
            ax.tick_params(labelbottom=row == len(cases) - 1)
            ax.title.set_fontsize(7.0)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10.0 else f"{value:.1f}"


def caption(data: Data) -> str:
    def median(what: str, kind: str, depth: int, name: str) -> float:
        return float(np.median(data[f"{what}/{kind}/{depth}/{name}"]))

    lines = [
        f"| {kind}, {depth} layers | "
        + " | ".join(
            f"{median('turns', kind, depth, name):.2f} / {median('size', kind, depth, name):.3g}"
            for name in PRIORS
        )
        + " |"
        for kind in KINDS
        for depth in DEPTHS
    ]
    table = "\n".join(["| | normal | horseshoe | PredCP |", "|---|---|---|---|", *lines])
    return f"""\
**Five functions from networks of 5 and 25 hidden layers**, residual (above) and plain (below),
whose layers have variance 1 (standard normal weights), a horseshoe scale each, or the depth-wise
log-Cauchy (0, 1) PredCP. A row uses the same weights under all three priors. Each function is
drawn in units of its own range.

*What to see.* The number of turns (total variation over range: 1 is monotone, 2 is one bump) and
the size, medians over {MEASURED} functions, turns / root mean square:

{table}

In residual networks the PredCP's functions have fewer turns at either depth. They are not always
smaller: twenty-five heavy-tailed layers make a large one likely.

*What we chose.* Width {WIDTH}, one input, standard normal weights everywhere else, {DRAWS} draws
in the map, batch normalisation *before* each layer's weights, which keeps the divergence linear
in tau. The horseshoe is sqrt(tau) ~ C+(0, 1).

*Where the paper is wrong, or silent.*
- It normalises "at each hidden layer" without saying where. After the weights, the layer's output
  would not depend on tau at all, and there would be no prior.
- In a *plain* network with normalisation the next layer undoes the scale of the last: tau_1 to
  tau_(L-1) change nothing, and the three priors differ in the size of the functions, not in their
  shape. "The PredCP's samples are notably simpler" is a statement about residual networks.
- Its scales come from Algorithm 1, which returns kappa itself to three digits (see Figure 3b).
"""


FIGURE = PaperFigure(
    name="appendix-functions",
    paper="Appendix C",
    title="functions of 5 and 25 layers under normal, horseshoe and PredCP",
    panels=(4, 3),
    size=(7.0, 6.8),
    data=data,
    draw=draw,
    caption=caption,
    points=150,
)
