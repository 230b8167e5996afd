"""A user's own file as a `Table`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from predcp.data._encoder import Encoder, Missing, checked_missing, is_categorical
from predcp.data._errors import DataError
from predcp.data._frame import read_frame, require_columns
from predcp.data._table import Table, Task

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class FileTable:
    """A table read from a file, with the encoding that a model needs to read another one."""

    table: Table
    encoder: Encoder


def load_file(
    path: str | os.PathLike[str],
    target: str,
    missing: Missing = "refuse",
    fit_rows: np.ndarray | None = None,
) -> FileTable:
    """A CSV or Parquet file with a named target column.

    **Arguments:**

    - `missing`: `refuse` missing features by name, `impute` medians, or `drop` their rows.
    - `fit_rows`: rows whose medians fill the gaps; all of them if None.
    """
    path = Path(path)
    missing = checked_missing(missing)
    frame = read_frame(path)
    require_columns(frame, [target], str(path))
    gaps = int(np.sum(frame[target].isna()))
    if gaps:
        raise DataError(f"{path}: the target {target!r} has {gaps} missing values; remove the rows")
    if missing == "drop":
        frame = frame.dropna()
        if frame.empty:
            raise DataError(f"{path}: every row has a missing value; use missing='impute'")
    values, task, classes = _encode_target(frame.loc[:, target], str(path))
    features = frame.drop(columns=[target])
    encoder = _fit(features, missing, fit_rows, str(path))
    numbers = encoder.transform(features, str(path))
    table = Table(path.stem, numbers, values, encoder.feature_names, task, classes)
    return FileTable(table, encoder)


def count_rows(path: str | os.PathLike[str], missing: Missing = "refuse") -> int:
    """How many rows `load_file` gives."""
    frame = read_frame(Path(path))
    return len(frame.dropna()) if missing == "drop" else len(frame)


def _fit(
    features: pandas.DataFrame, missing: Missing, fit_rows: np.ndarray | None, where: str
) -> Encoder:
    encoder = Encoder.fit(features, missing, where)
    if fit_rows is None or missing != "impute":
        return encoder
    # Levels come from the whole file, medians from the training rows alone.
    medians = features.iloc[fit_rows].median(numeric_only=True)
    columns = tuple(
        column
        if column.levels or not np.isfinite(medians.get(column.name, np.nan))
        else type(column)(column.name, (), float(medians[column.name]))
        for column in encoder.columns
    )
    return Encoder(columns)


def _encode_target(series: pandas.Series, where: str) -> tuple[np.ndarray, Task, tuple[str, ...]]:
    distinct = sorted(series.unique().tolist())
    if len(distinct) < 2:
        raise DataError(f"{where}: the target {series.name!r} is constant")
    if is_categorical(series) or len(distinct) == 2:
        if len(distinct) > 50:
            raise DataError(
                f"{where}: the target {series.name!r} has {len(distinct)} distinct text values"
            )
        numbers = series.map({value: number for number, value in enumerate(distinct)})
        task: Task = "binary" if len(distinct) == 2 else "multiclass"
        return numbers.to_numpy(dtype=np.int64), task, tuple(str(value) for value in distinct)
    values = series.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        raise DataError(f"{where}: the target {series.name!r} holds an infinite value")
    return values, "regression", ()
