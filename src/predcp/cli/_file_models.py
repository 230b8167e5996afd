"""Fit an estimator to a file, save it, and predict the rows of another file."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from predcp._support.saved import SavedModel, load_model, save_model
from predcp.cli._estimators import (
    DEFAULTS,
    ESTIMATORS,
    REGRESSION,
    estimator_arguments,
    resolve_estimator,
)
from predcp.data import Encoder, FileOptions, load_file, read_frame

if TYPE_CHECKING:
    import pandas

_KIND = "file-estimator"


@dataclass(frozen=True)
class Fitted:
    """Description of a fit, for a person to check.

    **Arguments:** `summary`, a table and how far to trust it (of a residual network, its layers);
    `warnings`, what to do about it. None and empty for an estimator with an exact answer.
    """

    estimator: str
    task: str
    rows: int
    features: tuple[str, ...]
    summary: str | None = None
    warnings: tuple[str, ...] = ()


def fit_file(
    path: Path,
    target: str,
    output: Path,
    estimator: str | None = None,
    prior: str | None = None,
    seed: int | None = None,
    sampling: Mapping[str, Any] = MappingProxyType({}),
    options: FileOptions | None = None,
    progress: Any = None,
) -> Fitted:
    """Fit a registered estimator to a CSV or Parquet file and save it.

    **Arguments:**

    - `estimator` defaults by the kind of target, `prior` by the estimator.
    - `sampling`: `inference` and the options of its sampler (see `SAMPLERS`).
    - `options`: how the file is read.
    - `progress`: None, True for a bar, or a function of (done, total).
    """
    if not output.resolve().parent.is_dir():
        raise ValueError(f"output must lie in a folder that exists, got {str(output)!r}")
    loaded = load_file(path, target, options)
    table = loaded.table
    name = estimator or DEFAULTS[table.task]
    chosen = resolve_estimator(name, table.task)
    arguments = estimator_arguments(name, {"prior": prior, "seed": seed}, sampling)
    entry = ESTIMATORS[name]
    features: Any = table.features
    if entry.report is not None:
        import pandas

        arguments["progress"] = progress
        features = pandas.DataFrame(features, columns=list(table.feature_names))
    target_values = table.target
    if table.task != REGRESSION:
        target_values = np.array(table.class_names)[table.target]
    model = chosen(**arguments)
    with warnings.catch_warnings():
        # Warnings are part of the summary.
        warnings.simplefilter("ignore", _convergence_warning())
        model.fit(features, target_values)
    summary = None if entry.report is None else getattr(model, entry.report)()
    arrays, values = model.to_state()
    config = {
        "estimator": name,
        "values": values,
        "encoder": loaded.encoder.to_config(),
        "target": target,
        "task": table.task,
        "class_names": list(table.class_names),
    }
    save_model(output, SavedModel(_KIND, arrays, config))
    words = tuple(getattr(summary, "warnings", ()))
    text = None if summary is None else str(summary)
    return Fitted(name, table.task, len(table), table.feature_names, text, words)


def predict_file(
    model_path: Path, path: Path, options: FileOptions | None = None
) -> pandas.DataFrame:
    """One output row per input row: `prediction`, and how certain it is.

    That is the probability of each class, or the standard deviation of a new observation.
    """
    import pandas

    saved = load_model(model_path, _KIND)
    config: dict[str, Any] = dict(saved.config)
    chosen = resolve_estimator(config["estimator"], config["task"])
    model = chosen.from_state(saved.arrays, config["values"])
    frame = read_frame(path, options)
    features = Encoder.from_config(config["encoder"]).transform(frame, str(path))
    if config["task"] == REGRESSION:
        if not ESTIMATORS[config["estimator"]].deviations:
            return pandas.DataFrame({"prediction": model.predict(features)})
        mean, deviation = getattr(model, "predict")(features, return_std=True)  # noqa: B009
        return pandas.DataFrame({"prediction": mean, "standard_deviation": deviation})
    probabilities = getattr(model, "predict_proba")(features)  # noqa: B009
    classes = [str(name) for name in getattr(model, "classes_")]  # noqa: B009
    best = np.argmax(probabilities, axis=1)
    predicted = pandas.DataFrame({"prediction": [classes[number] for number in best]})
    # In the order of the file's values: 10 after 9.
    for name in config["class_names"]:
        predicted[f"probability_{name}"] = probabilities[:, classes.index(name)]
    return predicted


def _convergence_warning() -> type[Warning]:
    from sklearn.exceptions import ConvergenceWarning

    return ConvergenceWarning
