"""`predcp data`: the data sets predcp knows."""

from typing import Annotated

import typer

from predcp.cli._errors import FAILED, MISSING_INPUT, USAGE, errors, fail
from predcp.cli._options import DirectoryOption, JsonOption
from predcp.cli._output import print_json_lines

_data = typer.Typer(help="The data sets predcp knows.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(_data, name="data")


@_data.command("list", epilog="Example: predcp data list --json")
def data_list(directory: DirectoryOption = None, as_json: JsonOption = False) -> None:
    """List the data sets, and which are on this machine."""
    with errors():
        from predcp import data

        rows = [
            {
                "name": entry.name,
                "title": entry.title,
                "kind": entry.kind,
                "rows": entry.rows,
                "columns": entry.columns,
                "file": entry.file,
                "present": data.is_present(entry, directory),
            }
            for entry in data.registry().values()
        ]
        rows += [
            {"name": name, "title": "bundled with scikit-learn", "kind": task, "present": True}
            for name, (_, task) in data.BUNDLED.items()
        ]
        if as_json:
            print_json_lines(rows)
            return
        print(f"data directory: {data.data_directory(directory)}")
        for row in rows:
            state = "present" if row["present"] else "absent "
            print(f"{state}  {row['name']:<16} {row['kind']:<15} {row['title']}")


@_data.command("fetch", epilog="Example: predcp data fetch boston breast")
def data_fetch(
    names: Annotated[list[str], typer.Argument(help="Data sets, or 'all'.")],
    directory: DirectoryOption = None,
    url: Annotated[
        list[str] | None,
        typer.Option(help="Another address of the same file (the hash must match); repeatable."),
    ] = None,
) -> None:
    """Download data sets, check their hashes, and put them in the data directory."""
    from predcp import data

    with errors():
        chosen = list(data.registry()) if names == ["all"] else names
        if url and len(chosen) != 1:
            fail("--url goes with a single data set", USAGE)
        for name in chosen:
            entry = data.source(name)
            if names == ["all"] and not entry.downloads:
                continue
            print(f"{name}: {data.fetch(entry, directory, tuple(url or ()))}")


@_data.command("check", epilog="Example: predcp data check")
def data_check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Data sets (default: all on disk).")
    ] = None,
    directory: DirectoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the files on disk with their pinned hashes."""
    from predcp import data

    with errors():
        entries = [data.source(name) for name in names or data.registry()]
        if not names:
            entries = [entry for entry in entries if data.is_present(entry, directory)]
        if not entries:
            fail(f"no data set is in {data.data_directory(directory)}", MISSING_INPUT)
    reports = []
    for entry in entries:
        try:
            message, intact = data.verify(entry, directory), True
        except data.DataError as error:
            message, intact = str(error), False
        reports.append({"name": entry.name, "intact": intact, "message": message})
    if as_json:
        print_json_lines(reports)
    else:
        for report in reports:
            print(f"{'ok ' if report['intact'] else 'BAD'}  {report['name']}: {report['message']}")
    if not all(report["intact"] for report in reports):
        raise typer.Exit(FAILED)
