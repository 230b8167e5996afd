"""What is believed about the scale of each module before any task is seen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from predcp._divergence_priors import (
    DivergencePrior,
    Exponential,
    GammaExponential,
    HalfCauchy,
    LogCauchy,
    as_divergence_prior,
)
from predcp.fewshot._networks import HEAD

Kind = Literal["maml", "flat", "shrinkage", "predcp"]
KINDS: tuple[Kind, ...] = ("maml", "flat", "shrinkage", "predcp")
# The paper's four, for sigma (shrinkage) and for kappa (PredCP) alike.
HYPERPRIORS: dict[str, DivergencePrior] = {
    "half-cauchy": HalfCauchy(1.0),
    "log-cauchy": LogCauchy(scale=2.0),
    "gem": GammaExponential(weight=0.5, shape=0.2, scale=2.0, mean=0.5),
    "exponential": Exponential(mean=0.5),
}
Measure = Literal["variance", "deviation", "log"]
# How often log tau is taken off the log density of log tau.
_JACOBIAN: dict[str, float] = {"variance": 1.0, "deviation": 0.5, "log": 0.0}


@dataclass(frozen=True)
class ScalePrior:
    """The prior of the scales, `theta_m ~ N(phi_m, tau_m I)` for each module m; sigma^2 = tau.

    **Arguments**
    - `kind`: `maml` (no scales: every task starts from phi and nothing pulls it back), `flat` (scales
        learnt, improper prior), `shrinkage` (`pi` is the prior of **sigma**, a standard deviation), or
        `predcp` (`pi` is the prior of kappa, and the density is that of **tau**, a variance).
    - `pi`: a name in `HYPERPRIORS`, any `predcp.DivergencePrior` or positive NumPyro distribution.
    - `beta`: the weight of `log p(tau)` beside the mean cross-entropy of the queries.
    - `modules`: those that have the prior; the others' scales stay flat. None for all,
        `"body"` for all but the head.
    - `measure`: the variable whose density is maximised (a maximum depends on it): `variance`,
        `deviation` or `log`; None for the kind's own, as above.
    - `into_shared`: whether the gradient of the prior also moves phi.
    - `clip`: largest norm of a step's gradient; None for any.
    """

    kind: Kind = "flat"
    pi: Any = None
    beta: float = 1.0
    modules: tuple[str, ...] | str | None = None
    measure: Measure | None = None
    into_shared: bool = True
    clip: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.weighted:
            if self.pi is None:
                raise ValueError(f"a {self.kind} prior needs pi: {', '.join(HYPERPRIORS)}")
            if isinstance(self.pi, str) and self.pi not in HYPERPRIORS:
                raise ValueError(f"pi must be one of {', '.join(HYPERPRIORS)}, got {self.pi!r}")
        if not (math.isfinite(self.beta) and self.beta > 0.0):
            raise ValueError(f"beta must be positive, got {self.beta}")
        if self.clip is not None and not self.clip > 0.0:
            raise ValueError(f"clip must be positive or None, got {self.clip}")
        if self.measure is not None and self.measure not in _JACOBIAN:
            raise ValueError(
                f"measure must be one of {', '.join(_JACOBIAN)} or None, got {self.measure!r}"
            )

    @property
    def weighted(self) -> bool:
        """Whether a density enters the objective."""
        return self.kind in ("shrinkage", "predcp")

    @property
    def density(self) -> DivergencePrior | None:
        """`pi` as an object; None for MAML and a flat prior."""
        if not self.weighted:
            return None
        return HYPERPRIORS[self.pi] if isinstance(self.pi, str) else as_divergence_prior(self.pi)

    @property
    def jacobian(self) -> float:
        """How often log tau is taken off the log density of log tau."""
        own = "variance" if self.kind == "predcp" else "deviation"
        return _JACOBIAN[self.measure or own]

    def mask(self, module_names: Sequence[str]) -> np.ndarray:
        """1 for the modules that have the prior."""
        if self.modules is None:
            return np.ones(len(module_names))
        if isinstance(self.modules, str):
            chosen = (
                [name for name in module_names if name != HEAD]
                if self.modules == "body"
                else self.modules.split(",")
            )
        else:
            chosen = list(self.modules)
        unknown = [name for name in chosen if name not in module_names]
        if unknown or not chosen:
            raise ValueError(
                f"modules {unknown} are not in the network, which has {', '.join(module_names)}"
            )
        return np.asarray([float(name in chosen) for name in module_names])

    @property
    def name(self) -> str:
        """As `as_scale_prior` reads it, where `pi` has a name."""
        if not self.weighted:
            return self.kind
        pi = self.pi if isinstance(self.pi, str) else type(self.density).__name__
        power = -round(math.log10(self.beta))
        short = float(f"1e-{power}") == self.beta if power >= 0 else False
        return f"{self.kind}-{pi}-{f'1e-{power}' if short else repr(self.beta)}"


def as_scale_prior(prior: Any, **changes: Any) -> ScalePrior:
    """A `ScalePrior`, or one by name: `maml`, `flat`, `predcp-log-cauchy-1e-1`, `shrinkage-gem-1e-3`.

    **Arguments**: `changes`, fields of a named prior to set besides.
    """
    if isinstance(prior, ScalePrior):
        return prior
    if not isinstance(prior, str):
        raise ValueError(f"prior must be a name or a ScalePrior, got {type(prior).__name__}")
    if prior in ("maml", "flat"):
        return ScalePrior(prior, **changes)
    kind, _, rest = prior.partition("-")
    for pi in HYPERPRIORS:
        if kind in ("shrinkage", "predcp") and rest.startswith(f"{pi}-"):
            try:
                beta = float(rest.removeprefix(f"{pi}-"))
            except ValueError:
                break
            return ScalePrior(kind, pi, beta, **changes)
    raise ValueError(
        f"no prior is called {prior!r}; there are maml, flat, and shrinkage-PI-BETA and "
        f"predcp-PI-BETA with PI one of {', '.join(HYPERPRIORS)} and BETA such as 1e-2"
    )


class Present(NamedTuple):
    """What there is among the runs of a program; the rest is not computed.

    **Arguments**: the `kinds` of prior; whether any is `kept` from phi, or `clips` its gradients.
    """

    kinds: frozenset[str]
    kept: bool
    clips: bool

    @classmethod
    def among(cls, priors: Sequence[ScalePrior]) -> "Present":
        """What these priors need."""
        return cls(
            frozenset(prior.kind for prior in priors),
            any(not prior.into_shared for prior in priors),
            any(prior.clip is not None for prior in priors),
        )


class RunValues(NamedTuple):
    """What tells runs of one program apart, as data: each array may have a leading axis of runs.

    **Arguments**: `decay` of eps to 0, and whether scales are `trainable` (both 0 for MAML); the
    weight of a `shrinkage` or `predcp` density; the number of `pi`; `jacobian` and `mask` `(modules,)`
    as in `ScalePrior`; whether the prior is `kept` from phi; `clip`, infinite for none.
    """

    decay: Array
    trainable: Array
    shrinkage: Array
    predcp: Array
    pi: Array
    jacobian: Array
    mask: Array
    kept: Array
    clip: Array


def run_values(
    priors: Sequence[ScalePrior], module_names: Sequence[str]
) -> tuple[RunValues, tuple[DivergencePrior, ...]]:
    """The values of runs side by side, and the different `pi` they use."""
    densities: list[DivergencePrior] = []
    numbers = []
    for prior in priors:
        density = prior.density
        if density is None:
            numbers.append(0)
            continue
        known = [place for place, other in enumerate(densities) if other is density]
        if not known:
            densities.append(density)
        numbers.append(known[0] if known else len(densities) - 1)
    kind = jnp.result_type(float)

    def column(values: list[Any]) -> Array:
        return jnp.asarray(np.asarray(values), kind)

    values = RunValues(
        decay=column([float(prior.kind != "maml") for prior in priors]),
        trainable=column([float(prior.kind != "maml") for prior in priors]),
        shrinkage=column([prior.beta * (prior.kind == "shrinkage") for prior in priors]),
        predcp=column([prior.beta * (prior.kind == "predcp") for prior in priors]),
        pi=jnp.asarray(numbers, jnp.int32),
        jacobian=column([prior.jacobian for prior in priors]),
        mask=column([prior.mask(module_names) for prior in priors]),
        kept=column([float(not prior.into_shared) for prior in priors]),
        clip=column([math.inf if prior.clip is None else prior.clip for prior in priors]),
    )
    return values, tuple(densities)


def chosen_log_density(
    densities: Sequence[DivergencePrior], number: Array, log_value: Float[Array, " modules"]
) -> Float[Array, " modules"]:
    """`log pi(log value)` under the density of that number."""
    if len(densities) == 1:
        return densities[0].log_prob_log(log_value)
    branches = [density.log_prob_log for density in densities]
    return jax.lax.switch(number, branches, log_value)


def chosen_log_mass(
    densities: Sequence[DivergencePrior], number: Array, log_value: Float[Array, " modules"]
) -> Float[Array, " modules"]:
    """Log of the mass of that density below the value."""
    if len(densities) == 1:
        return densities[0].log_cdf_log(log_value)
    return jax.lax.switch(number, [density.log_cdf_log for density in densities], log_value)
