"""A prior in plain words; every number is computed from it."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import predcp
from predcp.explore._choices import Choices
from predcp.explore._curves import Curves
from predcp.explore._svg import SUPERSCRIPTS

_STATED = 0.1


class Words(NamedTuple):
    """A headline and the sentences below it."""

    headline: str
    sentences: list[str]


def words(
    choices: Choices, pi: predcp.DivergencePrior, layers: Sequence[tuple[str, Curves]]
) -> Words:
    """The summary of a prior.

    **Arguments**: `choices`; `pi`; `layers`, names and curves of the scales.
    """
    name, curves = layers[-1]
    low, median, _, high = (float(level) for level in curves.kappa_levels)
    if choices.model == "network":
        what = f"Half of the prior mass lets layer {choices.depth} move predictions by less than"
        reference = "those of the network without it"
    else:
        what = "Half of the prior mass keeps predictions within"
        reference = "the reference, in which every coefficient is 0"
    joint = "from" if choices.model == "network" else "of"
    headline = f"{what} {amount(choices, median)} {joint} {reference}."
    sentences = [
        _ruler(choices, median),
        f"One time in twenty they move by less than {amount(choices, low)}, one time in twenty by "
        f"more than {amount(choices, high)}.",
        _tail(choices, pi, curves),
        *(_scale(choices, each, layer) for each, layer in layers),
        _shrinkage(choices, name, curves),
    ]
    if np.isfinite(curves.supremum):
        sentences.append(
            f"No scale can move them by more than {amount(choices, float(curves.supremum))}: π is "
            f"truncated there, which removes {percent(float(curves.dropped))} of its mass."
        )
    return Words(headline, sentences)


def beyond(pi: predcp.DivergencePrior, curves: Curves, upper: float) -> float:
    """P(kappa > upper) under pi truncated at the supremum."""

    def survival(value: float) -> float:
        return float(jnp.exp(pi.log_survival_log(jnp.log(jnp.asarray(value)))))

    if not np.isfinite(curves.supremum):
        return survival(upper)
    above = survival(float(curves.supremum))
    return max(0.0, survival(upper) - above) / max(1.0 - above, 1e-300)


def number(value: float) -> str:
    """Two significant digits, with a power of ten for very small and very large numbers."""
    if value == 0.0 or not np.isfinite(value):
        return "0" if value == 0.0 else "infinity"
    if 1e-3 <= abs(value) < 1e4:
        digits = max(0, 1 - int(np.floor(np.log10(abs(value)))))
        return f"{value:.{digits}f}" if abs(value) < 100 else f"{value:,.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}·10" + str(int(exponent)).translate(SUPERSCRIPTS)


def percent(share: float) -> str:
    """A probability as a percentage that never rounds to 0% or 100%."""
    if share < 0.001:
        return "less than 0.1%" if share > 0.0 else "0%"
    if 0.999 < share < 1.0:
        return "more than 99.9%"
    return f"{100 * share:.1f}%" if share < 0.1 or share > 0.99 else f"{100 * share:.0f}%"


def amount(choices: Choices, kappa: float) -> str:
    """A divergence with its unit."""
    if choices.divergence == "squared_hellinger":
        return f"{number(kappa)} (squared Hellinger)"
    return f"{number(kappa)} nats"


def _tail(choices: Choices, pi: predcp.DivergencePrior, curves: Curves) -> str:
    if choices.tail is None:
        share = percent(beyond(pi, curves, _STATED))
        stated = amount(choices, _STATED).replace(number(_STATED), f"{_STATED:g}")
        return f"The chance that they move by more than {stated} is {share}."
    found = beyond(pi, curves, choices.tail.upper)
    return f"P(κ > {choices.tail.upper:g}) is {found:.3g}, as you stated."


def _scale(choices: Choices, name: str, curves: Curves) -> str:
    low, median, _, high = (float(level) for level in curves.tau_levels)
    if choices.model == "network":
        given = "" if name == "layer 1" else " (given the medians of the layers below)"
        subject = f"The variance τ of the weights of {name}{given}"
    else:
        subject = "The variance τ of the coefficients"
    return (
        f"{subject} has median {number(median)} (a standard deviation of {number(median**0.5)}); 90% of "
        f"the mass is between {number(low)} and {number(high)}."
    )


def _shrinkage(choices: Choices, name: str, curves: Curves) -> str:
    small = float(curves.small)
    thing = f"weights of {name}" if choices.model == "network" else "coefficients"
    if abs(small - 0.5) < 0.01:
        return f"It pulls {thing} towards 0 about as often as the horseshoe (τ below 1: 50%)."
    compared = "more" if small > 0.5 else "less"
    return (
        f"It pulls {thing} towards 0 {compared} than the horseshoe: τ is below 1 with probability "
        f"{percent(small)}, against 50%."
    )


def _ruler(choices: Choices, kappa: float) -> str:
    """The same divergence as a move of one observation."""
    coin = choices.model == "logistic"
    moves, divergences = ruler(coin, choices.divergence)
    if kappa >= divergences[-1]:
        return "A single prediction cannot move much farther."
    move = float(np.interp(kappa, divergences, moves))
    if coin:
        probability = 1.0 / (1.0 + np.exp(-move))
        return f"For one prediction, that turns a probability of 0.5 into {number(probability)}."
    return (
        f"For one prediction, that is a shift by {number(move)} standard deviations of the noise."
    )


@lru_cache(maxsize=16)
def ruler(coin: bool, divergence: str) -> tuple[Any, Any]:
    """Moves of a logit, or of a mean in units of the noise, and the divergence of each."""
    moves = np.geomspace(1e-9, 30.0 if coin else 1e9, 2001)
    measure: predcp.Divergence = getattr(predcp, divergence)
    if coin:
        values = measure(dist.Bernoulli(logits=jnp.asarray(moves)), dist.Bernoulli(logits=0.0))
    else:
        values = measure(dist.Normal(jnp.asarray(moves), 1.0), dist.Normal(0.0, 1.0))
    return moves, np.asarray(values)
