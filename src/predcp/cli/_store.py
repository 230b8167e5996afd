"""`predcp store`: one file per experiment instead of one folder per cell."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from predcp.cli._errors import MISSING_INPUT, errors, fail
from predcp.cli._options import StoreOption
from predcp.cli._output import note_foreign_files

_store = typer.Typer(help="Pack and unpack stored results.", no_args_is_help=True)
_Names = Annotated[list[str] | None, typer.Argument(help="Experiments (default: all).")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(_store, name="store")


@_store.command("pack", epilog="Example: predcp store pack table1")
def pack_command(names: _Names = None, store: StoreOption = Path("results")) -> None:
    """Put the cells of an experiment into one Parquet file; every command reads it as before."""
    from predcp import experiments

    _each(names, store, lambda chosen: f"{experiments.pack(chosen)} cells in {chosen.packed_file}")


@_store.command("unpack", epilog="Example: predcp store unpack table1")
def unpack_command(names: _Names = None, store: StoreOption = Path("results")) -> None:
    """Turn a packed experiment back into one folder per cell."""
    from predcp import experiments

    _each(names, store, lambda chosen: f"{experiments.unpack(chosen)} cells in {chosen.folder}")


def _each(names: list[str] | None, path: Path, act: Callable[..., str]) -> None:
    from predcp import experiments

    with errors():
        chosen = names or experiments.experiments(path)
        if not names:
            note_foreign_files(path)
        if not chosen:
            fail(f"{path} holds no experiment", MISSING_INPUT)
        for name in chosen:
            store = experiments.Store(path, name)
            if not store.exists:
                fail(f"{path} has no results of {name!r}", MISSING_INPUT)
            print(f"{name}: {act(store)}")
