"""Cells of small residual networks by NUTS: tempered posteriors without a variational family."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from predcp.experiments import Cell, Context, Result
from predcp.paper._held_out import moved_inputs
from predcp.paper._table2_cells import arrays_of, prior_of, scores_of, split_of
from predcp.resnet import Data, Model, Network, sample_posterior
from predcp.resnet.programs import row_prior

DEFAULTS: dict[str, Any] = {
    "layers": 1,
    "width": 10,
    "noise_precision": 20.0,
    "rows": "standard",
    "moved": False,
    # The likelihood counts 1 / temperature times.
    "temperature": 1.0,
    "chains": 2,
    "tuning": 500,
    "draws": 500,
}


def run(cell: Cell, context: Context) -> Result:
    """Sample the posterior of one network and score its predictions."""
    unknown = sorted(set(cell.settings) - set(DEFAULTS))
    if unknown:
        raise ValueError(
            f"resnet-nuts knows no settings {', '.join(unknown)}; there are: {', '.join(DEFAULTS)}"
        )
    settings: dict[str, Any] = DEFAULTS | dict(cell.settings)
    split = split_of(cell, context)
    x, y, test, scale = arrays_of(split)
    classes = scale is None
    outputs = len(split.train.class_names) if classes else 1
    network = Network(x.shape[1], settings["width"], settings["layers"], outputs)
    prior = prior_of(cell.prior)
    precision = settings["noise_precision"]
    model = Model(network, (prior,), row_prior(prior), precision, classes)
    draws = sample_posterior(
        model,
        Data(jnp.asarray(x), jnp.asarray(y)),
        warmup=settings["tuning"],
        draws=settings["draws"],
        chains=settings["chains"],
        seed=1000 * cell.seed + cell.split,
        temperature=settings["temperature"],
    )
    held = "validation" if settings["rows"] == "validation" else "test"
    inputs = {held: test} | (moved_inputs(test, cell.split) if settings["moved"] else {})
    metrics = {
        part: scores_of(
            np.asarray(draws.outputs(network, rows)), split.test.target, scale, precision
        )
        for part, rows in inputs.items()
    }
    tau = np.exp(np.asarray(draws.log_tau, np.float64))
    figures = {
        "rhat_outputs": draws.rhat,
        "divergences": draws.divergences,
        **{f"layer{n}_tau": float(np.median(own)) for n, own in enumerate(tau.T, start=1)},
    }
    return Result(metrics, figures)
