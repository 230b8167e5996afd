"""Priors as plain JSON values, for saved models and to identify fits."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpyro.distributions as dist

from predcp._divergence_priors._base import DivergencePrior
from predcp._divergence_priors._exponential import Exponential
from predcp._divergence_priors._gamma import Gamma
from predcp._divergence_priors._gamma_exponential import GammaExponential
from predcp._divergence_priors._given import GivenPrior, as_divergence_prior
from predcp._divergence_priors._half_cauchy import HalfCauchy
from predcp._divergence_priors._log_cauchy import LogCauchy
from predcp._support.arrays import as_float

_FAMILIES: dict[str, type[DivergencePrior]] = {
    kind.__name__: kind for kind in (Exponential, Gamma, GammaExponential, HalfCauchy, LogCauchy)
}


def prior_to_config(prior: Any) -> Any:
    """A prior on a divergence, or a dataclass with such fields, as plain JSON values.

    A user's own family is described by its name and parameters, but cannot be read back.
    """
    if isinstance(prior, GivenPrior):
        return {"numpyro": type(prior.given).__name__, "parameters": _parameters(prior.given)}
    if isinstance(prior, DivergencePrior):
        return {"pi": type(prior).__name__, "parameters": _parameters(prior)}
    if hasattr(prior, "__dataclass_fields__"):
        values = {each.name: prior_to_config(getattr(prior, each.name)) for each in fields(prior)}
        return {"class": type(prior).__name__, "parameters": values}
    return list(prior) if isinstance(prior, tuple) else prior


def prior_from_config(config: Any, classes: Mapping[str, type]) -> Any:
    """The inverse of `prior_to_config`.

    **Arguments**: `classes`, the dataclasses that may be made, by name. Besides these, only priors
    on a divergence and NumPyro's distributions are made.
    """
    if isinstance(config, list):
        return tuple(config)
    if not isinstance(config, dict):
        return config
    parameters = {
        name: prior_from_config(value, classes) for name, value in config["parameters"].items()
    }
    if "class" in config:
        return _found(classes, config["class"])(**parameters)
    numbers = {name: as_float(value) for name, value in parameters.items()}
    if "pi" in config:
        kind = _found(_FAMILIES, config["pi"])
        made: DivergencePrior = object.__new__(kind)
        # Arguments of a family may have other names than its attributes.
        DivergencePrior.__init__(made, **numbers)
        return made
    given = getattr(dist, config["numpyro"], None)
    if not (isinstance(given, type) and issubclass(given, dist.Distribution)):
        raise ValueError(f"numpyro has no distribution {config['numpyro']!r}")
    return as_divergence_prior(given(**numbers))


def _parameters(prior: dist.Distribution) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in prior.get_args().items()}


def _found(known: Mapping[str, Any], name: str) -> Any:
    if name not in known:
        raise ValueError(f"no prior is called {name!r}; there are: {', '.join(known)}")
    return known[name]
