"""Six charts of a prior: pi, the map, the scale, a coefficient, shrinkage, and functions."""

from typing import Any

import numpy as np

from predcp import plot
from predcp.explore._choices import Choices
from predcp.explore._curves import Curves
from predcp.explore._network import inputs
from predcp.explore._svg import GREY, INK, Panel

_HORSESHOE = {"colour": INK, "label": "horseshoe", "dash": "5 4", "width": 1.6}
_POINTS = 61


def charts(
    choices: Choices, pi: Any, layers: list[tuple[str, Curves]], functions: np.ndarray
) -> list[str]:
    """The six charts, one SVG each.

    **Arguments**: `choices`; `pi`; `layers`, names and curves of the scales, the main one last;
    `functions`, shape (count, points), on `function_grid`.
    """
    colour = plot.colour(pi)
    panels = [
        _pi(choices, colour, layers[-1][1]),
        _map(choices, colour, layers),
        _scale(choices, colour, layers),
        _marginal(choices, colour, layers[-1][1]),
        _shrinkage(colour, layers[-1][1]),
        _functions(choices, colour, functions),
    ]
    return [panel.render() for panel in panels]


def unit(choices: Choices) -> str:
    """The unit of the divergence."""
    return "" if choices.divergence == "squared_hellinger" else "nats"


def _kappa_label(choices: Choices) -> str:
    return "κ (nats)" if unit(choices) else "κ (squared Hellinger, at most 1)"


def _pi(choices: Choices, colour: str, curves: Curves) -> Panel:
    kappa, density = np.asarray(curves.kappa), np.asarray(curves.pi)
    log = choices.log_axes
    limits = _ends(kappa) if log else (0.0, float(kappa[-1]))
    ylabel = "density of log κ" if log else "π(κ)"
    panel = Panel(
        "π(κ): how far predictions may move",
        _kappa_label(choices),
        ylabel,
        limits,
        (0.0, _top(density)),
        xlog=log,
    )
    panel.line(kappa, density, colour, fill=True)
    panel.rule(x=float(curves.kappa_levels[1]))
    return panel


def _map(choices: Choices, colour: str, layers: list[tuple[str, Curves]]) -> Panel:
    last = layers[-1][1]
    log = choices.log_axes
    tau, kappa = np.asarray(last.tau), np.asarray(last.divergence)
    ylim = _ends(kappa) if log else (0.0, 1.05 * float(kappa[-1]))
    if log:
        ylim = (
            ylim[0],
            max(ylim[1], min(2.0 * float(last.supremum), 1e300))
            if last.supremum < 1e300
            else ylim[1],
        )
    panel = Panel(
        "κ = D(τ): effect of the scale on predictions",
        "τ (a variance)",
        _kappa_label(choices),
        _ends(tau) if log else (0.0, float(tau[-1])),
        ylim,
        xlog=log,
        ylog=log,
        legend_left=True,
    )
    for (name, curves), shade in zip(layers, _shades(colour, len(layers))):
        panel.line(curves.tau, curves.divergence, shade, label=name if len(layers) > 1 else "")
    if np.isfinite(last.supremum):
        panel.rule(y=float(last.supremum))
    return panel


def _scale(choices: Choices, colour: str, layers: list[tuple[str, Curves]]) -> Panel:
    log = choices.log_axes
    every = [np.asarray(curves.density) for _, curves in layers]
    taus = [np.asarray(curves.tau) for _, curves in layers]
    low, high = min(tau[0] for tau in taus), max(tau[-1] for tau in taus)
    panel = Panel(
        "p(τ): the prior on the scale",
        "τ (a variance)",
        "density of log τ" if log else "p(τ)",
        (float(low), float(high)) if log else (0.0, float(taus[-1][-1])),
        (0.0, max(_top(density) for density in every)),
        xlog=log,
    )
    panel.line(layers[-1][1].tau, layers[-1][1].horseshoe, **_HORSESHOE)
    for (name, curves), shade in zip(layers, _shades(colour, len(layers))):
        words = name if len(layers) > 1 else "this prior"
        panel.line(curves.tau, curves.density, shade, label=words, fill=curves is layers[-1][1])
    return panel


def _marginal(choices: Choices, colour: str, curves: Curves) -> Panel:
    def mirrored(half: Any, sign: float = 1.0) -> np.ndarray:
        half = np.asarray(half)
        return np.concatenate([sign * half[::-1], half])

    beta = mirrored(curves.beta, -1.0)
    density = mirrored(curves.marginal)
    thing = "weight" if choices.model == "network" else "coefficient"
    # The lower of the two poles sets the height, so that both curves are visible.
    other = np.asarray(curves.marginal_horseshoe)
    top = min(_top(density), max(4.0 * float(other[len(other) // 12]), 0.2 * _top(density)))
    panel = Panel(
        f"p(β): the marginal of a {thing}",
        "β",
        "p(β)",
        (-float(beta[-1]), float(beta[-1])),
        (0.0, top),
    )
    panel.line(beta, mirrored(curves.marginal_horseshoe), **_HORSESHOE)
    panel.line(beta, density, colour, label="this prior", fill=True)
    return panel


def _shrinkage(colour: str, curves: Curves) -> Panel:
    x, density = np.asarray(curves.shrinkage), np.asarray(curves.profile)
    # Cut the poles at the ends, and show a mode between them.
    top = max(4.0, 1.12 * float(density[(x > 0.05) & (x < 0.95)].max()))
    panel = Panel(
        "Shrinkage: 1 is the reference, 0 the data",
        "shrinkage 1 / (1 + τ)",
        "density",
        (0.0, 1.0),
        (0.0, top),
    )
    panel.line(x, curves.profile_horseshoe, **_HORSESHOE)
    panel.line(x, density, colour, label="this prior", fill=True)
    return panel


def function_grid(choices: Choices) -> np.ndarray:
    """The inputs at which functions are drawn."""
    return inputs() if choices.model == "network" else np.linspace(-2.0, 2.0, _POINTS)


def _functions(choices: Choices, colour: str, functions: np.ndarray) -> Panel:
    x = function_grid(choices)
    logistic = choices.model == "logistic"
    if logistic:
        ylim, ylabel = (0.0, 1.0), "P(y = 1)"
    else:
        reach = np.quantile(np.abs(functions).max(1), 0.6)
        ylim = (-float(_round(reach)), float(_round(reach)))
        ylabel = "mean of y"
    network = choices.model == "network"
    where = "x" if network else "main direction of the design (sd)"
    panel = Panel(
        "Functions drawn from the prior", where, ylabel, (float(x[0]), float(x[-1])), ylim
    )
    for each in functions:
        panel.line(
            x, each, colour, width=1.3 if network else 1.0, opacity=0.75 if network else 0.55
        )
    panel.line(x, np.full_like(x, 0.5 if logistic else 0.0), GREY, dash="3 3", width=1.0)
    return panel


def _top(density: np.ndarray) -> float:
    """The height of a chart that shows the bulk of a curve and cuts its poles."""
    finite = density[np.isfinite(density)]
    if not finite.size or finite.max() <= 0.0:
        return 1.0
    return 1.12 * float(min(finite.max(), 6.0 * np.quantile(finite, 0.8) + 1e-300))


def _ends(values: np.ndarray) -> tuple[float, float]:
    inside = values[np.isfinite(values) & (values > 0.0)]
    return (float(inside[0]), float(inside[-1])) if inside.size else (0.1, 10.0)


def _round(value: float) -> float:
    """The next of 1, 2, 5, 10, ... above a value."""
    value = float(np.clip(value, 1e-3, 1e6))
    base = 10.0 ** np.floor(np.log10(value))
    return next(base * step for step in (1.0, 2.0, 5.0, 10.0) if base * step >= value)


def _shades(colour: str, number: int) -> list[str]:
    return [colour] if number == 1 else [GREY, colour]
