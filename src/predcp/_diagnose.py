"""Is this prior what it claims to be? Answers in numbers and in words."""

import math
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from predcp._maps import Complexity
from predcp._prior import ComplexityPrior, LogScalePrior
from predcp._support.compiled import compiled

Verdict = Literal["accept", "truncate", "warn", "refuse"]
_SEVERITY: dict[Verdict, int] = {"accept": 0, "truncate": 1, "warn": 2, "refuse": 3}
_POINTS = 801
_QUADRATURE_POINTS = 4001
_REACH = 60.0


class EntryDiagnosis(NamedTuple):
    """What was found of one scale (of a vector: given the others at their medians).

    **Arguments**
    - `verdict` and the `reason` for it.
    - `increasing_on`: the interval of tau on which D was seen to increase.
    - `supremum`: of D, `inf` when it has none.
    - `mass`: of the prior, by quadrature of its density.
    - `flat_above`: the tau beyond which D changes by less than rounding, `inf` if there is none.
    - `dip`: largest relative fall of D below its running maximum.
    - `monte_carlo_error`: relative standard error of kappa at the median, NaN where there is
        no Monte Carlo or one draw only.
    """

    verdict: Verdict
    reason: str
    increasing_on: tuple[float, float]
    supremum: float
    mass: float
    flat_above: float
    dip: float
    monte_carlo_error: float


class Diagnosis(NamedTuple):
    """The verdict on a prior: `accept`, `truncate`, `warn` or `refuse`, with its reasons."""

    verdict: Verdict
    reasons: tuple[str, ...]
    entries: tuple[EntryDiagnosis, ...]

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
        return "\n".join(lines)


def diagnose(prior: ComplexityPrior | LogScalePrior) -> Diagnosis:
    """Check that D is a bijection, the prior proper and the draws enough (appendix B of the paper).

    Bounded and increasing: truncated. A dip within Monte Carlo error: a warning. A real dip, a D
    that is constant or does not start at 0: refused, with the reason.

    **Arguments**: `prior`, on one scale or on a vector of them.
    """
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
    return Diagnosis(worst, tuple(named), entries)


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
        found = complexity.log_inverse(jnp.minimum(targets, bound - math.log(2.0)))
        values = np.atleast_1d(np.asarray(found, float))
    else:
        # By looking: a map that is no bijection has no inverse to ask for.
        log_tau = np.linspace(-_REACH, _REACH, _POINTS + _QUADRATURE_POINTS)
        log_kappa, _, log_bound = _curves(complexity, 0, np.zeros(1), log_tau)
        target = min(0.0, log_bound[0] - math.log(2.0))
        values = log_tau[[int(np.argmin(np.abs(log_kappa - target)))]]
    return np.clip(np.where(np.isfinite(values), values, 0.0), -30.0, 30.0)


def _curves(complexity: Complexity, index: int, base: np.ndarray, log_tau: np.ndarray):
    """log D, its log elasticity and log supremum of one entry along a grid of its own scale."""
    if not complexity.event_dim:
        grid = jnp.asarray(log_tau)
    else:
        grid = jnp.broadcast_to(jnp.asarray(base), (log_tau.size, base.size))
        grid = grid.at[:, index].set(jnp.asarray(log_tau))
    curves = _evaluate(complexity, grid)
    pick = (lambda array: array[:, index]) if complexity.event_dim else (lambda array: array)
    return tuple(np.asarray(pick(array), float) for array in curves)


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
    # exp(-t) of a Cauchy's mass is left beyond t: log tau = base + sinh t for the quadrature.
    t = np.linspace(-22.0, 22.0, _QUADRATURE_POINTS)
    # One grid for both uses, so that one program serves.
    curves = _curves(complexity, index, base, np.concatenate([log_tau, base[index] + np.sinh(t)]))
    log_kappa, log_elasticity, log_bound = (curve[:_POINTS] for curve in curves)
    supremum = float(np.exp(log_bound[0])) if complexity.bounded else math.inf
    failure = _degenerate(log_kappa)
    if failure is not None:
        return EntryDiagnosis(
            "refuse",
            failure,
            (math.nan, math.nan),
            supremum,
            math.nan,
            math.nan,
            math.nan,
            math.nan,
        )
    running = np.maximum.accumulate(log_kappa)
    fall = -np.expm1(log_kappa - running)
    dip = float(np.max(fall))
    flat = log_elasticity < math.log(eps)
    flat_from = _last_run(flat)
    flat_above = float(np.exp(log_tau[flat_from])) if flat_from is not None else math.inf
    outer_kappa, outer_elasticity, outer_bound = (curve[_POINTS:] for curve in curves)
    cut = truncate and complexity.bounded
    density = _log_density(pi, outer_kappa, outer_elasticity, outer_bound if cut else None)
    mass = float(np.sum(np.exp(density) * np.cosh(t)) * (t[1] - t[0]))
    error = _monte_carlo_error(complexity, index, base)
    rounding = 1e3 * eps
    first_fall = int(np.argmax(fall > rounding)) if dip > rounding else _POINTS - 1
    rising = (float(np.exp(log_tau[0])), float(np.exp(log_tau[first_fall])))

    def verdict(kind: Verdict, reason: str) -> EntryDiagnosis:
        return EntryDiagnosis(kind, reason, rising, supremum, mass, flat_above, dip, error)

    if dip > rounding:
        return verdict(*_judge_dip(complexity, index, base, log_tau, log_kappa, dip))
    levels_off = flat_from is not None and flat_from < _POINTS - 1
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
    return verdict("accept", "D increases from 0 without bound and the prior is proper")


def _degenerate(log_kappa: np.ndarray) -> str | None:
    """The reason why D is no bijection at all, if there is one."""
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
    """Where the run of true values that reaches the end begins."""
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
    """Whether a fall of D could be Monte Carlo error, from the same draws at the two scales."""
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
