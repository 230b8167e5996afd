"""`predcp audit`: what the priors of a NumPyro program say about its predictions."""

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from predcp.cli._errors import USAGE, errors, fail
from predcp.cli._options import EncodingOption, JsonOption, SeparatorOption, separator_character


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("audit", epilog="Example: predcp audit model.py:model --data ticks.csv")(
        audit_command
    )


def audit_command(
    program: Annotated[
        str, typer.Argument(help="A NumPyro program: module:function or file.py:function.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(help="CSV or Parquet file; its columns are the program's arguments."),
    ] = None,
    scale: Annotated[list[str] | None, typer.Option(help="Scale; repeat (default: all).")] = None,
    observed: Annotated[
        list[str] | None, typer.Option(help="Site to predict that has no data; repeat.")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Also draw it, into this file.")] = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what the present prior of every scale means for the predictions.

    A column becomes the argument of its name; text becomes numbers from 0, in the order of the
    alphabet. An argument named `data` takes all columns, as a dictionary.
    """
    with errors():
        from predcp.program import audit

        model = load_program(program)
        columns = {} if data is None else read_columns(data, separator, encoding)
        arguments = match_arguments(model, columns, program)
        if not as_json and sys.stderr.isatty():
            print("predcp: compiling", file=sys.stderr, flush=True)
        found = audit(model, scales=scale or None, observed=observed or (), **arguments)
        print(found.to_json() if as_json else found)
        if picture is not None:
            found.plot().savefig(picture, dpi=120)
            print(f"predcp: a picture in {picture}", file=sys.stderr)


def load_program(name: str) -> Callable[..., Any]:
    """The function that `module:function` or `file.py:function` names.

    The user names code of her own here; nothing that is uploaded or stored is ever run.
    """
    module_name, colon, function_name = name.rpartition(":")
    if not colon:
        fail(f"PROGRAM must be module:function or file.py:function, got {name!r}", USAGE)
    sys.path.insert(0, os.getcwd())
    if module_name.endswith(".py"):
        path = Path(module_name)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        sys.path.insert(0, str(path.resolve().parent))
        module_name = path.stem
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise LookupError(f"module {module_name!r} cannot be imported: {error}") from error
    if not callable(getattr(module, function_name, None)):
        raise LookupError(f"{module_name} has no function {function_name!r}")
    return getattr(module, function_name)


def read_columns(path: Path, separator: str | None, encoding: str | None) -> dict[str, Any]:
    """The columns of a file as arrays of numbers; text is coded from 0."""
    import numpy as np

    from predcp.data import FileOptions, read_frame

    frame = read_frame(
        path, FileOptions(separator=separator_character(separator), encoding=encoding)
    )
    columns: dict[str, Any] = {}
    for name, column in frame.items():
        if column.isna().any():
            missing = int(column.isna().sum())
            raise ValueError(
                f"column {name!r} has {missing} missing values; fill or drop them first"
            )
        if column.dtype.kind in "iufb":
            columns[str(name)] = column.to_numpy()
        else:
            columns[str(name)] = np.unique(column.astype(str).to_numpy(), return_inverse=True)[1]
    return columns


def match_arguments(
    model: Callable[..., Any], columns: dict[str, Any], program: str
) -> dict[str, Any]:
    """The columns that the program's arguments name."""
    parameters = inspect.signature(model).parameters
    found: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in columns:
            found[name] = columns[name]
        elif name == "data" and columns:
            found[name] = columns
        elif parameter.default is parameter.empty:
            known = ", ".join(columns) or "none; give a file with --data"
            fail(
                f"{program} needs an argument {name!r}, and there is no such column: {known}", USAGE
            )
    return found
