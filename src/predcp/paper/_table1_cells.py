"""Cells of Table 1: logistic regression on a small table, one split or many in one program."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import enable_x64
from jaxtyping import Array

from predcp.data import Split, Standardiser
from predcp.experiments import FILE_SETTINGS, Cell, CellModel, Context, Result, cell_split
from predcp.linear import (
    ChainSampler,
    CoefficientPrior,
    Draws,
    Gibbs,
    LocalScalePrior,
    MeanField,
    Nuts,
    PredCP,
    Target,
    as_coefficient_prior,
    logistic_regression,
)
from predcp.paper._class_scores import convergence, scores


def run(cell: Cell, context: Context) -> Result:
    """Fit one split."""
    return run_many([cell], context)[0]


def run_many(cells: Sequence[Cell], context: Context) -> list[Result]:
    """Fit splits of one data set, prior, inference and settings in one program.

    With the setting `max_draws`, chains that have not mixed run on, up to that number of draws (and
    `max_seconds`); what has still not mixed then is reported as it is.
    """
    splits = [cell_split(cell, context) for cell in cells]
    for split, cell in zip(splits, cells):
        if split.train.task != "binary":
            raise ValueError(f"logistic needs two classes, {cell.data} is {split.train.task}")
    # Double precision, as in Stan, unless told: separable rows and heavy tails use its range.
    with enable_x64(_is_double(cells[0])):
        draws = _sample(cells[0], splits, context)
    return [_result(*pair, context.keep_posterior) for pair in zip(draws, splits)]


def _result(draws: Draws, split: Split, keep: bool) -> Result:
    test = scores(draws.values["test_logits"], split.test.target)
    train = scores(draws.values["train_logits"], split.train.target)
    figures = convergence(draws) | {"sampling_seconds": draws.seconds}
    return Result({"test": test, "train": train}, figures, draws.values if keep else None)


def _sample(cell: Cell, splits: Sequence[Split], context: Context) -> list[Draws]:
    rows, columns = splits[0].train.features.shape
    method = inference(cell, tall=rows > columns)
    prior = coefficient_prior(cell)
    if cell.inference == "vi" and isinstance(prior, LocalScalePrior):
        # A mean-field fit depends on its coordinates, and the paper's are Stan's.
        prior = replace(prior, coordinates="log", centring=0.0)
    data = [_arrays(split) for split in splits]
    single = len(data) == 1
    arrays = data[0] if single else tuple(jnp.stack(parts) for parts in zip(*data))
    target = Target(
        _model,
        arrays,
        {"prior": prior, "intercept": bool(cell.settings.get("intercept", False))},
        None if single else len(data),
        _keep,
    )
    return method.sample(target, context.report)


def _is_double(cell: Cell) -> bool:
    precision = cell.settings.get("precision", "double")
    if precision not in ("single", "double"):
        raise ValueError(f"precision must be 'single' or 'double', got {precision!r}")
    return precision == "double"


_SAMPLERS: dict[str, type[ChainSampler]] = {"gibbs": Gibbs, "nuts": Nuts}
# Settings of a Gibbs sweep, which NUTS does not have.
_SWEEP = ("handovers", "paths", "lattice")


def inference(cell: Cell, tall: bool = False) -> ChainSampler | MeanField:
    """Inference object for a cell's `inference` and settings.

    **Arguments**: `tall`, whether the table has more rows than columns. `mcmc` is the faster
    sampler: Gibbs sweeps for wide tables such as the paper's, NUTS for tall ones.
    """
    settings: dict[str, Any] = dict(cell.settings)
    for name in ("complexity_draws", "intercept", "precision", *FILE_SETTINGS):
        settings.pop(name, None)
    name = cell.inference
    if name == "mcmc":
        name = "nuts" if tall else "gibbs"
        if tall:
            settings = {key: value for key, value in settings.items() if key not in _SWEEP}
    if name in _SAMPLERS:
        return _SAMPLERS[name](seed=cell.seed, monitor=("test_probability",), **settings)
    if cell.inference in ("vi", "vi-converged"):
        rule = "advi" if cell.inference == "vi" else "converged"
        return MeanField(seed=cell.seed, rule=rule, **settings)
    raise ValueError(
        f"inference must be one of 'mcmc', {', '.join(map(repr, _SAMPLERS))}, 'vi' and "
        f"'vi-converged' for logistic, got {cell.inference!r}"
    )


def coefficient_prior(cell: Cell) -> CoefficientPrior:
    """The prior by its name, with the cell's number of draws for the PredCP."""
    prior = as_coefficient_prior(cell.prior)
    count = cell.settings.get("complexity_draws")
    if count is not None and isinstance(prior, PredCP):
        return replace(prior, noise_draws=int(str(count)))
    return prior


def _model(x: Array, y: Array, x_test: Array, prior: CoefficientPrior, intercept: bool) -> None:
    logistic_regression(x, y, prior, intercept=intercept)


def _keep(sites: dict[str, Array], x: Array, y: Array, x_test: Array) -> dict[str, Array]:
    tau, direction = jnp.ones(()), sites["beta"]
    if {"lambda", "xi"} <= sites.keys() and "slab" not in sites:
        # tau last: in the tail of a log-Cauchy it may be infinite, and logits still have a sign.
        tau, direction = jnp.exp(sites["log_tau"]), sites["lambda"] * sites["xi"]
    alpha = sites.get("alpha", 0.0)
    test_logits = tau * (x_test @ direction) + alpha
    return {
        "log_tau": sites["log_tau"],
        "train_logits": tau * (x @ direction) + alpha,
        "test_logits": test_logits,
        # What is reported of the chains decides when they have mixed.
        "test_probability": jax.nn.sigmoid(test_logits),
    }


def _arrays(split: Split) -> tuple[Array, Array, Array]:
    scale = Standardiser.fit(split.train.features)
    kind = np.dtype(jnp.result_type(float))
    return (
        jnp.asarray(scale.transform(split.train.features), kind),
        jnp.asarray(split.train.target),
        jnp.asarray(scale.transform(split.test.features), kind),
    )


MODEL = CellModel(run, run_many)
