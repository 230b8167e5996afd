"""Check a prior: is its map a bijection, is it proper, are there enough draws?"""

import math
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from predcp._maps import Complexity, SeparateComplexity
from predcp._prior import ComplexityPrior, LogScalePrior
from predcp._support.compiled import compiled

Verdict = Literal["accept", "truncate", "warn", "refuse"]
_SEVERITY: dict[Verdict, int] = {"accept": 0, "truncate": 1, "warn": 2, "refuse": 3}
# Numbers of points: of the curve, of the first quadrature, of the search for kappa of order one.
_POINTS = 384
_QUADRATURE = 128
_COARSE = 128
# The map is evaluated at groups of scales of one size, so that it is compiled once.
_GROUP = 128
_REACH = 60.0
# Up to exp(-22) of a Cauchy's mass is left beyond: log tau = base + sinh t for the quadrature.
_FARTHEST = 22.0
_MOST_HALVINGS = 6
# A map still grows if each doubling of log tau multiplies D by at least this, up to log tau of a billion.
_LEAST_GROWTH, _DOUBLINGS = 1.001, 24
# Largest probability of a scale beyond floating point that needs no warning.
_OVERFLOW = 0.01


class EntryDiagnosis(NamedTuple):
    """The findings for one scale (of a vector: with the others at their medians).

    **Arguments**
    - `verdict` and the `reason` for it.
    - `increasing_on`: the interval of tau on which D was seen to increase.
    - `supremum`: of D, `inf` when it has none.
    - `mass`: of the prior, by quadrature of its density.
    - `flat_above`: the tau beyond which D changes by less than rounding, `inf` if there is none.
    - `dip`: largest relative fall of D below its running maximum.
    - `monte_carlo_error`: relative standard error of kappa at the median, NaN where there is
        no Monte Carlo or one draw only.
    - `quadrature_error`: relative error of kappa at the median where its divergence is a quadrature,
        NaN where it is not.
    """

    verdict: Verdict
    reason: str
    increasing_on: tuple[float, float]
    supremum: float
    mass: float
    flat_above: float
    dip: float
    monte_carlo_error: float
    quadrature_error: float = math.nan


class Diagnosis(NamedTuple):
    """The verdict on a prior: `accept`, `truncate`, `warn` or `refuse`, with its reasons.

    `averaged_over`: what kappa is an average over (trials, rows), None where it is no average.
    `budget_errors`: for a budget, the smallest, median and largest relative difference between the
    divergence of the model with all components and the sum of theirs, for totals below 0.3 nats.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    entries: tuple[EntryDiagnosis, ...]
    budget_errors: tuple[float, float, float] | None = None
    averaged_over: str | None = None

    @property
    def mass(self) -> float:
        """Total mass by quadrature (the product over entries)."""
        return math.prod(entry.mass for entry in self.entries)

    @property
    def supremum(self) -> float:
        """Supremum of D (the largest over entries)."""
        return max(entry.supremum for entry in self.entries)

    def __str__(self) -> str:
        lines = [f"{self.verdict}: " + "; ".join(self.reasons)]
        lines += [f"  kappa is an average over {self.averaged_over}"] if self.averaged_over else []
        for index, entry in enumerate(self.entries):
            name = f"scale {index + 1}" if len(self.entries) > 1 else "scale"
            low, high = entry.increasing_on
            lines += [
                f"  {name}: {entry.verdict}",
                f"    D increases on [{low:.3g}, {high:.3g}], supremum {entry.supremum:.6g}",
                f"    total mass by quadrature {entry.mass:.9f}",
                f"    D is numerically flat above {entry.flat_above:.3g}",
            ]
            if not math.isnan(entry.monte_carlo_error):
                lines.append(f"    Monte Carlo error of kappa {100 * entry.monte_carlo_error:.2g}%")
            if not math.isnan(entry.quadrature_error):
                lines.append(f"    quadrature error of kappa {100 * entry.quadrature_error:.2g}%")
        return "\n".join(lines)


def diagnose(prior: Any) -> Diagnosis:
    """Check that D is a bijection, the prior proper and the draws enough (appendix B of the paper).

    A bounded increasing D gives the verdict `truncate`; a dip within Monte Carlo error and a prior
    with more than 1% of its mass beyond floating point, `warn`. A real dip, a constant D and a D
    that does not start at 0 are refused, with the reason. For a budget, the components are checked
    one by one, and then how far their divergences are from adding up.

    **Arguments**: `prior`, on one scale or on a vector of them, or a `BudgetPrior`.
    """
    if hasattr(prior, "diagnosis"):
        return prior.diagnosis()
    if isinstance(prior, ComplexityPrior | LogScalePrior):
        complexity, truncate, pi = prior.complexity, prior.truncate, prior.pi
    else:
        raise ValueError(f"prior must be a ComplexityPrior, got {type(prior).__name__}")
    if complexity.batch_shape or (pi.batch_shape and not complexity.event_dim):
        raise ValueError(
            f"prior must not be a batch (batch shape {prior.batch_shape}): diagnose one at a time"
        )
    size = math.prod(complexity.event_shape) if complexity.event_dim else 1
    base = _medians(complexity, size)
    pis = [_entry_prior(pi, index) for index in range(size)]
    entries = tuple(
        _diagnose_entry(complexity, pis[index], truncate, index, base) for index in range(size)
    )
    worst = max(entries, key=lambda entry: _SEVERITY[entry.verdict]).verdict
    named = [
        (f"scale {index + 1}: " if size > 1 else "") + entry.reason
        for index, entry in enumerate(entries)
        if entry.verdict == worst
    ]
    caution = complexity.caution()
    if caution is not None:
        worst, named = worse(worst, "warn"), [*named, caution]
    over = complexity.averaged_over
    return Diagnosis(worst, tuple(named), entries, averaged_over=over)


def worse(first: Verdict, second: Verdict) -> Verdict:
    """The more severe of two verdicts."""
    return max(first, second, key=lambda verdict: _SEVERITY[verdict])


def _entry_prior(pi: Any, index: int) -> Any:
    if not pi.batch_shape:
        return pi
    return jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, pi.batch_shape)[..., index] if jnp.ndim(leaf) else leaf,
        pi,
    )


def _medians(complexity: Complexity, size: int) -> np.ndarray:
    """Log scales at which kappa is of order one, entry by entry; 0 where there is no such scale."""
    if complexity.event_dim:
        targets = jnp.zeros(size)
        bound = complexity.log_supremum(targets)
        found = _inverse(complexity, jnp.minimum(targets, bound - math.log(2.0)))
        values = np.atleast_1d(np.asarray(found, float))
    else:
        # By search: a map that is not a bijection has no inverse.
        log_tau = np.linspace(-_REACH, _REACH, _COARSE)
        log_kappa, _, log_bound = _curves(complexity, 0, np.zeros(1), log_tau)
        target = min(0.0, log_bound[0] - math.log(2.0))
        distance = np.nan_to_num(np.abs(log_kappa - target), nan=np.inf)
        values = log_tau[[int(np.argmin(distance))]]
    return np.clip(np.where(np.isfinite(values), values, 0.0), -30.0, 30.0)


def _curves(complexity: Complexity, index: int, base: np.ndarray, log_tau: np.ndarray):
    """log D, its log elasticity and log supremum of one entry along a grid of its own scale."""
    padded = np.pad(log_tau, (0, -log_tau.size % _GROUP), mode="edge")
    groups = []
    for part in padded.reshape(-1, _GROUP):
        grid = jnp.asarray(part)
        if complexity.event_dim:
            grid = jnp.broadcast_to(jnp.asarray(base), (_GROUP, base.size))
            grid = grid.at[:, index].set(jnp.asarray(part))
        curves = _evaluate(complexity, grid)
        groups.append([each[:, index] if complexity.event_dim else each for each in curves])
    joined = (np.concatenate([np.asarray(each, float) for each in group]) for group in zip(*groups))
    return tuple(each[: log_tau.size] for each in joined)


@compiled()
def _inverse(complexity: Complexity, log_kappa: jax.Array):
    # Traced, so that a missing root is NaN instead of an error.
    return complexity.log_inverse(log_kappa)


@compiled()
def _evaluate(complexity: Complexity, grid: jax.Array):
    log_kappa, log_elasticity = complexity.log_value_and_elasticity(grid)
    return log_kappa, log_elasticity, complexity.log_supremum(grid)


def _diagnose_entry(
    complexity: Complexity, pi: Any, truncate: bool, index: int, base: np.ndarray
) -> EntryDiagnosis:
    eps = float(jnp.finfo(jnp.result_type(float)).eps)
    reach = _REACH if eps < 1e-12 else _REACH / 2.0
    log_tau = base[index] + np.linspace(-reach, reach, _POINTS)
    log_kappa, log_elasticity, log_bound = _curves(complexity, index, base, log_tau)
    supremum = float(np.exp(log_bound[0])) if complexity.bounded else math.inf
    failure = _degenerate(log_kappa)
    if failure is not None:
        unknown = (math.nan,) * 4
        return EntryDiagnosis("refuse", failure, (math.nan, math.nan), supremum, *unknown)
    running = np.maximum.accumulate(log_kappa)
    fall = -np.expm1(log_kappa - running)
    dip = float(np.max(fall))
    flat = log_elasticity < math.log(eps)
    flat_from = _last_run(flat)
    if not complexity.bounded and np.ptp(log_kappa[-_POINTS // 4 :]) < math.sqrt(eps):
        # Extrapolated, a plateau is a power law with rounding as elasticity. Growth as log tau is faster.
        flat_from = min(_POINTS - _POINTS // 4, _POINTS if flat_from is None else flat_from)
    flat_above = float(np.exp(log_tau[flat_from])) if flat_from is not None else math.inf
    centre, width = _middle(pi, log_bound[0], log_tau, running, log_elasticity, base[index])
    mass = _mass(complexity, pi, truncate, index, base, centre, width)
    error = _monte_carlo_error(complexity, index, base)
    by_nodes = getattr(complexity, "quadrature_error", None)
    rough = math.nan if by_nodes is None else float(by_nodes(jnp.asarray(base[index])))
    rounding = 1e3 * eps
    first_fall = int(np.argmax(fall > rounding)) if dip > rounding else _POINTS - 1
    rising = (float(np.exp(log_tau[0])), float(np.exp(log_tau[first_fall])))

    def verdict(kind: Verdict, reason: str) -> EntryDiagnosis:
        found = (rising, supremum, mass, flat_above, dip, error, rough)
        return EntryDiagnosis(kind, reason, *found)

    if dip > rounding:
        return verdict(*_judge_dip(complexity, index, base, log_tau, log_kappa, dip))
    # A density of a monotone map cannot have more mass than pi, unless its slope is wrong.
    if not mass <= 1.001:
        return verdict(
            "refuse",
            f"the density has mass {mass:.4g} instead of 1: the elasticity of D is not the "
            "derivative of its value (single precision, or a divergence outside its range)",
        )
    levels_off = flat_from is not None and flat_from < _POINTS - 1
    end = centre + width * math.sinh(_FARTHEST)
    grows, beyond, overflow = _far_away(complexity, pi, index, base, reach, end)
    mass += beyond if grows else 0.0
    if complexity.bounded:
        if not truncate:
            return verdict(
                "warn",
                f"D is bounded by {supremum:.6g} and pi is not cut there (truncate=False): "
                f"the prior has mass {mass:.4g}",
            )
        return verdict(
            "truncate", f"D increases to its bound {supremum:.6g}; pi is cut there and renormalised"
        )
    if levels_off or mass < 0.99:
        top = float(np.exp(log_kappa[-1]))
        return verdict(
            "refuse",
            f"D levels off at {top:.6g} although its divergence is unbounded, so the prior has mass "
            f"{mass:.4g}; declare it with bounded=True to cut pi there",
        )
    if overflow > _OVERFLOW:
        return verdict(
            "warn",
            f"the prior is proper but puts {100 * overflow:.2g}% above the largest floating-point "
            "number, because D grows slowly for so heavy a tail of pi: such draws are infinite; sample "
            "prior.log_scale() or choose a pi with a lighter tail, such as Exponential",
        )
    return verdict("accept", "D increases from 0 without bound and the prior is proper")


def _far_away(
    complexity: Complexity, pi: Any, index: int, base: np.ndarray, reach: float, end: float
) -> tuple[bool, float, float]:
    """Whether D still grows where log tau is huge, and the mass of pi beyond two scales.

    The scales are the `end` of the quadrature and the largest floating-point number.
    """
    if complexity.bounded:
        return False, 0.0, 0.0
    largest = math.log(float(jnp.finfo(jnp.result_type(float)).max))
    doubled = reach * 2.0 ** np.arange(_DOUBLINGS + 1)
    log_kappa = _curves(complexity, index, base, np.asarray([end, largest, *doubled]))[0]
    with np.errstate(invalid="ignore"):
        grows = bool(np.all(np.diff(log_kappa[2:]) > math.log(_LEAST_GROWTH)))
    try:
        beyond, overflow = np.exp(pi.log_survival_log(jnp.asarray(log_kappa[:2])))
    except (ValueError, NotImplementedError):
        # The caller's own distribution may have no cdf.
        return grows, 0.0, 0.0
    return grows, float(beyond), float(overflow)


def _middle(
    pi: Any,
    log_bound: float,
    log_tau: np.ndarray,
    log_kappa: np.ndarray,
    log_elasticity: np.ndarray,
    otherwise: float,
) -> tuple[float, float]:
    """Median and width of pi below the bound, in units of `log tau`, read off the curve."""
    try:
        below = float(jnp.exp(pi.log_cdf_log(jnp.asarray(log_bound))))
        levels = below * jnp.asarray([0.25, 0.5, 0.75])
        lower, median, upper = np.asarray(pi.icdf_log(levels), float)
    except (ValueError, NotImplementedError):
        # The caller's own distribution may have no quantiles.
        return otherwise, 1.0
    centre = float(np.interp(median, log_kappa, log_tau))
    elasticity = np.exp(np.interp(centre, log_tau, np.maximum(log_elasticity, -3.0)))
    return centre, float(np.clip((upper - lower) / elasticity, 1e-3, 1.0))


def _mass(
    complexity: Complexity,
    pi: Any,
    truncate: bool,
    index: int,
    base: np.ndarray,
    centre: float,
    width: float,
) -> float:
    """Mass of the density of one log scale: the trapezoid rule in t, `centre + width sinh t`.

    Its error falls exponentially with the number of points: halved intervals that change the mass
    by less than 1e-5 leave an error of the order of its square.
    """

    def heights(t: np.ndarray) -> float:
        curves = _curves(complexity, index, base, centre + width * np.sinh(t))
        bound = curves[2] if truncate and complexity.bounded else None
        density = _log_density(pi, curves[0], curves[1], bound)
        return float(np.sum(np.exp(density) * np.cosh(t))) * width

    step = 2.0 * _FARTHEST / _QUADRATURE
    t = -_FARTHEST + step * np.arange(_QUADRATURE)
    mass = heights(t) * step
    for _ in range(_MOST_HALVINGS):
        between = t + 0.5 * step
        before, mass = mass, 0.5 * mass + 0.5 * step * heights(between)
        t = np.sort(np.concatenate([t, between]))
        step *= 0.5
        if abs(mass - before) <= 1e-5:
            break
    return mass


def _degenerate(log_kappa: np.ndarray) -> str | None:
    """Reason why D is not a bijection, or None."""
    if np.all(np.isnan(log_kappa)):
        return (
            "D has no value at any scale: the model has none at its reference (batch normalisation "
            "after the weights divides 0 by 0 there); normalise before the weights instead"
        )
    if np.any(np.isnan(log_kappa)) or np.any(np.isposinf(log_kappa)):
        return "D is not a finite number at some scales: the model over- or underflows there"
    if np.all(np.isneginf(log_kappa)):
        return "D is 0 at every scale: no prediction depends on it (a dead layer, or x = 0)"
    span = np.max(log_kappa) - np.min(log_kappa)
    if span < 1e-3:
        return (
            f"D is {np.exp(log_kappa[0]):.4g} at every scale: something undoes the scale after the "
            "weights (batch normalisation does); normalise before the weights instead"
        )
    lowest = log_kappa[: _POINTS // 20]
    if np.ptp(lowest) < 1e-2:
        return (
            f"D tends to {np.exp(lowest[0]):.4g}, not 0, as tau goes to 0: the model does not contain "
            "its reference"
        )
    return None


def _last_run(flags: np.ndarray) -> int | None:
    """Index at which the last run of true values begins; None if the last value is false."""
    if not flags[-1]:
        return None
    return int(len(flags) - np.argmin(flags[::-1])) if not flags.all() else 0


def _judge_dip(
    complexity: Complexity,
    index: int,
    base: np.ndarray,
    log_tau: np.ndarray,
    log_kappa: np.ndarray,
    dip: float,
) -> tuple[Verdict, str]:
    """Decide whether a fall of D could be Monte Carlo error, from the same draws at two scales."""
    running = np.maximum.accumulate(log_kappa)
    bottom = int(np.argmax(running - log_kappa))
    top = int(np.argmax(log_kappa[: bottom + 1]))
    where = f"between tau = {np.exp(log_tau[top]):.3g} and {np.exp(log_tau[bottom]):.3g}"
    fall = f"D falls by {100 * dip:.3g}% {where}"
    high, low = (_by_draw(complexity, index, base, log_tau[at]) for at in (top, bottom))
    if high is None or low is None or high.size < 2:
        if dip <= 0.05:
            return "warn", f"{fall}, too little to tell from noise without more draws"
        return "refuse", f"{fall}: not a bijection"
    change = np.exp(high) - np.exp(low)
    error = change.std(ddof=1) / math.sqrt(change.size)
    if change.mean() <= 3.0 * error:
        return "warn", f"{fall}, within the Monte Carlo error of {change.size} draws: use more"
    return "refuse", f"{fall}, beyond the Monte Carlo error: not a bijection"


def _by_draw(complexity: Complexity, index: int, base: np.ndarray, log_tau: float):
    if isinstance(complexity, SeparateComplexity):
        complexity = complexity.component(index)
    by_draw = getattr(complexity, "log_value_by_draw", None)
    if by_draw is None:
        return None
    if not complexity.event_dim:
        return np.asarray(by_draw(jnp.asarray(log_tau)))
    scales = jnp.asarray(base).at[index].set(log_tau)
    return np.asarray(by_draw(scales))[:, index]


def _monte_carlo_error(complexity: Complexity, index: int, base: np.ndarray) -> float:
    logs = _by_draw(complexity, index, base, float(base[index]))
    if logs is None or logs.size < 2:
        return math.nan
    values = np.exp(logs - logs.max())
    return float(values.std(ddof=1) / math.sqrt(values.size) / values.mean())


def _log_density(
    pi: Any, log_kappa: np.ndarray, log_elasticity: np.ndarray, log_bound: np.ndarray | None
) -> np.ndarray:
    """Log density of log tau along a grid, cut at the bound if one is given."""
    density = np.asarray(pi.log_prob_log(jnp.asarray(log_kappa)), float) + log_elasticity
    if log_bound is not None:
        density = density - np.asarray(pi.log_cdf_log(jnp.asarray(log_bound)), float)
    return np.where(np.isnan(density), -np.inf, density)
