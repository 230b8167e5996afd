"""`predcp audit`: what the priors of a NumPyro program say about its predictions."""

import inspect
import sys
from pathlib import Path
from typing import Annotated

import typer

from predcp.cli._errors import errors
from predcp.cli._options import EncodingOption, JsonOption, SeparatorOption
from predcp.cli._programs import load_program, match_arguments, read_columns


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
        # By position, since a column may have the name of an option.
        bound = inspect.signature(model).bind(**arguments)
        options = {"scales": scale or None, "observed": observed or ()}
        found = audit(model, *bound.args, **options, **bound.kwargs)
        print(found.to_json() if as_json else found)
        if picture is not None:
            found.plot().savefig(picture, dpi=120)
            print(f"predcp: a picture in {picture}", file=sys.stderr)
