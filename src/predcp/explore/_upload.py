"""A visitor's CSV file as a design: parsed as data, limited in size, refused with a reason."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    import pandas

MOST_BYTES = 5_000_000
MOST_ROWS = 5_000
MOST_COLUMNS = 500


# Beyond this size, squares of a sum of columns overflow single precision, which the code runs in.
_LARGEST = 1e15
_OUTCOMES = ("y", "target", "outcome", "label", "class", "response", "diagnosis", "status", "event")
_LONGEST_LABEL = 28


class UploadError(ValueError):
    """The reason why a file cannot be a design, and what to do about it."""


@dataclass(frozen=True)
class Upload:
    """A table as it was read, before columns are chosen.

    **Arguments**: `name`, the file's name on the visitor's machine; `frame`, the table.
    """

    name: str
    frame: pandas.DataFrame

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)


@dataclass(frozen=True, eq=False)
class Design:
    """The design matrix of a visitor's file.

    **Arguments**
    - `x`: shape (N, D), as the model sees it.
    - `name`: the file's name.
    - `columns`: names of the D columns.
    - `standardised`: whether each column was given mean 0 and standard deviation 1.
    """

    x: Float[np.ndarray, "rows columns"]
    name: str
    columns: tuple[str, ...]
    standardised: bool


def parse(name: str, contents: bytes) -> Upload:
    """Read a CSV file with a header; nothing in it is executed.

    **Arguments**: `name`, the file's name; `contents`, its bytes.

    Raises an `UploadError` for a file that is not such a table or is too large.
    """
    import pandas

    if len(contents) > MOST_BYTES:
        raise UploadError(
            f"{name} is too large: {len(contents) / 1e6:.1f} MB, and at most {MOST_BYTES / 1e6:.0f} MB "
            "are read; a few hundred rows chosen at random give nearly the same prior"
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
    if len(frame) > MOST_ROWS:
        raise UploadError(
            f"{name} has {len(frame):,} rows, and at most {MOST_ROWS:,} are used; a few hundred rows "
            "chosen at random give nearly the same prior"
        )
    if frame.shape[1] > MOST_COLUMNS:
        raise UploadError(
            f"{name} has {frame.shape[1]:,} columns, and at most {MOST_COLUMNS} are used; delete those "
            "that are not features of your model. The prior depends on the number of columns: for all "
            "of them, use predcp.linear in Python, or 'predcp fit'"
        )
    frame.columns = [str(column) for column in frame.columns]
    if all(_is_number(column) for column in header):
        raise UploadError(f"{name} has no header: its first line is numbers; add a line of names")
    return Upload(name, frame)


def guess_outcome(upload: Upload) -> str | None:
    """The column that is probably the outcome, or None.

    It is the last one with a usual name (`y`, `target`, ...), else the last column of the file if
    that has two values.
    """
    named = [column for column in upload.columns if column.strip().lower() in _OUTCOMES]
    if named:
        return named[-1]
    last = upload.columns[-1]
    values = set(upload.frame[last].dropna())
    return last if len(upload.columns) > 1 and len(values) == 2 else None


def features(upload: Upload, outcome: str | None = None) -> tuple[list[str], dict[str, str]]:
    """The columns that can be features, and why each other column is left out.

    **Arguments**: `upload`; `outcome`, the column that is left out in any case.
    """
    others = [column for column in upload.columns if column != outcome]
    left_out = {column: reason for column in others if (reason := _fault(upload.frame[column]))}
    chosen = [column for column in others if column not in left_out]
    if not chosen:
        raise UploadError(
            f"{upload.name} has no column of numbers without missing values"
            + (f" besides the outcome '{outcome}'" if outcome is not None else "")
        )
    return chosen, left_out


def design(upload: Upload, columns: Sequence[str], standardise: bool = True) -> Design:
    """The chosen columns as a matrix.

    **Arguments**: `upload`; `columns`, their names; `standardise`, whether to give each column mean
    0 and standard deviation 1.

    Raises an `UploadError` that names each column that cannot be used.
    """
    if not columns:
        raise UploadError("no column is chosen; choose at least one under 'columns used'")
    unknown = [column for column in columns if column not in upload.frame.columns]
    if unknown:
        raise UploadError(f"{upload.name} has no column {_listed(unknown)}")
    for column in columns:
        reason = _fault(upload.frame[column])
        if reason and (standardise or reason != _CONSTANT):
            raise UploadError(
                f"'{column}' of {upload.name} {reason}; take it out under 'columns used', or repair "
                "the file"
            )
    x = upload.frame[list(columns)].to_numpy(dtype=float)
    if standardise:
        x = (x - x.mean(0)) / x.std(0)
    if not x.any():
        raise UploadError(f"all numbers chosen from {upload.name} are 0: no scale changes anything")
    return Design(x, upload.name, tuple(columns), standardise)


def labels(columns: Sequence[str]) -> dict[str, str]:
    """Names short enough for a narrow control, each with the column it stands for."""
    found: dict[str, str] = {}
    for column in columns:
        label = column
        if len(column) > _LONGEST_LABEL:
            label = f"{column[: _LONGEST_LABEL - 11]}…{column[-10:]}"
        number = 2
        while label in found:
            label = f"{column[: _LONGEST_LABEL - 11]}… ({number})"
            number += 1
        found[label] = column
    return found


_CONSTANT = "is constant and cannot be standardised"


def _fault(values: Any) -> str:
    """Reason why a column cannot be a feature, or an empty string."""
    import pandas

    if not pandas.api.types.is_numeric_dtype(values):
        known = values.dropna()
        example = f" ('{str(known.iloc[0])[:20]}', for instance)" if len(known) else ""
        return f"is not numbers{example}"
    x = values.to_numpy(dtype=float)
    if np.isnan(x).any():
        return "has missing values"
    if (np.abs(x) > _LARGEST).any():
        return "has infinite or gigantic values"
    return _CONSTANT if x.std() <= 1e-12 * np.abs(x).max() else ""


def _listed(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
