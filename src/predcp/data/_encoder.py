"""Turn the columns of a data frame into numbers, the same way every time."""

from __future__ import annotations

import re
import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from predcp.data._errors import DataError
from predcp.data._file_options import Missing
from predcp.data._frame import require_columns

if TYPE_CHECKING:
    import pandas

# More levels than this is an identifier or free text, not a category.
_MOST_LEVELS = 50
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([ T].*)?"
)


@dataclass(frozen=True)
class Column:
    """How one input column becomes numbers: categories as indicators, numbers as they are.

    **Arguments:**

    - `levels`: the categories; empty for a numeric column.
    - `fill`: what replaces a missing number; None where missing values are refused.
    """

    name: str
    levels: tuple[str, ...] = ()
    fill: float | None = None

    def outputs(self) -> tuple[str, ...]:
        """Names of the numeric columns it gives; two levels need one indicator."""
        if not self.levels:
            return (self.name,)
        shown = self.levels[1:] if len(self.levels) == 2 else self.levels
        return tuple(f"{self.name}={level}" for level in shown)


@dataclass(frozen=True)
class Encoder:
    """The fitted encoding of a table's features."""

    columns: tuple[Column, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the numeric columns, in order."""
        return tuple(name for column in self.columns for name in column.outputs())

    @classmethod
    def fit(cls, frame: pandas.DataFrame, missing: Missing, where: str) -> Encoder:
        """Learn levels and fills from feature columns; constant columns are dropped by name.

        **Arguments:** `missing` refuses missing values or imputes the median; `where` names the
        table in errors.
        """
        columns, constant = [], []
        for name, series in frame.items():
            if series.nunique(dropna=True) <= 1:
                constant.append(str(name))
            elif is_categorical(series):
                columns.append(Column(str(name), _levels(series, missing, where)))
            else:
                columns.append(Column(str(name), (), _fill(series, missing, where)))
        if constant:
            warnings.warn(f"{where}: dropped constant columns: {', '.join(constant)}", stacklevel=2)
        if not columns:
            raise DataError(f"{where} has no column that varies, so nothing to predict from")
        return cls(tuple(columns))

    def transform(self, frame: pandas.DataFrame, where: str) -> np.ndarray:
        """`(rows, features)`; unknown columns, levels and missing values are errors by name."""
        require_columns(frame, [column.name for column in self.columns], where)
        parts = [_encode(column, frame.loc[:, column.name], where) for column in self.columns]
        return np.concatenate(parts, axis=1)

    def to_config(self) -> list[dict[str, Any]]:
        """As plain JSON values."""
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_config(cls, config: list[dict[str, Any]]) -> Encoder:
        """The inverse of `to_config`."""
        return cls(
            tuple(Column(str(item["name"]), tuple(item["levels"]), item["fill"]) for item in config)
        )


def is_categorical(series: pandas.Series) -> bool:
    """Whether a column holds text, categories or truth values."""
    from pandas.api import types

    return not types.is_numeric_dtype(series) or types.is_bool_dtype(series)


def _levels(series: pandas.Series, missing: Missing, where: str) -> tuple[str, ...]:
    from pandas.api import types

    values = series.dropna()
    if types.is_datetime64_any_dtype(series) or all(_DATE.fullmatch(str(v)) for v in values):
        raise DataError(
            f"{where}: column {series.name!r} holds dates, such as {values.iloc[0]}; turn them into "
            f"numbers (days since the first, say), or leave the column out: drop=[{series.name!r}]"
        )
    gaps = int(series.isna().sum())
    if gaps and missing == "refuse":
        raise DataError(_missing_message(series, gaps, where))
    levels = tuple(sorted({str(value) for value in values}))
    if len(levels) > _MOST_LEVELS:
        raise DataError(
            f"{where}: column {series.name!r} has {len(levels)} distinct text values, an "
            f"identifier rather than a category; leave it out: drop=[{series.name!r}]"
        )
    return tuple(dict.fromkeys((*levels, "missing"))) if gaps else levels


def _fill(series: pandas.Series, missing: Missing, where: str) -> float | None:
    gaps = int(series.isna().sum())
    if gaps and missing == "refuse":
        raise DataError(_missing_message(series, gaps, where))
    return float(series.median()) if missing == "impute" else None


def _missing_message(series: pandas.Series, gaps: int, where: str) -> str:
    return (
        f"{where}: column {series.name!r} has {gaps} missing values; fill them, or choose "
        "missing='impute' (medians) or missing='drop' (leaves those rows out)"
    )


def _encode(column: Column, series: pandas.Series, where: str) -> np.ndarray:
    if not column.levels:
        return _encode_numbers(column, series, where)
    texts = ["missing" if gap else str(value) for value, gap in zip(series, series.isna())]
    unknown = sorted(set(texts) - set(column.levels))
    if unknown:
        raise DataError(
            f"{where}: column {column.name!r} has the value {', '.join(unknown[:5])}, which the "
            f"training table did not; it knew {', '.join(column.levels[:10])}"
        )
    shown = column.levels[1:] if len(column.levels) == 2 else column.levels
    return np.array([[float(text == level) for level in shown] for text in texts])


def _encode_numbers(column: Column, series: pandas.Series, where: str) -> np.ndarray:
    try:
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise DataError(f"{where}: column {column.name!r} must hold numbers") from None
    gaps = np.isnan(values)
    if gaps.any():
        if column.fill is None:
            raise DataError(_missing_message(series, int(gaps.sum()), where))
        values = np.where(gaps, column.fill, values)
    if not np.isfinite(values).all():
        raise DataError(f"{where}: column {column.name!r} holds an infinite value")
    return values[:, None]
