"""A user's own file as a `Table`."""

from __future__ import annotations

import math
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from predcp.data._encoder import MOST_LEVELS, Encoder, is_categorical
from predcp.data._errors import DataError
from predcp.data._file_options import FileOptions
from predcp.data._frame import read_frame, require_columns
from predcp.data._table import Table, Task

if TYPE_CHECKING:
    import pandas

_MOST_CLASSES = 50
# A numeric target with at most this number of whole values may be a code for classes.
_FEW_VALUES = 10
_IDENTIFIER_NAME = re.compile(r"(.*[ _-])?(id|no|nr|number|key|index|code)", re.IGNORECASE)
_FEWEST_IDENTIFIERS = 10
# Rows that were left out leave gaps between their numbers.
_DENSE = 1.5


@dataclass(frozen=True)
class FileTable:
    """A table read from a file, with the encoding that a model needs to read another one."""

    table: Table
    encoder: Encoder


@dataclass(frozen=True)
class FrameTable:
    """Original columns, with a target of numbers.

    **Arguments:**

    - `features`: one column per feature, with text and gaps unchanged.
    - `target`, `task`, `class_names`: as in `Table`.
    """

    features: pandas.DataFrame
    target: np.ndarray
    task: Task
    class_names: tuple[str, ...] = ()


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
    read = load_frame(path, target, options)
    encoder = _fit(read.features, options, fit_rows, str(path))
    numbers = encoder.transform(read.features, str(path))
    table = Table(
        path.stem, numbers, read.target, encoder.feature_names, read.task, read.class_names
    )
    return FileTable(table, encoder)


def load_frame(
    path: str | os.PathLike[str], target: str, options: FileOptions | None = None
) -> FrameTable:
    """A CSV or Parquet file with a named target column, its features not encoded yet."""
    path, options = Path(path), options or FileOptions()
    frame, left_out = _rows_with_target(path, target, options)
    if left_out:
        words = "no target" if options.missing == "impute" else "missing values"
        warnings.warn(
            f"{path}: rows with {words} are left out, {left_out} of {left_out + len(frame)}",
            stacklevel=2,
        )
    features = frame.drop(columns=[target])
    return frame_table(features, frame.loc[:, target], options.classes, str(path))


def frame_table(
    features: pandas.DataFrame, target: pandas.Series, classes: bool, where: str
) -> FrameTable:
    """A data frame and its target, whose kind is found by its values.

    **Arguments:** `classes`, whether the values of a numeric target are classes; `where` names the
    table in messages.
    """
    values, task, names = _encode_target(target, classes, where)
    for name, kind in _identifiers(features).items():
        warnings.warn(
            f"{where}: column {name!r} looks like an identifier ({kind}, all different); if "
            f"it is one, leave it out: drop=[{name!r}]",
            stacklevel=2,
        )
    return FrameTable(features, values, task, names)


def count_rows(
    path: str | os.PathLike[str], target: str, options: FileOptions | None = None
) -> int:
    """How many rows `load_file` gives."""
    return len(_rows_with_target(Path(path), target, options or FileOptions())[0])


def _rows_with_target(
    path: Path, target: str, options: FileOptions
) -> tuple[pandas.DataFrame, int]:
    """The rows that are kept, and how many are left out."""
    if target in options.drop:
        raise DataError(f"the target {target!r} cannot be left out")
    frame = read_frame(path, options)
    require_columns(frame, [target], str(path))
    gaps = int(np.sum(frame[target].isna()))
    if options.missing == "refuse" and gaps:
        raise DataError(
            f"{path}: the target {target!r} has {gaps} missing values; leave those rows out with "
            "missing='drop', or with missing='impute', which fills the gaps of other columns"
        )
    # A target is never made up.
    kept = frame.dropna() if options.missing == "drop" else frame.dropna(subset=[target])
    if kept.empty:
        cure = "; use missing='impute'" if gaps < len(frame) else ""
        raise DataError(f"{path}: every row has a missing value{cure}")
    return kept, len(frame) - len(kept)


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
    series: pandas.Series, classes: bool, where: str
) -> tuple[np.ndarray, Task, tuple[str, ...]]:
    distinct = sorted(series.unique().tolist())
    if len(distinct) < 2:
        raise DataError(f"{where}: the target {series.name!r} is constant")
    if any(isinstance(value, float) and math.isinf(value) for value in distinct):
        raise DataError(f"{where}: the target {series.name!r} holds an infinite value")
    if np.issubdtype(series.to_numpy().dtype, np.datetime64):
        raise DataError(
            f"{where}: the target {series.name!r} holds dates; turn them into numbers (days since the "
            "first, say)"
        )
    if is_categorical(series) or len(distinct) == 2 or classes:
        if len(distinct) > _MOST_CLASSES:
            raise DataError(
                f"{where}: the target {series.name!r} has {len(distinct)} distinct values, too many "
                f"for classes (at most {_MOST_CLASSES})"
            )
        numbers = series.map({value: number for number, value in enumerate(distinct)})
        task: Task = "binary" if len(distinct) == 2 else "multiclass"
        return numbers.to_numpy(dtype=np.int64), task, tuple(map(_class_name, distinct))
    values = series.to_numpy(dtype=np.float64)
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


def _identifiers(features: pandas.DataFrame) -> dict[str, str]:
    """Columns whose values are all different, and of what kind: text, or whole numbers that count rows
    or are named like identifiers."""
    from pandas.api import types

    found = {}
    for name, series in features.items():
        if len(series) < _FEWEST_IDENTIFIERS or series.nunique() < len(series):
            continue
        # More values than a category may have are refused with a reason of their own.
        if types.is_string_dtype(series) and len(series) <= MOST_LEVELS:
            found[str(name)] = "text"
        if not types.is_integer_dtype(series):
            continue
        # Numbers that do not count anything repeat themselves in so narrow a range.
        counts_rows = int(series.max()) - int(series.min()) < _DENSE * len(series)
        if counts_rows or _IDENTIFIER_NAME.fullmatch(str(name)):
            found[str(name)] = "whole numbers"
    return found
