"""Options that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from predcp.data import FileOptions

StoreOption = Annotated[Path, typer.Option(help="Folder of results.")]
DataOption = Annotated[
    list[str] | None, typer.Option(help="Data set, pattern or file; repeatable.")
]
PriorOption = Annotated[list[str] | None, typer.Option(help="Prior or pattern; repeatable.")]
InferenceOption = Annotated[list[str] | None, typer.Option(help="Inference; repeatable.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
DirectoryOption = Annotated[
    Path | None, typer.Option(help="Data directory (default: PREDCP_DATA, else the cache).")
]
# Of a file; see predcp.data.FileOptions.
MissingOption = Annotated[
    str,
    typer.Option(help="Missing values in a file: refuse, impute (medians) or drop (whole rows)."),
]
DropOption = Annotated[list[str] | None, typer.Option(help="Column to leave out; repeatable.")]
SeparatorOption = Annotated[
    str | None,
    typer.Option(help="Separator of a CSV file, or 'tab' (default: guessed)."),
]
EncodingOption = Annotated[
    str | None, typer.Option(help="Encoding of a CSV file, such as latin-1 (default: UTF-8).")
]
ClassesOption = Annotated[
    bool, typer.Option("--classes", help="Treat the values of a numeric target as classes.")
]

# Of a NumPyro program.
ColumnsOption = Annotated[
    Path | None,
    typer.Option(help="CSV or Parquet file; its columns are the program's arguments."),
]
ScaleOption = Annotated[
    list[str] | None, typer.Option(help="Name of a scale; repeatable (default: all).")
]
ObservedOption = Annotated[
    list[str] | None, typer.Option(help="Site to predict that has no data; repeatable.")
]


def file_options(
    missing: str = "refuse",
    drop: list[str] | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    classes: bool = False,
) -> "FileOptions":
    """How a file is read, from the options of a command."""
    from predcp.data import FileOptions

    character = "\t" if separator in ("tab", "\\t") else separator
    stated: Any = missing
    return FileOptions(stated, tuple(drop or ()), character, encoding, classes)
