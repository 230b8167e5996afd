"""Sizes of an effect in the units of the response: ratios of rates and odds, noise, R^2, probabilities.

All are functions of one number, the root mean square displacement `r` of the predictor (the location
in units of the noise, the log mean, the log odds) from the reference model's.
The median ratio between two groups drawn at random is `exp(sqrt(2) 0.6745 r)`, the median odds ratio
of Larsen and Merlo (2005).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from predcp._maps import noise_moments
from predcp.program._complexity import ProgramComplexity
from predcp.program._predictors import LOCATION, LOG_MEAN, LOG_NOISE, LOG_ODDS, Predictors

# Quartile of a standard normal, times the spread of a difference of two draws.
_MEDIAN_DIFFERENCE = math.sqrt(2.0) * 0.6744897501960817


class Response(NamedTuple):
    """A size of an effect: its name, maps to and from the displacement `r`, and its values."""

    name: str
    words: str
    from_displacement: Callable[[Array], Array]
    to_displacement: Callable[[Any], Any]
    kind: str
    ends: tuple[float, float]
    wanted: str

    def displacement_of(self, size: float) -> float:
        """The displacement `r` of a stated size; an impossible size is an error."""
        low, high = self.ends
        return float(
            self.to_displacement(_require(self.name, size, low < size < high, self.wanted))
        )


def _log_odds(probability: float) -> float:
    return math.log(probability) - math.log1p(-probability)


def _require(name: str, value: float, holds: bool, wanted: str) -> float:
    if not holds:
        raise ValueError(f"{name} must be {wanted}, got {value}")
    return value


def _ratio(name: str, words: str, kind: str) -> Response:
    return Response(
        name,
        words,
        lambda r: jnp.exp(_MEDIAN_DIFFERENCE * r),
        lambda u: np.log(u) / _MEDIAN_DIFFERENCE,
        kind,
        (1.0, math.inf),
        "above 1",
    )


RESPONSES = {
    "rate_ratio": _ratio("rate_ratio", "median ratio of the rates of two groups", LOG_MEAN),
    "odds_ratio": _ratio("odds_ratio", "median odds ratio of two groups", LOG_ODDS),
    "noise_ratio": Response(
        "noise_ratio",
        "standard deviation of the effect in units of the noise",
        lambda r: r,
        lambda u: u,
        LOCATION,
        (0.0, math.inf),
        "positive",
    ),
    "r_squared": Response(
        "r_squared",
        "share of the variance explained",
        lambda r: r**2 / (1.0 + r**2),
        lambda u: np.sqrt(u / (1.0 - u)),
        LOCATION,
        (0.0, 1.0),
        "between 0 and 1",
    ),
}


def log_odds_change(start: float, end: float) -> float:
    """The displacement of the log odds that takes one probability to another."""
    for name, value in (("from", start), ("to", end)):
        _require(f"change of a probability: {name}", value, 0.0 < value < 1.0, "between 0 and 1")
    return abs(_log_odds(end) - _log_odds(start))


def kinds_of(complexity: ProgramComplexity) -> set[str]:
    """Kinds of predictors that the predictions have."""
    shapes = jax.eval_shape(complexity.predictors_by_draw, jnp.zeros(()))
    return {kind for site in shapes for kind in site} - {LOG_NOISE}


def displacement(
    complexity: ProgramComplexity, log_tau: Float[Array, ""], kind: str
) -> Float[Array, ""]:
    """Root mean square displacement of one kind of predictors from the reference's."""
    start = complexity.predictors_by_draw(None)
    squares, factor = _squares(complexity, log_tau)
    total, count = jnp.zeros(()), 0
    for here, origin in zip(squares, start):
        if kind not in here:
            continue
        change = here[kind]
        if kind == LOCATION:
            change = change * jnp.exp(-2.0 * origin[LOG_NOISE])
        total, count = total + jnp.sum(change), count + change.size
    return jnp.sqrt(total / count) * factor


def _squares(complexity: ProgramComplexity, log_tau: Array) -> tuple[list[Predictors], Array]:
    """Mean squares of the displacements of predictors, by draw or over the noise, and their factor."""
    if complexity.nodes is None or complexity.power is None:
        moved, start = (complexity.predictors_by_draw(each) for each in (log_tau, None))
        return jax.tree.map(lambda here, origin: (here - origin) ** 2, moved, start), jnp.ones(())
    # As the map itself: exactly, for standard normal noise.
    mean, spread = noise_moments(complexity, _predictor_direction)
    squares = jax.tree.map(lambda a, b: a**2 + b**2, mean, spread)
    return squares, jnp.exp(float(complexity.power[0]) * log_tau)


def _predictor_direction(
    complexity: ProgramComplexity, normal: PyTree, other: PyTree
) -> list[Predictors]:
    """Displacements of the predictors at scale 1, from their derivative in log tau."""
    assert complexity.power is not None
    power = float(complexity.power[0])
    xi, zero = complexity._join_noise(normal, other), jnp.zeros((), complexity._dtype)
    path = lambda log_tau: complexity.predictors_of_draw(log_tau, xi)  # noqa: E731
    speed = jax.jvp(path, (zero,), (jnp.ones_like(zero),))[1]
    return jax.tree.map(lambda each: each / power, speed)


def log_scale_at(
    complexity: ProgramComplexity, size: float, kind: str, steps: int = 60
) -> Float[Array, ""]:
    """The `log tau` at which the displacement has this size, by bisection; `inf` if it never has."""
    reach = 0.4 * math.log(float(jnp.finfo(complexity._dtype).max))

    def halve(_, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        above = displacement(complexity, middle, kind) > size
        return jnp.where(above, low, middle), jnp.where(above, middle, high)

    start = jnp.asarray(-reach, complexity._dtype), jnp.asarray(reach, complexity._dtype)
    low, high = jax.lax.fori_loop(0, steps, halve, start)
    return jnp.where(high < start[1], 0.5 * (low + high), jnp.inf)


def response_sizes(complexity: ProgramComplexity, log_tau: Float[Array, ""]) -> PyTree:
    """Every size of the effect at one scale that the predictions have."""
    found = kinds_of(complexity)
    sizes: dict[str, Array] = {}
    for name, response in RESPONSES.items():
        if response.kind in found:
            r = displacement(complexity, log_tau, response.kind)
            sizes[name] = response.from_displacement(r)
    return sizes
