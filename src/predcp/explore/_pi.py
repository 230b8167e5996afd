"""The prior on the divergence that was chosen, and the code that makes the prior on the scale."""

import math

import jax
import jax.numpy as jnp

import predcp
from predcp._divergence_priors import with_truncated_tail
from predcp.explore._choices import FREE_WITH_TAIL, PARAMETERS, Choices

_with_truncated_tail = jax.jit(with_truncated_tail)


def keywords(choices: Choices) -> dict[str, float]:
    """The arguments of the constructor, or of `from_tail` if a tail is stated."""
    if choices.tail is None:
        return {each.name: choices.value(each.name) for each in PARAMETERS[choices.family]}
    stated = {"upper": choices.tail.upper, "probability": choices.tail.probability}
    return stated | {name: choices.value(name) for name in FREE_WITH_TAIL[choices.family]}


def divergence_prior(choices: Choices, log_supremum: float = math.inf) -> predcp.DivergencePrior:
    """pi, before truncation. A stated tail holds after truncation at the supremum.

    **Arguments**: `choices`; `log_supremum`, the log of the supremum of the map.
    """
    family = getattr(predcp, choices.family)
    if choices.tail is None:
        return family(**keywords(choices))
    pi = family.from_tail(**keywords(choices))
    if math.isinf(log_supremum):
        return pi
    upper, probability = choices.tail
    largest = math.exp(log_supremum)
    if upper >= largest:
        raise ValueError(
            f"P(κ > {upper:g}) is 0 for every scale, because no κ exceeds {largest:.3g}; choose u below "
            f"{largest:.3g}"
        )
    arguments = (jnp.log(upper), jnp.asarray(log_supremum), jnp.asarray(probability))
    found = _with_truncated_tail(pi, *arguments)
    if any(bool(jnp.isnan(leaf).any()) for leaf in jax.tree.leaves(found)):
        raise ValueError(
            f"P(κ > {upper:g}) = {probability:g} is not possible with this π, truncated at the largest "
            f"possible κ of {largest:.3g}; choose a smaller p, a smaller u or another π"
        )
    return found


def prior_code(choices: Choices) -> str:
    """The lines that make the prior from `complexity`."""
    written = ", ".join(f"{name}={value!r}" for name, value in keywords(choices).items())
    if choices.tail is None:
        return (
            f"pi = predcp.{choices.family}({written})\n"
            "prior = predcp.ComplexityPrior(pi, complexity)"
        )
    return (
        "prior = predcp.ComplexityPrior.from_tail(\n"
        f"    predcp.{choices.family}, complexity, {written}\n)"
    )
