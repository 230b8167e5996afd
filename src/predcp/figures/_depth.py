"""Figure 3: the joint density of two layers' scales, and functions that a small resnet draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.ticker import LogLocator, NullLocator

import predcp
from predcp.figures._figure import Data, PaperFigure
from predcp.figures._networks import depth_map, draw_weights, functions
from predcp.figures._style import panel

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
            predcp.LogCauchy(1.0), depth_map(weights, x, residual, normalize=None)
        )
        for name, residual in KINDS.items()
    }


def joint_data(points: int) -> Data:
    """Log densities of the scales and of their logs, and the median of tau_2 given tau_1.

    **Arguments**: `points` a side.
    """
    linear = _REACH * (np.arange(points) + 0.5) / points
    logarithmic = np.geomspace(1e-3, 1e3, points)
    result: Data = {"linear": linear, "logarithmic": logarithmic}
    for name, prior in joint_priors().items():
        for axis in ("linear", "logarithmic"):
            pairs = np.stack(np.meshgrid(result[axis], result[axis]), axis=-1)
            value = np.asarray(prior.log_prob(pairs))
            if axis == "logarithmic":
                value = value + np.log(pairs).sum(-1)
            result[f"{axis}/{name}"] = value
        result[f"unit/{name}"] = np.asarray(prior.complexity(jnp.ones(2)))
        below = np.asarray(prior.cdf(jnp.stack([jnp.asarray(logarithmic), jnp.ones(points)], -1)))
        at = jnp.stack([jnp.asarray(below[:, 0]), jnp.full(points, 0.5)], -1)
        result[f"median/{name}"] = np.asarray(prior.icdf(at))[:, 1]
    return result


def draw_joint(axes: Any, data: Data) -> None:
    """Columns plain and residual; scales above, log scales below."""
    for column, name in enumerate(KINDS):
        above, below = axes[0, column], axes[1, column]
        for ax, axis in ((above, "linear"), (below, "logarithmic")):
            # Both networks share levels: equal colours are equal densities.
            both = np.stack([data[f"{axis}/{kind}"] for kind in KINDS])
            low = np.quantile(both, 0.05 if axis == "linear" else 0.0)
            high = np.quantile(both, 0.995 if axis == "linear" else 1.0)
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
        below.plot(
            data["logarithmic"], data[f"median/{name}"], color="white", linestyle="--", linewidth=1.2
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
**The joint density of (tau_1, tau_2)**, the variances of the weights of two layers, under the depth-wise log-Cauchy (0, 1)
PredCP: plain network (left), residual network (right). Bright is dense, on a logarithmic scale of colours. Above: the
density of the scales, as in the paper. Below: the density of their logs, with the median of tau_2 given tau_1
dashed.

*What to see.* In a residual network the two layers are nearly independent while tau_1 is small; a large tau_1 leaves less
for tau_2. In a plain network the second layer's divergence is proportional to tau_1 tau_2, and the prior is a ridge
along tau_1 tau_2 = constant.

*What we chose.* ReLU layers of width {WIDTH} on one input, unit noise, {DRAWS} draws, {INPUTS} inputs; the reference of a
layer is the network with that layer switched off.

*Where the paper is wrong.*
- For plain networks it compares h_l with h_(l-1) through the output weights. Taken literally that divergence is positive at
  tau = 0 and first falls: not a bijection, and `diagnose` refuses it.
- "tau_2 cannot grow unless tau_1 > 0" is not what the density says. The smaller tau_1, the *larger* tau_2 is expected to be: its
  conditional median is inversely proportional to tau_1, {first:.3g} at tau_1 = .001 and {last:.3g} at 1000. The empty strip
  along the vertical axis of (a) is the mass that has moved up, out of the picture.
- Both densities are infinite on *both* axes (the log-Cauchy's pole), which the linear picture hides.
"""


def functions_data(points: int) -> Data:
    """Functions of a two-layer resnet under both priors, from the same weights.

    **Arguments**: `points` of the input.
    """
    x = jnp.linspace(-3.0, 3.0, points)
    prior = joint_priors()["residual"]
    key_scale, key_weights, key_horseshoe = jax.random.split(jax.random.key(4), 3)
    weights = draw_weights(key_weights, MEASURED, 2, WIDTH)
    weights = weights._replace(
        output=weights.output / WIDTH**0.5, hidden=weights.hidden / WIDTH**0.5
    )
    scales = {
        "horseshoe": predcp.horseshoe_variance().sample(key_horseshoe, (MEASURED, 2)),
        "PredCP": prior.sample(key_scale, (MEASURED,)),
    }
    result: Data = {"x": np.asarray(x)}
    reference = np.asarray(functions(weights, jnp.zeros((MEASURED, 2)), x, True, None))
    for name, tau in scales.items():
        drawn = np.asarray(functions(weights, jnp.asarray(tau), x, True, None))
        result[f"tau/{name}"] = np.asarray(tau)
        result[f"functions/{name}"] = drawn[:SHOWN]
        result[f"moved/{name}"] = 0.5 * np.mean((drawn - reference) ** 2, axis=1)
    result["reference"] = reference[:SHOWN]
    return result


def draw_functions(axes: Any, data: Data) -> None:
    """The same networks under two priors on their scales."""
    grey, colours = "#BBBBBB", {"horseshoe": "black", "PredCP": "#D55E00"}
    for ax, letter, name in zip(axes.ravel(), "ab", colours):
        ax.plot(data["x"], data["reference"].T, color=grey, linewidth=0.8)
        ax.plot(data["x"], data[f"functions/{name}"].T, color=colours[name], linewidth=1.1)
        panel(ax, letter, name, "$x$", "$f(x)$", xlim=(-3.0, 3.0), ylim=(-14.0, 14.0))


def functions_caption(data: Data) -> str:
    close = {name: float(np.mean(data[f"moved/{name}"] < 0.1)) for name in ("horseshoe", "PredCP")}
    middle = {name: float(np.median(data[f"moved/{name}"])) for name in close}
    return f"""\
**Functions from a residual network with two hidden layers**: the same eight networks with layer scales from the horseshoe
(a) and from the depth-wise log-Cauchy (0, 1) PredCP (b). Grey: the reference, the same networks with both layers
switched off.

*What to see.* The horseshoe, which knows nothing of the network, moves nearly every function from its reference. Under the
PredCP many stay on it and a few leave it altogether: of {MEASURED} networks, {close["PredCP"]:.0%} stay within .1 nats of
the reference, against {close["horseshoe"]:.0%} under the horseshoe. The typical distance is
{middle["PredCP"]:.2g} nats against {middle["horseshoe"]:.2g}.

*What we chose.* The network of Figure 3a, a layer's weights of variance tau / width; the horseshoe as sqrt(tau) ~ C+(0,
1), one scale a layer. Functions that leave the picture are cut, not dropped.

*Where the paper is wrong.* It draws the scales with Algorithm 1 (step 5e-5, 20 steps, from tau = kappa), which moves by
a thousandth: its scales are draws of kappa itself. Ours are inverted to rounding.
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
    points=120,
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
