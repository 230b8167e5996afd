"""Read a user's CSV or Parquet file and name what cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from predcp.data._errors import DataError

if TYPE_CHECKING:
    import pandas

SUFFIXES = (".csv", ".parquet")


def read_frame(path: Path) -> pandas.DataFrame:
    """The table in a `.csv` or `.parquet` file, with unique column names and at least one row."""
    import pandas
    import pyarrow

    if path.suffix.lower() not in SUFFIXES:
        raise DataError(f"{path} must end in .csv or .parquet")
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    try:
        if path.suffix.lower() == ".parquet":
            frame = pandas.read_parquet(path)
        else:
            _refuse_duplicates(path)
            frame = pandas.read_csv(path)
    except (ValueError, OSError, pyarrow.ArrowException) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"cannot read {path}: {str(error).strip().splitlines()[0]}") from error
    if frame.empty:
        raise DataError(f"{path} holds no rows")
    frame.columns = [str(column) for column in frame.columns]
    return frame


def require_columns(frame: pandas.DataFrame, columns: list[str], where: str) -> None:
    """An error that names the columns `frame` lacks."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        present = ", ".join(list(frame.columns)[:20])
        raise DataError(f"{where} lacks the column {', '.join(missing)}; it has: {present}")


def _refuse_duplicates(path: Path) -> None:
    # pandas would rename the second of two equal names: the target could be the wrong one.
    import csv

    with path.open(newline="", encoding="utf-8-sig") as file:
        header = next(csv.reader(file), [])
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise DataError(f"{path} has the column {', '.join(repeated)} more than once")
