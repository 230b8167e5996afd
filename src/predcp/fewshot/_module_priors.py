"""Priors of the scale of each module: `theta_m ~ N(phi_m, tau_m I)`, `sigma_m^2 = tau_m`."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

import numpy as np

from predcp._divergence_priors import (
    DivergencePrior,
    Exponential,
    GammaExponential,
    HalfCauchy,
    LogCauchy,
    as_divergence_prior,
    prior_from_config,
    prior_to_config,
)
from predcp.fewshot._networks import HEAD

# The paper's four, for sigma (shrinkage) and for kappa (PredCP) alike.
HYPERPRIORS: dict[str, DivergencePrior] = {
    "half-cauchy": HalfCauchy(1.0),
    "log-cauchy": LogCauchy(scale=2.0),
    "gem": GammaExponential(weight=0.5, shape=0.2, scale=2.0, mean=0.5),
    "exponential": Exponential(mean=0.5),
}
Measure = Literal["variance", "standard deviation", "log"]
# Exponent of the Jacobian: how many times log tau is subtracted from the log density of log tau.
_JACOBIAN: dict[str, float] = {"variance": 1.0, "standard deviation": 0.5, "log": 0.0}


@dataclass(frozen=True)
class ModuleScalePrior:
    """A prior of the scales of a network's modules.

    **Arguments**: `clip`, the largest norm of a step's gradient; None for any.
    """

    kind: ClassVar[str]
    clip: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.clip is not None and not self.clip > 0.0:
            raise ValueError(f"clip must be positive or None, got {self.clip}")

    @property
    def density(self) -> DivergencePrior | None:
        """The density that enters the objective; None for none."""
        return None

    @property
    def weight(self) -> float:
        """Weight of the log density in the objective."""
        return 0.0

    @property
    def jacobian(self) -> float:
        """Exponent of the Jacobian: how many times log tau is subtracted."""
        return 0.0

    @property
    def detached(self) -> bool:
        """Whether phi is kept out of the gradient of the density."""
        return False

    def mask(self, module_names: Sequence[str]) -> np.ndarray:
        """1 for the modules that have the density, 0 for the others."""
        return np.ones(len(module_names))

    @property
    def name(self) -> str:
        """The name for `as_module_prior`; if `pi` has no name, one that only describes the prior."""
        return self.kind

    @property
    def description(self) -> str:
        """The name if it is complete, otherwise all fields as JSON."""
        config = self.to_config()
        return config if isinstance(config, str) else json.dumps(config)

    def to_config(self) -> Any:
        """Plain values from which `module_prior_from_config` makes the same prior."""
        try:
            if as_module_prior(self.name) == self:
                return self.name
        except ValueError:
            pass
        return prior_to_config(self)


@dataclass(frozen=True)
class MAMLModules(ModuleScalePrior):
    """No scales: every task starts from phi without a prior."""

    kind: ClassVar[str] = "maml"


@dataclass(frozen=True)
class FlatModules(ModuleScalePrior):
    """Scales are learned under an improper flat prior."""

    kind: ClassVar[str] = "flat"


@dataclass(frozen=True)
class _DensityModules(ModuleScalePrior):
    """A prior whose log density enters the objective."""

    pi: Any
    beta: float = 1.0
    modules: tuple[str, ...] | str | None = field(default=None, kw_only=True)
    measure: Measure = field(default="variance", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.pi, str) and self.pi not in HYPERPRIORS:
            raise ValueError(
                "pi must be a prior on a divergence, a positive NumPyro distribution or one of "
                f"{', '.join(HYPERPRIORS)}, got {self.pi!r}"
            )
        if not isinstance(self.pi, str):
            object.__setattr__(self, "pi", as_divergence_prior(self.pi))
        if not (math.isfinite(self.beta) and self.beta > 0.0):
            raise ValueError(f"beta must be positive, got {self.beta}")
        if self.measure not in _JACOBIAN:
            raise ValueError(f"measure must be one of {', '.join(_JACOBIAN)}, got {self.measure!r}")

    @property
    def density(self) -> DivergencePrior:
        return HYPERPRIORS[self.pi] if isinstance(self.pi, str) else self.pi

    @property
    def weight(self) -> float:
        return self.beta

    @property
    def jacobian(self) -> float:
        return _JACOBIAN[self.measure]

    def mask(self, module_names: Sequence[str]) -> np.ndarray:
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
        pi = self.pi if isinstance(self.pi, str) else type(self.pi).__name__
        power = -round(math.log10(self.beta))
        short = float(f"1e-{power}") == self.beta if power >= 0 else False
        return f"{self.kind}-{pi}-{f'1e-{power}' if short else repr(self.beta)}"


@dataclass(frozen=True)
class ShrinkageModules(_DensityModules):
    """`sigma_m ~ pi`: a shrinkage prior of the **standard deviations**.

    **Arguments**
    - `pi`: any `predcp.DivergencePrior` or positive NumPyro distribution, or a name in `HYPERPRIORS`.
    - `beta`: the weight of `log p(tau)` relative to the mean cross-entropy of the queries.
    - `modules`: names of the modules with this prior; the other scales have a flat one. None for all,
        `"body"` for all but the head.
    - `measure`: the variable whose density is maximised (a maximum depends on it): `variance`,
        `standard deviation` or `log`.
    - `clip`: as in `ModuleScalePrior`.
    """

    kind: ClassVar[str] = "shrinkage"
    measure: Measure = field(default="standard deviation", kw_only=True)


@dataclass(frozen=True)
class PredCPModules(_DensityModules):
    """`kappa_m ~ pi`: the PredCP, a density of the **variances** tau (algorithm 3 of the paper).

    **Arguments**
    - `pi`, `beta`, `modules`, `measure`, `clip`: as in `ShrinkageModules`, with `pi` the prior of kappa.
    - `into_shared`: whether the gradient of the prior also moves phi.
    """

    kind: ClassVar[str] = "predcp"
    into_shared: bool = field(default=True, kw_only=True)

    @property
    def detached(self) -> bool:
        return not self.into_shared


_WITHOUT_DENSITY: dict[str, type[ModuleScalePrior]] = {"maml": MAMLModules, "flat": FlatModules}
_WITH_DENSITY: dict[str, type[_DensityModules]] = {
    "shrinkage": ShrinkageModules,
    "predcp": PredCPModules,
}


def as_module_prior(prior: Any, **changes: Any) -> ModuleScalePrior:
    """A `ModuleScalePrior` as it is, or one by name.

    **Arguments**: `prior`, an object, or `maml`, `flat`, `predcp-log-cauchy-1e-1`,
    `shrinkage-gem-1e-3` and the like; `changes`, fields of a named prior to set besides.
    """
    if isinstance(prior, ModuleScalePrior):
        return prior
    if not isinstance(prior, str):
        raise ValueError(
            f"prior must be a predcp.fewshot prior or the name of one, got {type(prior).__name__}"
        )
    if prior in _WITHOUT_DENSITY:
        return _changed(prior, _WITHOUT_DENSITY[prior], changes)
    kind, _, rest = prior.partition("-")
    for pi in HYPERPRIORS:
        if kind in _WITH_DENSITY and rest.startswith(f"{pi}-"):
            try:
                beta = float(rest.removeprefix(f"{pi}-"))
            except ValueError:
                break
            return _changed(prior, _WITH_DENSITY[kind], changes, pi=pi, beta=beta)
    raise ValueError(
        f"no prior is called {prior!r}; there are maml, flat, and shrinkage-PI-BETA and "
        f"predcp-PI-BETA with PI one of {', '.join(HYPERPRIORS)} and BETA such as 1e-2"
    )


def module_prior_from_config(config: Any) -> ModuleScalePrior:
    """The inverse of `ModuleScalePrior.to_config`."""
    if isinstance(config, str):
        return as_module_prior(config)
    kinds = (*_WITHOUT_DENSITY.values(), *_WITH_DENSITY.values())
    return prior_from_config(config, {kind.__name__: kind for kind in kinds})


def _changed(
    name: str, made: type[ModuleScalePrior], changes: dict[str, Any], **own: Any
) -> ModuleScalePrior:
    known = {each.name for each in fields(made)} - own.keys()
    unknown = sorted(changes.keys() - known)
    if unknown:
        raise ValueError(f"the prior {name} has no {', '.join(unknown)}; it has {sorted(known)}")
    return made(**own, **changes)
