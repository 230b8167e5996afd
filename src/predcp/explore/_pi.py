"""The prior on the divergence that was chosen, and the expression that makes it."""

import predcp
from predcp.explore._choices import FREE_WITH_TAIL, PARAMETERS, Choices


def keywords(choices: Choices) -> dict[str, float]:
    """The arguments of the constructor, or of `from_tail` where a tail was stated."""
    if choices.tail is None:
        return {each.name: choices.value(each.name) for each in PARAMETERS[choices.family]}
    stated = {"upper": choices.tail.upper, "probability": choices.tail.probability}
    return stated | {name: choices.value(name) for name in FREE_WITH_TAIL[choices.family]}


def divergence_prior(choices: Choices) -> predcp.DivergencePrior:
    """pi itself."""
    family = getattr(predcp, choices.family)
    return (family if choices.tail is None else family.from_tail)(**keywords(choices))


def expression(choices: Choices) -> str:
    """The same as code, for instance `predcp.LogCauchy(scale=1.0, loc=0.0)`."""
    call = choices.family if choices.tail is None else f"{choices.family}.from_tail"
    written = ", ".join(f"{name}={value!r}" for name, value in keywords(choices).items())
    return f"predcp.{call}({written})"
