"""`predcp explore` and `predcp demo`: see what the priors do."""

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from predcp._support.extras import install_command
from predcp.cli._errors import UNAVAILABLE, errors, fail


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("explore", epilog="Example: predcp explore --port 8000")(explore_command)
    app.command("demo", epilog="Example: predcp demo")(demo_command)


def explore_command(
    port: Annotated[int, typer.Option(min=1, help="Port, or the next free one.")] = 2718,
    host: Annotated[
        str, typer.Option(help="Address; any but this machine's own lets others in.")
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Explore priors in the browser: charts, a summary in words, and the NumPyro code."""
    with errors():
        if importlib.util.find_spec("marimo") is None:
            fail(f"the explorer needs marimo: {install_command('explore')}", UNAVAILABLE)
        from predcp.explore import serve

        serve(host, port, browser)


def demo_command(
    output: Annotated[Path, typer.Option(help="Folder of what it makes.")] = Path("demo_output"),
) -> None:
    """Audit a hospital model, state its prior in one sentence, and fit before and after."""
    with errors():
        from predcp.cli._demo import demo

        demo(output)
