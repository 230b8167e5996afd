"""`predcp figures`: the paper's figures."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from predcp.cli._errors import errors
from predcp.cli._options import JsonOption
from predcp.cli._output import print_json_lines


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("figures", epilog="Example: predcp figures figure-1 --output figures/")(
        figures_command
    )


def figures_command(
    names: Annotated[list[str] | None, typer.Argument(help="Figures (default: all).")] = None,
    output: Annotated[Path, typer.Option(help="Folder of the figures.")] = Path("figures"),
    list_them: Annotated[bool, typer.Option("--list", help="List the figures only.")] = False,
    points: Annotated[
        int | None, typer.Option(min=4, help="Points per curve (default: each figure's own).")
    ] = None,
    keep_data: Annotated[bool, typer.Option("--data", help="Also save the numbers (npz).")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make the paper's figures: PDF, PNG, and a caption that explains the figure and its known errors."""
    with errors():
        import jax

        # The curves run from 1e-8 to poles and tails.
        jax.config.update("jax_enable_x64", True)
        from predcp.paper import figures

        chosen = figures.select(names or [])
        if list_them:
            rows = [
                {"name": figure.name, "paper": figure.paper, "title": figure.title}
                for figure in chosen
            ]
            if as_json:
                print_json_lines(rows)
            else:
                for row in rows:
                    print(f"{row['name']:<22} {row['paper']}: {row['title']}")
            return
        for index, figure in enumerate(chosen, start=1):
            print(f"{index} of {len(chosen)}: {figure.name}", file=sys.stderr, flush=True)
            paths = [str(path) for path in figures.write(figure, output, points, keep_data)]
            if as_json:
                print(json.dumps({"name": figure.name, "files": paths}), flush=True)
            else:
                print("\n".join(paths), flush=True)
