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

# A column with more levels is an identifier or free text, not a category.
MOST_LEVELS = 50
_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\\.?"
_DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    rf"|\d{{1,2}}\.?[- ]?{_MONTH}[-, ]*\d{{2,4}}|{_MONTH} ?\d{{1,2}},? \d{{4}})([ T].*)?",
    re.IGNORECASE,
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
        columns, constant, empty, errors = [], [], [], []
        for name, series in frame.items():
            if series.nunique(dropna=True) <= 1:
                (empty if series.isna().all() else constant).append(str(name))
                continue
            try:
                if is_categorical(series):
                    columns.append(Column(str(name), _levels(series, missing, where)))
                else:
                    columns.append(Column(str(name), (), _fill(series, missing, where)))
            except DataError as error:
                errors.append(str(error))
        if errors:
            # All at once: nobody wants to mend a table one error at a time.
            raise DataError("\n".join(errors))
        for kind, names in {"constant": constant, "empty": empty}.items():
            if names:
                warnings.warn(f"{where}: dropped {kind} columns: {', '.join(names)}", stacklevel=2)
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
    texts = _texts_among_numbers(values)
    if len(levels) > MOST_LEVELS:
        raise DataError(
            f"{where}: column {series.name!r} has {len(levels)} distinct text values, an "
            f"identifier rather than a category; leave it out: drop=[{series.name!r}]{texts}"
        )
    if texts:
        warnings.warn(
            f"{where}: column {series.name!r} is taken as text, a category for each value{texts}",
            stacklevel=2,
        )
    return tuple(dict.fromkeys((*levels, "missing"))) if gaps else levels


def _texts_among_numbers(values: pandas.Series) -> str:
    """Words on a column of which at least half are numbers, and some are not."""
    import pandas

    if values.dtype == bool:
        return ""
    numbers = np.asarray(pandas.to_numeric(values.astype(str), errors="coerce"), np.float64)
    texts = [str(value) for value, number in zip(values, numbers) if np.isnan(number)]
    if not 0 < len(texts) <= len(values) / 2:
        return ""
    return (
        f"; {len(texts)} of its {len(values)} values are no numbers, such as {texts[0]!r}: if "
        "that stands for a missing value, leave those cells empty"
    )


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
