"""Read a user's CSV or Parquet file and name what cannot be used."""

from __future__ import annotations

import codecs
import csv
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from predcp.data._errors import DataError
from predcp.data._file_options import FileOptions

if TYPE_CHECKING:
    import pandas

SUFFIXES = (".csv", ".tsv", ".parquet")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
# pandas' words for a line that is longer than those before it.
_LONGER_LINE = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
# Lines that decide the separator of a file.
_LOOKED_AT = 20


def read_frame(path: Path, options: FileOptions | None = None) -> pandas.DataFrame:
    """The table in a file, with unique column names and at least one row.

    **Arguments:** `path` ends in `.csv`, `.tsv` or `.parquet`; of `options` all but `missing` and
    `classes` matter.
    """
    import pandas
    import pyarrow

    options = options or FileOptions()
    if path.suffix.lower() not in SUFFIXES:
        raise DataError(f"{path} must end in .csv, .tsv or .parquet")
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    try:
        is_parquet = path.suffix.lower() == ".parquet"
        frame = pandas.read_parquet(path) if is_parquet else _read_csv(path, options)
    except UnicodeDecodeError as error:
        raise DataError(
            f"cannot read {path} as {error.encoding}; name its encoding, for instance "
            f"encoding={_likely_encoding(path)!r}"
        ) from error
    except (ValueError, OSError, pyarrow.ArrowException) as error:
        if isinstance(error, DataError):
            raise
        words = str(error).strip().splitlines()[0]
        longer = _LONGER_LINE.search(words)
        if longer is not None:
            raise DataError(
                f"{path}: line {longer[2]} has {longer[3]} fields, the lines before it {longer[1]}; text "
                "that holds a separator needs quotation marks"
            ) from error
        raise DataError(f"cannot read {path}: {words}") from error
    if frame.empty:
        raise DataError(f"{path} holds no rows")
    frame.columns = [str(column) for column in frame.columns]
    require_columns(frame, list(options.drop), str(path))
    return frame.drop(columns=list(options.drop))


def require_columns(frame: pandas.DataFrame, columns: list[str], where: str) -> None:
    """An error that names the columns `frame` lacks."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        present = ", ".join(list(frame.columns)[:20])
        raise DataError(f"{where} lacks the column {', '.join(missing)}; it has: {present}")


def _read_csv(path: Path, options: FileOptions) -> pandas.DataFrame:
    import pandas

    encoding = options.encoding or "utf-8-sig"
    with path.open(newline="", encoding=encoding) as file:
        lines = [line for line, _ in zip(file, range(_LOOKED_AT))]
    if not any(line.strip() for line in lines):
        raise DataError(f"{path} is empty")
    guessed = _guessed_separator(lines)
    separator = options.separator or guessed
    rows = list(csv.reader(lines, delimiter=separator))
    header = rows[0] if rows else []
    if len(header) == 1 and guessed != separator and guessed in lines[0]:
        raise DataError(
            f"{path} has one column with separator={separator!r}; its columns are separated by "
            f"{_SEPARATORS[guessed]}: separator={guessed!r}"
        )
    # pandas would rename the second of two equal names, so the target could be the wrong column.
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise DataError(f"{path} has the column {', '.join(repeated)} more than once")
    decimal = "."
    if separator != "," and any(_DECIMAL_COMMA.fullmatch(cell) for row in rows for cell in row):
        decimal = ","
    if options.separator is None and separator != ",":
        commas = ", with decimal commas" if decimal == "," else ""
        warnings.warn(
            f"{path}: columns are separated by {_SEPARATORS[separator]}{commas}; if not, give "
            "separator=','",
            stacklevel=2,
        )
    return pandas.read_csv(path, sep=separator, decimal=decimal, encoding=encoding)


def _likely_encoding(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(2)
    return "utf-16" if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "latin-1"


def _guessed_separator(lines: Sequence[str]) -> str:
    """The separator that splits every line into the same, largest number of columns."""

    def columns(separator: str) -> int:
        counts = {len(row) for row in csv.reader(lines, delimiter=separator) if row}
        return counts.pop() if len(counts) == 1 else 0

    best = max(_SEPARATORS, key=columns)
    return best if columns(best) > 1 else ","
