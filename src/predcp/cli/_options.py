"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

StoreOption = Annotated[Path, typer.Option(help="Folder of results.")]
DataOption = Annotated[list[str] | None, typer.Option(help="Data set, pattern or file; repeat.")]
PriorOption = Annotated[list[str] | None, typer.Option(help="Prior or pattern; repeat.")]
InferenceOption = Annotated[list[str] | None, typer.Option(help="Inference; repeat.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
DirectoryOption = Annotated[
    Path | None, typer.Option(help="Data directory (default: PREDCP_DATA, else the cache).")
]
# Of a file; see predcp.data.FileOptions.
MissingOption = Annotated[
    str,
    typer.Option(help="Missing values in a file: refuse, impute (medians) or drop (whole rows)."),
]
DropOption = Annotated[list[str] | None, typer.Option(help="Column to leave out; repeat.")]
SeparatorOption = Annotated[
    str | None,
    typer.Option(help="Between the columns of a CSV file, or 'tab' (default: guessed)."),
]
EncodingOption = Annotated[
    str | None, typer.Option(help="Of a CSV file, such as latin-1 (default: UTF-8).")
]
ClassesOption = Annotated[
    bool, typer.Option("--classes", help="Take the values of a numeric target as classes.")
]


def separator_character(separator: str | None) -> str | None:
    """The separator that an option names."""
    return "\t" if separator in ("tab", "\\t") else separator
