"""Fit an estimator to a file, keep it as one, and predict the rows of another."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from predcp._support.saved import SavedModel, load_model, save_model
from predcp.data import Encoder, checked_missing, load_file, read_frame
from predcp.experiments._estimators import DEFAULTS, ESTIMATORS, REGRESSION, resolve_estimator

if TYPE_CHECKING:
    import pandas

_KIND = "file-estimator"


@dataclass(frozen=True)
class Fitted:
    """What was fitted, for a person to check.

    **Arguments:** `summary` is a table and how far to trust it (of a residual network, its layers),
    `warnings` what to do about that; None and empty for an estimator with an exact answer.
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
    missing: str = "refuse",
    inference: str | None = None,
    seed: int | None = None,
    progress: Any = None,
) -> Fitted:
    """Fit a registered estimator to a CSV or Parquet file and save it.

    **Arguments:**

    - `estimator` defaults by the kind of target, `prior` and `inference` by the estimator.
    - `seed` of the draws; `progress`, None, True for a bar, or a function of (done, total).
    """
    loaded = load_file(path, target, checked_missing(missing))
    table = loaded.table
    name = estimator or DEFAULTS[table.task]
    chosen = resolve_estimator(name, table.task)
    entry = ESTIMATORS[name]
    options = _options(name, {"prior": prior, "inference": inference, "seed": seed})
    features: Any = table.features
    if entry.report is not None:
        import pandas

        options["progress"] = progress
        features = pandas.DataFrame(features, columns=list(table.feature_names))
    target_values = table.target
    if table.task != REGRESSION:
        target_values = np.array(table.class_names)[table.target]
    model = chosen(**options)
    with warnings.catch_warnings():
        # They are part of the summary.
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


def predict_file(model_path: Path, path: Path) -> pandas.DataFrame:
    """A row a row of the file: `prediction`, and how sure it is.

    That is the probability of each class, or the standard deviation of a new observation.
    """
    import pandas

    saved = load_model(model_path, _KIND)
    config: dict[str, Any] = dict(saved.config)
    chosen = resolve_estimator(config["estimator"], config["task"])
    model = chosen.from_state(saved.arrays, config["values"])
    features = Encoder.from_config(config["encoder"]).transform(read_frame(path), str(path))
    if config["task"] == REGRESSION:
        if not ESTIMATORS[config["estimator"]].deviations:
            return pandas.DataFrame({"prediction": model.predict(features)})
        mean, deviation = getattr(model, "predict")(features, return_std=True)  # noqa: B009
        return pandas.DataFrame({"prediction": mean, "standard_deviation": deviation})
    probabilities = getattr(model, "predict_proba")(features)  # noqa: B009
    classes = [str(name) for name in getattr(model, "classes_")]  # noqa: B009
    best = np.argmax(probabilities, axis=1)
    frame = pandas.DataFrame({"prediction": [classes[number] for number in best]})
    # In the order of the file's own values: 10 after 9.
    for name in config["class_names"]:
        frame[f"probability_{name}"] = probabilities[:, classes.index(name)]
    return frame


def _options(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What was said, under the names of the estimator's own arguments."""
    known = ESTIMATORS[name].options
    said = {option: value for option, value in given.items() if value is not None}
    unknown = [option for option in said if option not in known]
    if unknown:
        raise ValueError(
            f"the estimator {name!r} takes no {' and no '.join(unknown)}; it takes: {', '.join(known)}"
        )
    return {known[option]: value for option, value in said.items()}


def _convergence_warning() -> type[Warning]:
    from sklearn.exceptions import ConvergenceWarning

    return ConvergenceWarning
