"""Values in which runs of one program differ, as data."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp._divergence_priors import DivergencePrior
from predcp.fewshot._module_priors import ModuleScalePrior
from predcp.fewshot._settings import Rates


class Run(NamedTuple):
    """One fit: its prior, its seed, and its own rates; None for those of the settings."""

    prior: ModuleScalePrior
    seed: int
    rates: Rates | None = None


class Present(NamedTuple):
    """Features that some run of a program needs; the others are not computed.

    **Arguments**: the `kinds` of prior; whether any `detaches` phi from the gradient of its density,
    or `clips` its gradients.
    """

    kinds: frozenset[str]
    detaches: bool
    clips: bool

    @classmethod
    def among(cls, priors: Sequence[ModuleScalePrior]) -> "Present":
        """Features that these priors need."""
        return cls(
            frozenset(prior.kind for prior in priors),
            any(prior.detached for prior in priors),
            any(prior.clip is not None for prior in priors),
        )


class RunValues(NamedTuple):
    """Values that differ between runs; each array may have a leading axis of runs.

    **Arguments**: `decay` of eps to 0, and whether scales are `trainable` (both 0 for MAML); the
    weight of a `shrinkage` or `predcp` density; the place of its `pi`; `jacobian` and `mask`
    `(modules,)` as in the priors; whether phi is `detached` from the density's gradient; `clip`,
    infinite for none; `rates`.
    """

    decay: Array
    trainable: Array
    shrinkage: Array
    predcp: Array
    pi: Array
    jacobian: Array
    mask: Array
    detached: Array
    clip: Array
    rates: Rates


def run_values(
    priors: Sequence[ModuleScalePrior], module_names: Sequence[str], rates: Sequence[Rates]
) -> tuple[RunValues, tuple[DivergencePrior, ...]]:
    """The values of runs side by side, and the different `pi` they use."""
    densities: list[DivergencePrior] = []
    places = []
    for prior in priors:
        density = prior.density
        if density is None:
            places.append(0)
            continue
        known = [place for place, other in enumerate(densities) if other is density]
        if not known:
            densities.append(density)
        places.append(known[0] if known else len(densities) - 1)
    kind = jnp.result_type(float)

    def column(values: list[Any]) -> Array:
        return jnp.asarray(np.asarray(values), kind)

    def weights(kind: str) -> Array:
        return column([prior.weight * (prior.kind == kind) for prior in priors])

    scaled = column([float(prior.kind != "maml") for prior in priors])
    values = RunValues(
        decay=scaled,
        trainable=scaled,
        shrinkage=weights("shrinkage"),
        predcp=weights("predcp"),
        pi=jnp.asarray(places, jnp.int32),
        jacobian=column([prior.jacobian for prior in priors]),
        mask=column([prior.mask(module_names) for prior in priors]),
        detached=column([float(prior.detached) for prior in priors]),
        clip=column([math.inf if prior.clip is None else prior.clip for prior in priors]),
        rates=Rates(*(column(list(each)) for each in zip(*rates, strict=True))),
    )
    return values, tuple(densities)
