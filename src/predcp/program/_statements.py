"""Prior statements in the user's own units, and the pi that satisfies them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.optimize import brentq

from predcp._divergence_priors import DivergencePrior, Gamma, as_divergence_prior
from predcp._support.check import require_positive, require_probability
from predcp.program._complexity import ProgramComplexity
from predcp.program._predictors import LOG_ODDS
from predcp.program._responses import RESPONSES, kinds_of, log_odds_change, log_scale_at

# Log divergences beyond this have no search around them: their neighbours are too far apart.
_LARGEST = 1e9


@dataclass(frozen=True)
class Tail:
    """`P(quantity > upper) = probability`; made by `tail`."""

    quantity: str
    upper: Any
    probability: float
    family: type[DivergencePrior] = Gamma
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.quantity == "probability_change":
            start, end = self.upper
            what = f"one standard deviation of the effect takes a probability of {start:g} beyond {end:g}"
        elif self.quantity == "scale":
            what = f"the scale exceeds {self.upper:g}"
        elif self.quantity == "divergence":
            unit = "nat" if self.upper == 1.0 else "nats"
            what = f"a prediction moves by more than {self.upper:g} {unit} on average"
        else:
            what = f"the {RESPONSES[self.quantity].words} exceeds {self.upper:g}"
        return f"{what} with probability {self.probability:g}"


def tail(
    *,
    probability: float = 0.05,
    family: type[DivergencePrior] = Gamma,
    scale: float | None = None,
    rate_ratio: float | None = None,
    odds_ratio: float | None = None,
    noise_ratio: float | None = None,
    r_squared: float | None = None,
    probability_change: tuple[float, float] | None = None,
    divergence: float | None = None,
    **options: Any,
) -> Tail:
    """A prior stated by one value that is rarely exceeded, in units of your choice.

    Give exactly one quantity. The statement holds for the prior as used: after truncation, and on
    average over the rest of the program.

    **Arguments**
    - `probability`: of exceeding it.
    - `family`: of pi; `options` as its `from_tail` takes them. The default, a gamma of shape 1/2, gives
        the scale of a Gaussian effect a half-normal prior. A `LogCauchy` puts more mass near
        the reference and has a heavier tail.
    - `scale`: the scale itself.
    - `rate_ratio`, `odds_ratio`: median ratio between two groups drawn at random, above 1: of the
        means of counts or positive outcomes (of the medians of log-normal ones); of the odds of a success,
        of a mean share, or of a class above another in an ordinal response.
    - `noise_ratio`: standard deviation of the effect in units of the noise.
    - `r_squared`: share of the variance that the effect explains.
    - `probability_change`: (from, to): one standard deviation of the effect takes a probability from
        one value to the other.
    - `divergence`: in nats.
    """
    given = {
        "scale": scale,
        "rate_ratio": rate_ratio,
        "odds_ratio": odds_ratio,
        "noise_ratio": noise_ratio,
        "r_squared": r_squared,
        "probability_change": probability_change,
        "divergence": divergence,
    }
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) != 1:
        raise ValueError(
            f"tail needs exactly one of {', '.join(given)}; got {', '.join(named) or 'none'}"
        )
    if not (isinstance(family, type) and issubclass(family, DivergencePrior)):
        raise ValueError(
            f"family must be a class of priors on a divergence, such as LogCauchy, got {family!r}"
        )
    require_probability("probability", probability)
    if family is Gamma:
        options = {"shape": 0.5, **options}
    quantity, upper = next(iter(named.items()))
    if quantity == "probability_change":
        if not isinstance(upper, tuple | list) or len(upper) != 2:
            raise ValueError(f"probability_change must be a pair (from, to), got {upper!r}")
        log_odds_change(*upper)
        upper = tuple(float(value) for value in upper)
    else:
        require_positive(quantity, upper)
        if quantity in RESPONSES:
            RESPONSES[quantity].displacement_of(upper)
    return Tail(quantity, upper, float(probability), family, options)


def pi_of(
    statement: Any, build: Callable[[dict[str, Array]], ProgramComplexity], rest: dict[str, Array]
) -> DivergencePrior:
    """The pi that satisfies a statement; a distribution is returned as it is.

    **Arguments**: `build`, from one draw of the rest to the map; `rest`, draws of it with a leading axis
    (empty if the map depends on none).
    """
    if not isinstance(statement, Tail):
        return as_divergence_prior(statement)
    _require_response(build(jax.tree.map(lambda leaf: leaf[0], rest)), statement.quantity)

    def one(values: dict[str, Array]) -> Any:
        return _log_kappa_at(build(values), statement.quantity, statement.upper)

    found = jax.jit(jax.vmap(one) if rest else one)(rest)
    log_kappa, log_supremum = (np.atleast_1d(np.asarray(each, np.float64)) for each in found)
    return solve_tail(statement, log_kappa, log_supremum)


def solve_tail(statement: Tail, log_kappa: np.ndarray, log_supremum: np.ndarray) -> DivergencePrior:
    """The member of the family whose mean tail probability over the draws is the stated one.

    **Arguments**: log divergence of the stated quantity and log supremum, one per draw of the rest.
    """
    reachable = log_kappa < log_supremum
    if not np.any(reachable):
        bound = float(np.exp(np.max(log_supremum)))
        why = (
            f"predictions move by {bound:.4g} nats at most"
            if np.isfinite(bound)
            else "the scale does not move them so; say it by scale or divergence"
        )
        raise ValueError(f"{statement.quantity} = {statement.upper} is never reached: {why}")
    start = _start(statement)

    def exceeded(log_factor: float) -> float:
        return float(_mean_tail(start, log_factor, log_kappa, log_supremum))

    # The tail grows with the factor: widen a bracket around the typical divergence, then search inside.
    centre = float(np.median(log_kappa[reachable]))
    if abs(centre) > _LARGEST:
        raise ValueError(
            f"{statement.quantity} = {statement.upper} moves predictions by more than can be computed "
            f"(log divergence {centre:.1e}); say less"
        )
    width = 1.0
    while exceeded(centre + width) < statement.probability:
        width *= 2.0
        if width > 1e6:
            raise ValueError(
                f"no member of {statement.family.__name__} gives {statement}: too few draws of the rest "
                "reach it"
            )
    low, high = centre - 1.0, centre + width
    while exceeded(low) > statement.probability:
        low -= 2.0 * (high - low)
    found = brentq(lambda at: exceeded(at) - statement.probability, low, high, xtol=1e-13)
    return start.stretched(jnp.asarray(found))


def _start(statement: Tail) -> DivergencePrior:
    """The member of the family with the stated tail beyond 1, to be stretched."""
    options = tuple(sorted(statement.options.items()))
    try:
        hash(options)
    except TypeError:  # Options with arrays cannot be the key of a compiled program.
        return _from_tail.__wrapped__(statement.family, options)(statement.probability)
    return _from_tail(statement.family, options)(statement.probability)


@lru_cache(maxsize=64)
def _from_tail(family: Any, options: tuple[tuple[str, Any], ...]) -> Callable[[float], Any]:
    """`from_tail` as a compiled function of the probability, cached because the explorer calls it often."""
    return jax.jit(lambda p: family.from_tail(upper=1.0, probability=p, **dict(options)))


@jax.jit
def _mean_tail(
    start: DivergencePrior, log_factor: Any, log_kappa: Array, log_supremum: Array
) -> Array:
    """Mean over the draws of P(kappa > exp(log_kappa)), for `start` stretched and then truncated."""
    tails = start.stretched(log_factor).log_tail_below(log_kappa, log_supremum)
    return jnp.mean(jnp.exp(tails))


def _log_kappa_at(single: ProgramComplexity, quantity: str, upper: Any) -> tuple[Array, Array]:
    """Log divergence at the stated quantity, and log supremum."""
    supremum = single.log_supremum(jnp.zeros((), single._dtype))
    if quantity == "divergence":
        return jnp.log(jnp.asarray(upper, single._dtype)), supremum
    if quantity == "scale":
        log_tau = jnp.log(jnp.asarray(upper, single._dtype))
    elif quantity == "probability_change":
        log_tau = log_scale_at(single, log_odds_change(*upper), LOG_ODDS)
    else:
        response = RESPONSES[quantity]
        log_tau = log_scale_at(single, response.displacement_of(upper), response.kind)
    found = jnp.isfinite(log_tau)
    log_kappa, _ = single.log_value_and_elasticity(jnp.where(found, log_tau, 0.0))
    return jnp.where(found, log_kappa, supremum), supremum


def _require_response(single: ProgramComplexity, quantity: str) -> None:
    wanted = LOG_ODDS if quantity == "probability_change" else None
    if quantity in RESPONSES:
        wanted = RESPONSES[quantity].kind
    if wanted is None:
        return
    found = kinds_of(single)
    if wanted not in found:
        raise ValueError(
            f"{quantity} does not fit these predictions, which have no {wanted.replace('_', ' ')}; "
            f"say it by {', '.join(fitting(found))}"
        )


def fitting(kinds: set[str]) -> list[str]:
    """The quantities that fit predictions with these kinds of predictors."""
    found = [name for name, response in RESPONSES.items() if response.kind in kinds]
    change = ["probability_change"] if LOG_ODDS in kinds else []
    return [*found, *change, "scale", "divergence"]
