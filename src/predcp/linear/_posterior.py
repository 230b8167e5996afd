"""A fitted regression as an ArviZ data tree."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpyro import handlers
from numpyro.infer import Predictive

from predcp.linear._coefficient_prior import LocalScalePrior
from predcp.linear._target import Target

if TYPE_CHECKING:
    import xarray

    from predcp.linear._regression import Regression

_PRIOR_DRAWS = 500
_LARGEST = 1e300


def posterior_tree(model: Any) -> xarray.DataTree:
    """`posterior` and what ArviZ computes with: see `Regression.posterior_`.

    **Arguments**: `model`, fitted to data it still holds.
    """
    import arviz_base
    import xarray

    values = model.draws_.values
    shape = values["beta"].shape[:2]
    outcomes = np.asarray(model._data[1])
    weights = np.asarray(model._data[2], np.float64) if len(model._data) > 2 else None
    predictors = _training_predictors(model)
    log_likelihood = model._log_likelihood(outcomes, predictors)
    if weights is not None:
        log_likelihood = log_likelihood * weights[:, None]
    generator = np.random.default_rng(0)
    replicated = model._replicate(predictors, generator)

    def by_chain(rows_by_draws: np.ndarray) -> np.ndarray:
        return rows_by_draws.T.reshape(*shape, -1)

    target = model._target()
    groups = {
        "posterior": model._original_units(),
        "sample_stats": dict(model.draws_.statistics),
        "log_likelihood": {"y": by_chain(log_likelihood)},
        "posterior_predictive": {"y": by_chain(replicated)},
        "prior": _prior(model, target),
        "observed_data": {"y": _observed(model, outcomes)},
    }
    coords, dims = _dimensions(model)
    present = {name: group for name, group in groups.items() if group}
    tree = arviz_base.from_dict(present, coords=coords, dims=dims)
    # Summed over features, so dimensions differ from those in the posterior.
    log_prior = arviz_base.dict_to_dataset(_log_prior(target, values))
    tree["log_prior"] = xarray.DataTree(log_prior)
    return tree


def _training_predictors(model: Any) -> np.ndarray:
    x = np.asarray(model._data[0], np.float64)
    beta = np.asarray(model.draws_.values["beta"], np.float64)
    beta = beta.reshape(-1, *beta.shape[2:])
    predictors = np.einsum("np,dp...->nd...", x, beta, optimize=True)
    alpha = model.draws_.values.get("alpha")
    return predictors if alpha is None else predictors + alpha.reshape(-1, *alpha.shape[2:])


def _observed(model: Regression, outcomes: np.ndarray) -> np.ndarray:
    target = getattr(model, "target_", None)
    return outcomes if target is None else outcomes * target.scale[0] + target.mean[0]


def _log_prior(target: Target, values: Any) -> dict[str, np.ndarray]:
    """The log density of every site but xi, `(chains, draws)`."""
    data = tuple(jax.numpy.asarray(part) for part in target.data)
    sites = {name: np.asarray(value) for name, value in values.items() if name != "beta"}

    def one(sites: dict[str, Any]) -> dict[str, Any]:
        seeded = handlers.seed(target.model, jax.random.key(0))
        given = handlers.substitute(seeded, sites)
        trace = handlers.trace(given).get_trace(*data, **target.options)
        return {
            name: jax.numpy.sum(trace[name]["fn"].log_prob(value))
            for name, value in sites.items()
            if trace[name]["type"] == "sample"
        }

    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in sites.items()}
    shape = np.shape(values["beta"])[:2]
    found = jax.jit(lambda flat: jax.lax.map(one, flat))(flat)
    return {
        "tau" if name == "log_tau" else name: np.asarray(value).reshape(shape)
        for name, value in found.items()
    }


def _prior(model: Any, target: Target) -> dict[str, np.ndarray]:
    """Draws of the prior, `(1, draws, ...)`, in the units of the posterior."""
    options = dict(target.options)
    if isinstance(options["prior"], LocalScalePrior):
        # In coordinates for samplers an infinite scale would be NaN.
        options["prior"] = replace(options["prior"], centring=0.0)
    # In double precision: heavy tails overflow single precision every few hundred draws.
    with jax.enable_x64(True):
        design, _, *weights = (jax.numpy.asarray(part) for part in target.data)
        sites = [*(name for name in model.draws_.values if name != "y")]
        sampler = Predictive(target.model, num_samples=_PRIOR_DRAWS, return_sites=sites)
        drawn = sampler(jax.random.key(1), design, None, *weights, **options)
    values = {
        name: np.clip(np.asarray(value, np.float64), -_LARGEST, _LARGEST)[None]
        for name, value in drawn.items()
    }
    draws = model.draws_
    shown = type(model)(**model.get_params(deep=False))
    shown.__dict__.update(model.__dict__)
    shown.draws_ = type(draws)(values, {}, None, 0.0, 0)
    with np.errstate(over="ignore"):
        units = shown._original_units()
    return {name: np.clip(value, -_LARGEST, _LARGEST) for name, value in units.items()}


def _dimensions(model: Any) -> tuple[dict[str, Any], dict[str, list[str]]]:
    names, varying = np.asarray(model._names()), model.columns_.varying
    coords = {"feature": names, "row": np.arange(len(model._data[1]))}
    scaled = "feature"
    if not varying.all():
        # Constant columns have no local scale.
        scaled, coords["varying_feature"] = "varying_feature", names[varying]
    outputs = model._outputs()
    classes = []
    if len(outputs) > 1:
        classes, coords["class"] = ["class"], np.asarray(outputs)
    dims = {"coef": ["feature", *classes], "lambda": [scaled, *classes], "y": ["row"]}
    if classes:
        dims["intercept"] = classes
    return coords, dims
