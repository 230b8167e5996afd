"""Figure 3: the joint density of two layers' scales, and functions that a small resnet draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.ticker import LogLocator, NullLocator

import predcp
from predcp.paper.figures._figure import Data, PaperFigure
from predcp.paper.figures._networks import depth_map, draw_weights, functions
from predcp.paper.figures._style import panel

KINDS = {"plain": False, "residual": True}
WIDTH, DRAWS, INPUTS = 20, 10, 20
SHOWN, MEASURED = 8, 400
_REACH = 2.0


def joint_priors() -> dict[str, predcp.ComplexityPrior]:
    """The depth-wise log-Cauchy priors of a plain and of a residual network with two layers."""
    x = jnp.linspace(-2.0, 2.0, INPUTS)
    weights = draw_weights(jax.random.key(1), DRAWS, 2, WIDTH)
    # Output weights of variance 1 / width and layers of variance tau / width keep kappa near tau.
    weights = weights._replace(
        output=weights.output / WIDTH**0.5, hidden=weights.hidden / WIDTH**0.5
    )
    return {
        name: predcp.ComplexityPrior(
            predcp.LogCauchy(scale=1.0), depth_map(weights, x, residual, normalize=None)
        )
        for name, residual in KINDS.items()
    }


def joint_data(points: int) -> Data:
    """Log densities of the scales and of their logs, and the median of tau_2 given tau_1.

    **Arguments**: `points` a side.
    """
    # Fine near the axes, where the density has poles.
    linear = _REACH * ((np.arange(points) + 0.5) / points) ** 2
    linear = linear * _REACH / linear[-1]
    logarithmic = np.geomspace(1e-3, 1e3, points)
    result: Data = {"linear": linear, "logarithmic": logarithmic}
    for name, prior in joint_priors().items():
        grids = (linear, logarithmic)
        pairs = np.stack([np.stack(np.meshgrid(grid, grid), axis=-1) for grid in grids])
        values = np.asarray(prior.log_prob(pairs))
        result[f"linear/{name}"] = values[0]
        result[f"logarithmic/{name}"] = values[1] + np.log(pairs[1]).sum(-1)
        # kappa_2 is proportional to tau_2 and has median 1.
        kappa = np.asarray(prior.complexity(np.stack([logarithmic, np.ones(points)], axis=-1)))
        result[f"unit/{name}"] = kappa[:, 0] / logarithmic
        result[f"median/{name}"] = 1.0 / kappa[:, 1]
    return result


def draw_joint(axes: Any, data: Data) -> None:
    """Columns plain and residual; scales above, log scales below."""
    for column, name in enumerate(KINDS):
        above, below = axes[0, column], axes[1, column]
        for ax, axis in ((above, "linear"), (below, "logarithmic")):
            # Both networks share levels: equal colours are equal densities.
            both = np.stack([data[f"{axis}/{kind}"] for kind in KINDS])
            low = np.quantile(both, 0.02 if axis == "linear" else 0.0)
            high = np.quantile(both, 0.8 if axis == "linear" else 1.0)
            if axis == "logarithmic":
                low = max(low, high - 8.0)
            ax.contourf(
                data[axis],
                data[axis],
                data[f"{axis}/{name}"],
                levels=np.linspace(low, high, 13),
                cmap="cividis",
                extend="both",
            )
        title = f"{name} network"
        panel(above, "ab"[column], title, r"$\tau_1$", r"$\tau_2$")
        above.set(xlim=(0.0, _REACH), ylim=(0.0, _REACH), aspect="equal")
        above.set(xticks=[0.0, 0.5, 1.0, 1.5, 2.0], yticks=[0.0, 0.5, 1.0, 1.5, 2.0])
        below.plot(
            data["logarithmic"],
            data[f"median/{name}"],
            color="white",
            linestyle="--",
            linewidth=1.2,
        )
        panel(below, "cd"[column], f"{name}, densities of logs", r"$\tau_1$", r"$\tau_2$")
        ends = (data["logarithmic"][0], data["logarithmic"][-1])
        below.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
        for axis in (below.xaxis, below.yaxis):
            axis.set_major_locator(LogLocator(base=100.0))
            axis.set_minor_locator(NullLocator())


def joint_caption(data: Data) -> str:
    first, last = data["median/plain"][0], data["median/plain"][-1]
    return f"""\
**The joint density of (tau_1, tau_2)**, the variances of the weights of two layers, under the
depth-wise log-Cauchy (0, 1) PredCP: plain network (left), residual network (right). Bright is
dense, on a logarithmic scale of colours. Above: the density of the scales, as in the paper.
Below: the density of their logs, with the median of tau_2 given tau_1 dashed.

*What to see.* In a residual network the two layers are nearly independent while tau_1 is small; a
large tau_1 leaves less for tau_2. In a plain network the second layer's divergence is
proportional to tau_1 tau_2, and the prior is a ridge along tau_1 tau_2 = constant.

*What we chose.* ReLU layers of width {WIDTH} on one input, unit noise, {DRAWS} draws, {INPUTS}
inputs; the reference of a layer is the network with that layer switched off.

*Where the paper is wrong.*
- For plain networks it compares h_l with h_(l-1) through the output weights. Taken literally that
  divergence is positive at tau = 0 and first falls: not a bijection, and `diagnose` refuses it.
- "tau_2 cannot grow unless tau_1 > 0" is not what the density says. The smaller tau_1, the
  *larger* tau_2 is expected to be: its conditional median is inversely proportional to tau_1,
  {first:.3g} at tau_1 = .001 and {last:.3g} at 1000. The empty strip along the vertical axis of
  (a) is the mass that has moved up, out of the picture.
- Both densities are infinite on *both* axes (the log-Cauchy's pole), which the linear picture
  hides.
"""


def functions_data(points: int) -> Data:
    """Functions of a two-layer resnet under both priors, from the same weights.

    **Arguments**: `points` of the input.
    """
    x = jnp.linspace(-3.0, 3.0, points)
    keys = jax.random.split(jax.random.key(4), 4)
    complexity = depth_map(
        draw_weights(keys[0], DRAWS, 2, WIDTH), jnp.linspace(-3.0, 3.0, INPUTS), True, None
    )
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity)
    weights = draw_weights(keys[1], MEASURED, 2, WIDTH)
    horseshoe = jnp.log(
        jnp.asarray(predcp.paper.horseshoe_variance().sample(keys[2], (MEASURED, 2)))
    )
    scales = {
        "horseshoe": horseshoe,
        "horseshoe over width": horseshoe - jnp.log(float(WIDTH)),
        "PredCP": prior.log_scale().sample(keys[3], (MEASURED,)),
    }
    result: Data = {"x": np.asarray(x)}
    off = jnp.full((MEASURED, 2), -jnp.inf)
    reference = np.asarray(functions(weights, off, x, True, None))
    for name, log_tau in scales.items():
        drawn = np.asarray(functions(weights, log_tau, x, True, None))
        result[f"log tau/{name}"] = np.asarray(log_tau)
        result[f"functions/{name}"] = drawn[:SHOWN]
        result[f"moved/{name}"] = 0.5 * np.mean((drawn - reference) ** 2, axis=1)
    result["reference"] = reference[:SHOWN]
    return result


def draw_functions(axes: Any, data: Data) -> None:
    """The same networks under two priors on their scales."""
    grey, colours = "#BBBBBB", {"horseshoe": "black", "PredCP": "#D55E00"}
    reach = 3.0 * np.max(np.abs(data["reference"]))
    for ax, letter, name in zip(axes.ravel(), "ab", colours):
        ax.plot(data["x"], data["reference"].T, color=grey, linewidth=0.8)
        ax.plot(data["x"], data[f"functions/{name}"].T, color=colours[name], linewidth=1.1)
        panel(ax, letter, name, "$x$", "$f(x)$", xlim=(-3.0, 3.0), ylim=(-reach, reach))


def functions_caption(data: Data) -> str:
    middle = {name[6:]: np.median(data[name]) for name in data if name.startswith("moved/")}
    close = np.mean(data["moved/PredCP"] < 1.0)
    return f"""\
**Functions from a residual network with two hidden layers**: the same {SHOWN} networks with layer
scales from the horseshoe (a) and from the depth-wise log-Cauchy (0, 1) PredCP (b). Grey: the
reference, the same networks with both layers switched off.

*What to see.* The horseshoe knows nothing of the network: weights of variance tau in a layer of
width {WIDTH} move predictions a long way, and the functions leave their references (and the
picture) altogether. The PredCP knows what a scale does: most functions stay around their
references and some leave them. Of {MEASURED} networks the typical distance from the reference is
{middle["PredCP"]:.2g} nats under the PredCP, against {middle["horseshoe"]:.2g} under the
horseshoe; {close:.0%} of the PredCP's stay within 1 nat. Divide the horseshoe's scales by the
width, by hand, and it becomes {middle["horseshoe over width"]:.2g}: the PredCP finds that unit by
itself.

*What we chose.* Standard normal weights, width {WIDTH}, a bias in the first layer, {DRAWS} draws
in the map; the horseshoe as sqrt(tau) ~ C+(0, 1), one scale a layer.

*Where the paper is wrong.* It draws the scales with Algorithm 1 (step 5e-5, 20 steps, from tau =
kappa), which moves by a thousandth: its scales are draws of kappa itself. Ours are inverted to
rounding.
"""


JOINT = PaperFigure(
    name="figure-3a",
    paper="Figure 3a",
    title="joint density of two layers' scales, plain and residual",
    panels=(2, 2),
    size=(5.6, 5.6),
    data=joint_data,
    draw=draw_joint,
    caption=joint_caption,
    points=70,
)
FUNCTIONS = PaperFigure(
    name="figure-3b",
    paper="Figure 3b",
    title="functions of a small resnet, horseshoe against PredCP",
    panels=(1, 2),
    size=(6.6, 2.5),
    data=functions_data,
    draw=draw_functions,
    caption=functions_caption,
    points=200,
)
