"""A user's own file as a `Table`."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from predcp.data._encoder import Encoder, is_categorical
from predcp.data._errors import DataError
from predcp.data._file_options import FileOptions
from predcp.data._frame import read_frame, require_columns
from predcp.data._table import Table, Task

if TYPE_CHECKING:
    import pandas

_MOST_CLASSES = 50
# A numeric target with at most so many whole values may be classes in disguise.
_FEW_VALUES = 10
_IDENTIFIER_NAME = re.compile(r"(.*[ _-])?(id|no|nr|number|key|index|code)", re.IGNORECASE)
_FEWEST_IDENTIFIERS = 10


@dataclass(frozen=True)
class FileTable:
    """A table read from a file, with the encoding that a model needs to read another one."""

    table: Table
    encoder: Encoder


def load_file(
    path: str | os.PathLike[str],
    target: str,
    options: FileOptions | None = None,
    fit_rows: np.ndarray | None = None,
) -> FileTable:
    """A CSV or Parquet file with a named target column.

    **Arguments:** `fit_rows`, the rows whose medians fill the gaps; all of them if None.
    """
    path, options = Path(path), options or FileOptions()
    frame = _rows_with_target(path, target, options)
    values, task, classes = _encode_target(frame.loc[:, target], options, str(path))
    features = frame.drop(columns=[target])
    for name in _identifiers(features):
        warnings.warn(
            f"{path}: column {name!r} looks like an identifier (whole numbers, all different); if "
            f"it is one, leave it out: drop=[{name!r}]",
            stacklevel=2,
        )
    encoder = _fit(features, options, fit_rows, str(path))
    numbers = encoder.transform(features, str(path))
    table = Table(path.stem, numbers, values, encoder.feature_names, task, classes)
    return FileTable(table, encoder)


def count_rows(
    path: str | os.PathLike[str], target: str, options: FileOptions | None = None
) -> int:
    """How many rows `load_file` gives."""
    return len(_rows_with_target(Path(path), target, options or FileOptions()))


def _rows_with_target(path: Path, target: str, options: FileOptions) -> pandas.DataFrame:
    if target in options.drop:
        raise DataError(f"the target {target!r} cannot be left out")
    frame = read_frame(path, options)
    require_columns(frame, [target], str(path))
    if options.missing == "drop":
        kept = frame.dropna()
        if kept.empty:
            raise DataError(f"{path}: every row has a missing value; use missing='impute'")
        return kept
    gaps = int(np.sum(frame[target].isna()))
    if gaps:
        raise DataError(
            f"{path}: the target {target!r} has {gaps} missing values; leave those rows out with "
            "missing='drop'"
        )
    return frame


def _fit(
    features: pandas.DataFrame, options: FileOptions, fit_rows: np.ndarray | None, where: str
) -> Encoder:
    encoder = Encoder.fit(features, options.missing, where)
    if fit_rows is None or options.missing != "impute":
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


def _encode_target(
    series: pandas.Series, options: FileOptions, where: str
) -> tuple[np.ndarray, Task, tuple[str, ...]]:
    distinct = sorted(series.unique().tolist())
    if len(distinct) < 2:
        raise DataError(f"{where}: the target {series.name!r} is constant")
    if is_categorical(series) or len(distinct) == 2 or options.classes:
        if len(distinct) > _MOST_CLASSES:
            raise DataError(
                f"{where}: the target {series.name!r} has {len(distinct)} distinct values, too many "
                f"for classes (at most {_MOST_CLASSES})"
            )
        numbers = series.map({value: number for number, value in enumerate(distinct)})
        task: Task = "binary" if len(distinct) == 2 else "multiclass"
        return numbers.to_numpy(dtype=np.int64), task, tuple(map(_class_name, distinct))
    values = series.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        raise DataError(f"{where}: the target {series.name!r} holds an infinite value")
    if len(distinct) <= _FEW_VALUES < len(values) and all(value.is_integer() for value in values):
        warnings.warn(
            f"{where}: the target {series.name!r} has {len(distinct)} distinct whole values and is "
            "taken as a number; if they are classes, give classes=True",
            stacklevel=2,
        )
    return values, "regression", ()


def _class_name(value: object) -> str:
    # A column of whole numbers with gaps is read as 0.0, 1.0, ...
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _identifiers(features: pandas.DataFrame) -> list[str]:
    """Columns of whole numbers, all different, that count rows or are named like identifiers."""
    from pandas.api import types

    found = []
    for name, series in features.items():
        if len(series) < _FEWEST_IDENTIFIERS or not types.is_integer_dtype(series):
            continue
        if series.nunique() < len(series):
            continue
        counts_rows = int(series.max()) - int(series.min()) == len(series) - 1
        if counts_rows or _IDENTIFIER_NAME.fullmatch(str(name)):
            found.append(str(name))
    return found
