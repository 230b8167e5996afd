"""How a user's file is read."""

from dataclasses import dataclass
from typing import Literal

Missing = Literal["refuse", "impute", "drop"]
MISSING: tuple[Missing, ...] = ("refuse", "impute", "drop")


@dataclass(frozen=True)
class FileOptions:
    """How a CSV or Parquet file becomes a table.

    **Arguments:**

    - `missing`: `refuse` missing values by name, `impute` medians (`missing` becomes a category; rows
        without a target are left out), or `drop` the rows that have any.
    - `drop`: columns to leave out.
    - `separator`, `encoding`: of a CSV file; None to guess the separator, and for UTF-8.
    - `classes`: whether the values of a numeric target are classes.
    """

    missing: Missing = "refuse"
    drop: tuple[str, ...] = ()
    separator: str | None = None
    encoding: str | None = None
    classes: bool = False

    def __post_init__(self) -> None:
        if self.missing not in MISSING:
            raise ValueError(f"missing must be one of {', '.join(MISSING)}, got {self.missing!r}")
        if self.separator is not None and len(self.separator) != 1:
            raise ValueError(f"separator must be one character, got {self.separator!r}")
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except LookupError:
                raise ValueError(
                    f"encoding must be one that Python knows, such as 'latin-1', got {self.encoding!r}"
                ) from None
