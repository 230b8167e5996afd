"""The base rate: a model without features, to compare others with."""

import numpy as np

from predcp.data import Table
from predcp.experiments import Cell, Context, Result, cell_split


def run(cell: Cell, context: Context) -> Result:
    """Predict every row by the training classes' frequencies, or by the training mean."""
    split = cell_split(cell, context)
    score = _number_scores if split.train.task == "regression" else _class_scores
    return Result(
        {"test": score(split.train, split.test), "train": score(split.train, split.train)}
    )


def _class_scores(train: Table, table: Table) -> dict[str, float]:
    """Scores of the classes' frequencies (k + 1/2) / (n + K/2), which are never 0."""
    classes = len(train.class_names)
    counts = np.bincount(train.target, minlength=classes)
    rates = (counts + 0.5) / (len(train) + 0.5 * classes)
    own = rates[table.target]
    scores = {
        "log_likelihood": float(np.log(own).mean()),
        "accuracy": float(100.0 * np.mean(table.target == np.argmax(rates))),
    }
    if classes == 2:
        scores["brier"] = float(np.mean((1.0 - own) ** 2))
    return scores


def _number_scores(train: Table, table: Table) -> dict[str, float]:
    """Scores of a normal with the training mean and standard deviation."""
    mean, deviation = train.target.mean(), train.target.std()
    residual = table.target - mean
    density = -0.5 * (np.log(2 * np.pi * deviation**2) + (residual / deviation) ** 2)
    return {
        "log_likelihood": float(density.mean()),
        "rmse": float(np.sqrt((residual**2).mean())),
        "mae": float(np.abs(residual).mean()),
    }
