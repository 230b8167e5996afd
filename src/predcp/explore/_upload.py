"""A visitor's CSV as a design: parsed as data, limited in size, refused in words."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    import pandas

MOST_BYTES = 5_000_000
MOST_ROWS = 5_000
MOST_COLUMNS = 500


class UploadError(ValueError):
    """A file that cannot be a design, and what to do about it."""


@dataclass(frozen=True)
class Upload:
    """A table as it was read, before columns are chosen.

    **Arguments**: the file's name as the visitor has it, and the table.
    """

    name: str
    frame: pandas.DataFrame

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)


@dataclass(frozen=True, eq=False)
class Design:
    """Numbers to explore a prior on, and where they came from.

    **Arguments**: `x`, shape (N, D), as the model sees it; the file's name; the columns;
    whether columns were given mean 0 and standard deviation 1.
    """

    x: Float[np.ndarray, "rows columns"]
    name: str
    columns: tuple[str, ...]
    standardised: bool


def parse(name: str, contents: bytes) -> Upload:
    """The table in a CSV file with a header; nothing in it is executed.

    **Arguments**: the file's name, and its bytes.
    """
    import pandas

    if len(contents) > MOST_BYTES:
        raise UploadError(
            f"{name} is too large: {len(contents) / 1e6:.1f} MB, and at most {MOST_BYTES / 1e6:.0f} MB "
            "are read; a few hundred rows show the same prior"
        )
    if not contents.strip():
        raise UploadError(
            f"{name} is empty; a CSV file with a header and rows of numbers is needed"
        )
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UploadError(f"{name} is not text in UTF-8; save it as CSV (UTF-8)") from None
    if "\0" in text:
        raise UploadError(f"{name} is not a text file; save it as CSV (UTF-8)")
    header = next(csv.reader(io.StringIO(text)), [])
    repeated = sorted({column for column in header if header.count(column) > 1})
    if repeated:
        raise UploadError(f"{name} has the column {_listed(repeated)} more than once; rename one")
    try:
        frame = pandas.read_csv(io.StringIO(text))
    except (ValueError, csv.Error) as error:
        reason = str(error).strip().splitlines()[0]
        raise UploadError(f"{name} could not be read as CSV: {reason}") from None
    if not isinstance(frame.index, pandas.RangeIndex):
        raise UploadError(f"{name} has rows with more entries than its header has names")
    if frame.empty:
        raise UploadError(f"{name} holds a header but no rows")
    if len(frame) > MOST_ROWS or frame.shape[1] > MOST_COLUMNS:
        raise UploadError(
            f"{name} is too large: {len(frame)} rows and {frame.shape[1]} columns, and at most "
            f"{MOST_ROWS} and {MOST_COLUMNS} are used; a few hundred rows show the same prior"
        )
    frame.columns = [str(column) for column in frame.columns]
    if all(_is_number(column) for column in header):
        raise UploadError(f"{name} has no header: its first line is numbers; add a line of names")
    return Upload(name, frame)


def design(upload: Upload, columns: Sequence[str], standardise: bool = True) -> Design:
    """The chosen columns as a matrix.

    **Arguments**: the table; names of columns; whether to give each mean 0 and deviation 1.
    """
    import pandas

    if not columns:
        raise UploadError("no column is chosen; take at least one")
    unknown = [column for column in columns if column not in upload.frame.columns]
    if unknown:
        raise UploadError(f"{upload.name} has no column {_listed(unknown)}")
    chosen = upload.frame[list(columns)]
    words = [name for name in columns if not pandas.api.types.is_numeric_dtype(chosen[name])]
    if words:
        first = pandas.Series(chosen[words[0]]).dropna()
        example = f" ('{str(first.iloc[0])[:20]}', for instance)" if len(first) else ""
        raise UploadError(
            f"{_listed(words)} of {upload.name} is not numbers{example}; take it out under "
            "'columns used', or turn it into numbers"
        )
    x = chosen.to_numpy(dtype=float)
    missing = [name for name, bad in zip(columns, np.any(np.isnan(x), axis=0).tolist()) if bad]
    if missing:
        raise UploadError(
            f"{_listed(missing)} of {upload.name} has missing values; fill them in, or take the column "
            "out under 'columns used'"
        )
    # Beyond this, squares of a sum of columns leave single precision, which the snippet runs in.
    far = [name for name, bad in zip(columns, np.any(np.abs(x) > 1e15, axis=0).tolist()) if bad]
    if far:
        raise UploadError(f"{_listed(far)} of {upload.name} has infinite or gigantic values")
    if standardise:
        spread = x.std(0)
        constant = [n for n, s, m in zip(columns, spread, np.abs(x).max(0)) if s <= 1e-12 * m]
        if constant:
            raise UploadError(
                f"{_listed(constant)} of {upload.name} is constant and cannot be standardised; take it "
                "out under 'columns used'"
            )
        x = (x - x.mean(0)) / spread
    if not x.any():
        raise UploadError(f"all numbers chosen from {upload.name} are 0: no scale changes anything")
    return Design(x, upload.name, tuple(columns), standardise)


def _listed(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
