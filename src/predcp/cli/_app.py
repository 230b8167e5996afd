"""The program: its help page, its version, its entry point."""

import os
import sys
import warnings
from typing import Annotated, Any

import typer

from predcp._version import __version__
from predcp.cli._words import in_options

_EXIT_CODES = (
    "Exit codes: 0 done; 1 some cells failed or some data is damaged; 2 wrong usage; "
    "3 a file or data set is missing, damaged or refused; 4 not available in this version or "
    "without an extra; 130 interrupted."
)

app = typer.Typer(
    help="Predictive complexity priors: data, experiments, reports and models.",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    warnings.showwarning = _show_warning
    if version:
        print(f"predcp {__version__}")
        raise typer.Exit


def main() -> None:
    """Entry point of the `predcp` script and of `python -m predcp`."""
    code: Any = 0
    try:
        app(prog_name="predcp")
    except SystemExit as leave:
        code = leave.code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`head`, for instance) has closed the pipe; avoid an error of the final flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"predcp: note: {in_options(str(message))}", file=sys.stderr)
