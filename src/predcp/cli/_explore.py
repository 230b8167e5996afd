"""`predcp explore` and `predcp demo`: see what the priors do."""

import importlib.util
import sys
from pathlib import Path
from typing import Annotated

import typer

from predcp._support.extras import install_command
from predcp.cli._errors import UNAVAILABLE, USAGE, errors, fail
from predcp.cli._options import (
    ColumnsOption,
    EncodingOption,
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
    """Add the commands."""
    app.command("explore", epilog="Example: predcp explore model.py:model --data ticks.csv")(
        explore_command
    )
    app.command("demo", epilog="Example: predcp demo")(demo_command)


def explore_command(
    program: Annotated[
        str | None,
        typer.Argument(
            help="Your NumPyro program: module:function or file.py:function. It is run."
        ),
    ] = None,
    data: ColumnsOption = None,
    scale: ScaleOption = None,
    observed: ObservedOption = None,
    port: Annotated[int, typer.Option(min=1, help="Port, or the next free one.")] = 2718,
    host: Annotated[
        str,
        typer.Option(
            help="Address to serve at; other machines can connect unless it is this machine's own."
        ),
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    check: Annotated[
        bool, typer.Option("--check", help="Build the page once, print its summary, and stop.")
    ] = False,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Explore priors in the browser: charts, a summary in words, and the NumPyro code.

    With PROGRAM, the page shows the present prior of each of its scales, and beside it the prior
    of a sentence that you state. Columns become arguments as in `predcp audit`.
    """
    with errors():
        if importlib.util.find_spec("marimo") is None:
            fail(f"the explorer needs marimo: {install_command('explore')}", UNAVAILABLE)
        if program is None and (data or scale or observed):
            fail("--data, --scale and --observed need a PROGRAM: module:function", USAGE)
        from predcp import explore

        made = None
        if program is not None:
            model = load_program(program)
            columns = {} if data is None else read_columns(data, separator, encoding)
            arguments = match_arguments(model, columns, program)
            require_indices(model, arguments)
            print(f"predcp: auditing {program}", file=sys.stderr, flush=True)
            made = explore.study(model, arguments, program, scale or (), observed or ())
        if check:
            print(explore.check(made))
        else:
            explore.serve(host, port, browser, made)


def demo_command(
    output: Annotated[Path, typer.Option(help="Folder of the output.")] = Path("demo_output"),
) -> None:
    """Audit a hospital model, state its prior in one sentence, and fit before and after."""
    with errors():
        from predcp.cli._demo import demo

        demo(output)
