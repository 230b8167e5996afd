"""Pictures of priors and complexity maps, on matplotlib axes the caller may pass.

Every function draws on `ax` (new axes when None) and returns the axes; further keyword
arguments go to matplotlib.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.distributions import constraints

import predcp
from predcp._maps import Unit
from predcp._summaries import unit_of
from predcp._support.extras import needs

with needs("plot"):
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

# The paper's colours of pi, in shades that colour-blind readers can tell apart.
_COLOURS: dict[type, str] = {
    predcp.Exponential: "#009E73",
    predcp.Gamma: "#AA4499",
    predcp.LogCauchy: "#D55E00",
    predcp.GammaExponential: "#E69F00",
    predcp.HalfCauchy: "#0072B2",
}
_OTHER_COLOUR = "#56B4E9"
_HORSESHOE = "horseshoe"
_POINTS = 400


def colour(pi: Any) -> str:
    """The colour that every picture gives to a pi, or to a prior made with it.

    **Arguments**: `pi`, a prior on a divergence or its class, or a `ComplexityPrior`.
    """
    if isinstance(pi, type):
        return _COLOURS.get(pi, _OTHER_COLOUR)
    return _COLOURS.get(_family(pi), _OTHER_COLOUR)


def _family(prior: Any) -> type:
    pi = getattr(prior, "pi", prior)
    # A NumPyro distribution used as pi is kept inside a wrapper.
    return type(getattr(pi, "given", pi))


def from_zero(upper: float, points: int = _POINTS) -> np.ndarray:
    """A grid from near 0 to `upper`, dense towards 0, where a density may have a pole.

    **Arguments**: the last point, and how many points.
    """
    return upper * np.linspace(0.0, 1.0, points + 1)[1:] ** 3


def density(prior: dist.Distribution, ax: Axes | None = None, tau: Any = None, **line: Any) -> Axes:
    """The density of a prior on one scale (Equations 6 and 9; Figures 1b and 2).

    **Arguments**
    - `prior`: a `ComplexityPrior`, its `log_scale()`, or any univariate NumPyro distribution.
    - `tau`: where to evaluate; up to the prior's 80% quantile when None.
    """
    _require_univariate("prior", prior)
    if tau is None:
        upper = _quantile("tau", prior, 0.8)
        lower = _quantile("tau", prior, 0.2) if _whole_line(prior) else upper / _POINTS
        tau = np.linspace(lower, upper, _POINTS)
    tau = _require_points("tau", tau, positive=not _whole_line(prior))
    ax = _draw(prior, ax, tau, np.exp(prior.log_prob(jnp.asarray(tau))), line)
    on_line = r"\log \tau" if isinstance(prior, predcp.LogScalePrior) else r"\beta"
    name = on_line if _whole_line(prior) else r"\tau"
    map = prior.complexity if isinstance(prior, predcp.ComplexityPrior) else None
    ax.set(xlabel=_with_unit(name, map), ylabel=f"$p({name})$")
    return ax


def divergence_prior(
    pi: dist.Distribution, ax: Axes | None = None, kappa: Any = None, **line: Any
) -> Axes:
    """The density of a prior on a divergence (Figure 1a).

    **Arguments**
    - `pi`: one of predcp's, or any positive NumPyro distribution.
    - `kappa`: where to evaluate; up to the 80% quantile when None.
    """
    _require_univariate("pi", pi)
    if kappa is None:
        upper = _quantile("kappa", pi, 0.8)
        kappa = np.linspace(upper / _POINTS, upper, _POINTS)
    kappa = _require_points("kappa", kappa, positive=True)
    ax = _draw(pi, ax, kappa, np.exp(pi.log_prob(jnp.asarray(kappa))), line)
    ax.set(xlabel=r"$\kappa$ (nats)", ylabel=r"$\pi(\kappa)$")
    return ax


def marginal(
    prior: dist.Distribution,
    ax: Axes | None = None,
    beta: Any = None,
    horseshoe: bool = True,
    unit: Unit | None = None,
    **line: Any,
) -> Axes:
    """The density of a coefficient that is normal given its scale (Figures 1c and 1d).

    **Arguments**
    - `prior`, `unit`: a distribution of a scale and what the scale is, as in `predcp.marginal`.
    - `beta`: where to evaluate; three standard deviations at the median scale when None.
    - `horseshoe`: whether to draw the horseshoe's too, dashed.
    """
    _require_univariate("prior", prior, scale=True)
    unit = unit_of(prior, unit)
    if beta is None:
        median = _quantile("beta", prior, 0.5)
        reach = 3.0 * (median if unit == "standard deviation" else np.sqrt(median))
        # An even number of points steps over beta = 0, where the density may be infinite.
        beta = np.linspace(-reach, reach, _POINTS)
    beta = _require_points("beta", beta)
    ax = _draw(prior, ax, beta, predcp.marginal(prior, jnp.asarray(beta), unit), line)
    if horseshoe:
        _draw_horseshoe(ax, beta, predcp.marginal)
    ax.set(xlabel=r"$\beta$", ylabel=r"$p(\beta)$")
    return ax


def shrinkage_profile(
    prior: dist.Distribution,
    ax: Axes | None = None,
    shrinkage: Any = None,
    horseshoe: bool = True,
    unit: Unit | None = None,
    **line: Any,
) -> Axes:
    """The density of the shrinkage `1 / (1 + variance)` (appendix A.2): 1 means all, 0 none.

    **Arguments**
    - `prior`, `unit`: a distribution of a scale and what the scale is, as in `predcp.marginal`.
    - `shrinkage`: where to evaluate, in (0, 1).
    - `horseshoe`: whether to draw the horseshoe's too, dashed.
    """
    _require_univariate("prior", prior, scale=True)
    unit = unit_of(prior, unit)
    shrinkage = np.linspace(0.0, 1.0, _POINTS)[1:-1] if shrinkage is None else shrinkage
    shrinkage = _require_points("shrinkage", shrinkage, positive=True)
    if shrinkage.max() >= 1.0:
        raise ValueError(f"shrinkage must be below 1, got a maximum of {shrinkage.max():.6g}")
    height = predcp.shrinkage_profile(prior, jnp.asarray(shrinkage), unit)
    ax = _draw(prior, ax, shrinkage, height, line)
    if horseshoe:
        _draw_horseshoe(ax, shrinkage, predcp.shrinkage_profile)
    variance = r"\tau^2" if unit == "standard deviation" else r"\tau"
    ax.set(xlabel=f"shrinkage $1 / (1 + {variance})$", ylabel="density", xlim=(0.0, 1.0))
    return ax


def complexity(
    map: predcp.Complexity, ax: Axes | None = None, tau: Any = None, **line: Any
) -> Axes:
    """The divergence of a scale, `kappa = D(tau)`, with the supremum dashed if there is one.

    **Arguments**
    - `map`: a map of one scale.
    - `tau`: where to evaluate; where D is between .001 and 100 (or near its supremum) when None.
    """
    if not isinstance(map, predcp.Complexity):
        raise ValueError(f"map must be one of predcp's maps, got {type(map).__name__}")
    shape = map.batch_shape + map.event_shape
    if shape:
        raise ValueError(f"map must be a map of one scale, got one of shape {shape}")
    supremum = float(map.supremum)
    if tau is None:
        ends = (1e-3, 1e2) if np.isinf(supremum) else (1e-3 * supremum, 0.999 * supremum)
        low, high = np.asarray(map.inv(jnp.asarray(ends)))
        tau = np.geomspace(low, high, _POINTS)
    tau = _require_points("tau", tau, positive=True)
    ax = _axes(ax)
    line = {"color": _OTHER_COLOUR, "label": type(map).__name__} | line
    (drawn,) = ax.plot(tau, np.asarray(map(jnp.asarray(tau))), **line)
    if np.isfinite(supremum):
        ax.axhline(supremum, color=drawn.get_color(), linestyle="--", linewidth=1.0)
    name = r"\beta" if map.signed else r"\tau"
    ax.set(
        xscale="log",
        yscale="log",
        xlabel=_with_unit(name, map),
        ylabel=r"$\kappa = D(" + name + ")$",
    )
    return ax


def joint_density(
    prior: predcp.ComplexityPrior,
    ax: Axes | None = None,
    tau_1: Any = None,
    tau_2: Any = None,
    log_scale: bool = True,
    **contour: Any,
) -> Axes:
    """Contours of a prior on two scales (Figure 3a).

    **Arguments**
    - `prior`: a `ComplexityPrior` on two scales, a depth-wise or a modular one.
    - `tau_1`, `tau_2`: where to evaluate; the middle of the prior when None.
    - `log_scale`: the density of the *logs* of the scales, on logarithmic axes; False for the
        density of the scales themselves, which has poles on the axes for a heavy-tailed pi.
    """
    shapes = (getattr(prior, "batch_shape", None), getattr(prior, "event_shape", None))
    if shapes != ((), (2,)):
        raise ValueError(f"prior must be on two scales, got batch and event shapes {shapes}")
    tau_1 = _side(prior, 0, log_scale) if tau_1 is None else tau_1
    tau_2 = _side(prior, 1, log_scale) if tau_2 is None else tau_2
    first, second = (_require_points(f"tau_{n}", t, True) for n, t in ((1, tau_1), (2, tau_2)))
    pairs = jnp.stack(jnp.meshgrid(first, second), axis=-1)
    log_density = prior.log_prob(pairs)
    if log_scale:
        log_density = log_density + jnp.log(pairs).sum(-1)
    ax, axis = _axes(ax), "log" if log_scale else "linear"
    ax.contourf(first, second, np.exp(log_density), **{"levels": 12, "cmap": "cividis"} | contour)
    names = (_with_unit(rf"\tau_{n}", prior.complexity) for n in (1, 2))
    ax.set(**dict(zip(("xlabel", "ylabel"), names)), xscale=axis, yscale=axis)
    return ax


def _with_unit(name: str, map: predcp.Complexity | None) -> str:
    """The label of an axis of scales; a coefficient and a map without a unit have none."""
    unit = None if map is None else map.unit
    return f"${name}$" if unit in (None, "coefficient") else f"${name}$ ({unit})"


def _side(prior: predcp.ComplexityPrior, entry: int, log_scale: bool) -> np.ndarray:
    """A grid over one of two scales, the other at its median."""
    at = np.full((2, 2), 0.5)
    at[:, entry] = 0.1, 0.9
    low, high = np.asarray(prior.icdf(at))[:, entry]
    return np.geomspace(low, high, 80) if log_scale else np.linspace(low, high, 80)


def _axes(ax: Axes | None) -> Axes:
    if ax is not None and not isinstance(ax, Axes):
        raise ValueError(f"ax must be matplotlib axes, got {type(ax).__name__}")
    return plt.subplots()[1] if ax is None else ax


def _draw(
    prior: dist.Distribution, ax: Axes | None, at: np.ndarray, height: Any, line: dict[str, Any]
) -> Axes:
    """A line in the colour of pi, with the name of pi."""
    ax = _axes(ax)
    style: dict[str, Any] = {"color": colour(prior), "label": _family(prior).__name__}
    ax.plot(at, np.asarray(height), **style | line)
    return ax


def _draw_horseshoe(ax: Axes, at: np.ndarray, curve: Any) -> None:
    if _HORSESHOE not in [line.get_label() for line in ax.lines]:
        height = np.asarray(curve(dist.HalfCauchy(1.0), jnp.asarray(at), "standard deviation"))
        ax.plot(at, height, color="black", linestyle="--", label=_HORSESHOE)


def _whole_line(prior: dist.Distribution) -> bool:
    return prior.support is constraints.real


def _require_univariate(name: str, prior: Any, scale: bool = False) -> None:
    if not isinstance(prior, dist.Distribution):
        raise ValueError(f"{name} must be a NumPyro distribution, got {type(prior).__name__}")
    shape = prior.batch_shape + prior.event_shape
    if shape:
        raise ValueError(f"{name} must be a distribution of one number, got shape {shape}")
    if scale and _whole_line(prior):
        raise ValueError(f"{name} must be a distribution of a scale, got one of the whole line")


def _require_points(name: str, value: Any, positive: bool = False) -> np.ndarray:
    points = np.asarray(value, dtype=float)
    if points.ndim != 1 or not points.size or not np.all(np.isfinite(points)):
        raise ValueError(f"{name} must be finite numbers in one axis, got shape {points.shape}")
    if positive and not np.all(points > 0.0):
        raise ValueError(f"{name} must be positive, got a minimum of {points.min():.6g}")
    return points


def _quantile(name: str, prior: dist.Distribution, q: float) -> float:
    """A quantile for a default grid; `name` is the argument that replaces the grid."""
    try:
        return float(prior.icdf(q))
    except (NotImplementedError, ImportError):
        raise ValueError(
            f"{name} must be given: {type(prior).__name__} has no quantiles to choose a grid from"
        ) from None
