"""Fit an estimator to a file, keep it as one, and predict the rows of another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from predcp._saved import SavedModel, load_model, save_model
from predcp.data import Encoder, checked_missing, load_file, read_frame
from predcp.experiments._estimators import DEFAULTS, EstimatorUnavailable, resolve_estimator

if TYPE_CHECKING:
    import pandas

_KIND = "file-estimator"


@dataclass(frozen=True)
class Fitted:
    """What was fitted, for a person to check."""

    estimator: str
    task: str
    rows: int
    features: tuple[str, ...]


def fit_file(
    path: Path,
    target: str,
    output: Path,
    estimator: str | None = None,
    prior: str | None = None,
    missing: str = "refuse",
) -> Fitted:
    """Fit a registered estimator to a CSV or Parquet file and save it.

    **Arguments:** `estimator` defaults by the kind of target, `prior` by the estimator.
    """
    loaded = load_file(path, target, checked_missing(missing))
    table = loaded.table
    name = estimator or DEFAULTS.get(table.task)
    if name is None:
        raise EstimatorUnavailable(
            f"the target {target!r} has {len(table.class_names)} classes; no estimator for more "
            "than two is available"
        )
    chosen = resolve_estimator(name)
    if (table.task == "regression") == (name == "logistic"):
        raise ValueError(f"the estimator {name!r} does not fit a {table.task} target")
    model = chosen(prior) if prior is not None else chosen()
    model.fit(table.features, table.target)
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
    return Fitted(name, table.task, len(table), table.feature_names)


def predict_file(model_path: Path, path: Path) -> pandas.DataFrame:
    """A row a row of the file: `prediction`, and the probability of each class if there are any."""
    import pandas

    saved = load_model(model_path, _KIND)
    config: dict[str, Any] = dict(saved.config)
    model = resolve_estimator(config["estimator"]).from_state(saved.arrays, config["values"])
    features = Encoder.from_config(config["encoder"]).transform(read_frame(path), str(path))
    predictions = model.predict(features)
    if config["task"] == "regression":
        return pandas.DataFrame({"prediction": predictions})
    names = config["class_names"]
    frame = pandas.DataFrame({"prediction": [names[int(number)] for number in predictions]})
    probabilities = getattr(model, "predict_proba")(features)  # noqa: B009
    for number, name in enumerate(names):
        frame[f"probability_{name}"] = probabilities[:, number]
    return frame
