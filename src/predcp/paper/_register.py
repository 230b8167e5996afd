"""Tell the engine about the models and experiments of the paper."""

from functools import partial

from predcp.data import Task
from predcp.experiments import Experiment, register_experiment, register_model
from predcp.paper._grids import EXPERIMENTS
from predcp.paper._published import paper_figures, paper_notes

# Imported when the first cell of the model runs: they need JAX, scikit-learn or optax.
_MODELS = {
    "empty": "predcp.paper._empty:run",
    "base-rate": "predcp.paper._base_rate:run",
    "ridge": "predcp.paper._ridge:run",
    "logistic": "predcp.paper._table1_cells:MODEL",
    "resnet": "predcp.paper._table2_cells:MODEL",
    "resnet-nuts": "predcp.paper._nuts_cells:run",
    "fewshot": "predcp.paper._table3_cells:MODEL",
}
_NAMES = {
    "half-cauchy": "half-Cauchy",
    "ecp": "ECP",
    "predcp": "PredCP",
    "inverse-gamma": "inverse gamma",
    "fixed-0.1": "fixed at 0.1",
    "fixed-1": "fixed at 1",
    "maml": "MAML",
    "flat": "flat",
    "mcmc": "MCMC",
    "vi": "VI",
    "vi-tempered": "VI, public code's objective",
    "map": "MAP",
}
# On a user's file they have a base-rate row.
_TABLES = ("toy", "table1", "table2", "depth")
# Kinds of targets that the models of an experiment have.
_TASKS: dict[str, Task] = {"toy": "regression", "table1": "binary"}


def register() -> None:
    """Register every model and experiment."""
    for name, source in _MODELS.items():
        register_model(name, source)
    for name, cells in EXPERIMENTS.items():
        register_experiment(
            name,
            Experiment(
                cells,
                partial(paper_figures, name),
                paper_notes(name),
                _NAMES,
                # The paper's logistic regression has no intercept: without one, rare events are
                # predicted with a probability near one half.
                {"intercept": True} if name == "table1" else {},
                "base-rate" if name in _TABLES else None,
                _TASKS.get(name),
            ),
        )
