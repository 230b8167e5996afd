"""`predcp audit`: what the priors of a NumPyro program imply for its predictions."""

import inspect
import sys
from pathlib import Path
from typing import Annotated

import typer

from predcp.cli._errors import errors
from predcp.cli._options import (
    ColumnsOption,
    EncodingOption,
    JsonOption,
    ObservedOption,
    ScaleOption,
    SeparatorOption,
)
from predcp.cli._programs import (
    load_program,
    match_arguments,
    read_columns,
    require_indices,
)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("audit", epilog="Example: predcp audit model.py:model --data ticks.csv")(
        audit_command
    )


def audit_command(
    program: Annotated[
        str, typer.Argument(help="A NumPyro program: module:function or file.py:function.")
    ],
    data: ColumnsOption = None,
    scale: ScaleOption = None,
    observed: ObservedOption = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also save a picture of the audit in this file.")
    ] = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report what the present prior of every scale implies for the predictions.

    Each column is passed as the argument of the same name; text becomes numbers from 0, in
    alphabetical order. An argument named `data` takes all columns, as a dictionary.
    """
    with errors():
        from predcp.program import audit

        model = load_program(program)
        columns = {} if data is None else read_columns(data, separator, encoding)
        arguments = match_arguments(model, columns, program)
        require_indices(model, arguments)
        if not as_json and sys.stderr.isatty():
            print("predcp: compiling", file=sys.stderr, flush=True)
        # By position, since a column may have the name of an option.
        bound = inspect.signature(model).bind(**arguments)
        options = {"scales": scale or None, "observed": observed or ()}
        found = audit(model, *bound.args, **options, **bound.kwargs)
        print(found.to_json() if as_json else found)
        if picture is not None:
            picture.parent.mkdir(parents=True, exist_ok=True)
            found.plot().savefig(picture, dpi=120)
            print(f"predcp: a picture in {picture}", file=sys.stderr)
