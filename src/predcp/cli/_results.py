"""`predcp results` and `predcp report`: read the store."""

from pathlib import Path
from typing import Annotated

import typer

from predcp.cli._errors import MISSING_INPUT, USAGE, errors, fail
from predcp.cli._options import DataOption, InferenceOption, PriorOption, StoreOption
from predcp.cli._output import FORMATS, note_foreign_files, print_rows


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("results", epilog="Example: predcp results --format json table1")(results_command)
    app.command("report", epilog="Example: predcp report table1 --output report/")(report_command)


def results_command(
    table: Annotated[str | None, typer.Argument(help="Experiment (default: list them).")] = None,
    store: StoreOption = Path("results"),
    output_format: Annotated[str, typer.Option("--format", help="table, json or csv.")] = "table",
    data: DataOption = None,
    prior: PriorOption = None,
    inference: InferenceOption = None,
    metric: Annotated[list[str] | None, typer.Option(help="Metric; repeatable.")] = None,
    cells: Annotated[
        bool, typer.Option(help="One row per cell and metric instead of means.")
    ] = False,
) -> None:
    """Query the store: means and standard errors, or every cell."""
    from predcp import experiments

    with errors():
        if output_format not in FORMATS:
            fail(f"--format must be table, json or csv, got {output_format!r}", USAGE)
        if table is None:
            names = experiments.experiments(store)
            note_foreign_files(store)
            print_rows([{"experiment": name} for name in names], output_format)
            return
        chosen = experiments.Store(store, table)
        if not chosen.exists:
            fail(
                f"{store} has no results of {table!r}; run `predcp run {table}` first",
                MISSING_INPUT,
            )
        rows = experiments.result_rows(
            chosen,
            cells,
            data=data or (),
            prior=prior or (),
            inference=inference or (),
            metric=metric or (),
        )
        if not rows:
            fail(f"no finished cell of {table} matches", MISSING_INPUT)
        print_rows(rows, output_format)


def report_command(
    table: Annotated[str, typer.Argument(help="Experiment.")],
    store: StoreOption = Path("results"),
    output: Annotated[Path | None, typer.Option(help="Folder (default: in the store).")] = None,
    times: Annotated[bool, typer.Option(help="Show times, which differ between runs.")] = True,
) -> None:
    """Write report.md and a self-contained report.html."""
    # For the published figures of its experiments.
    import predcp.paper  # noqa: F401
    from predcp import experiments

    with errors():
        for path in experiments.write_report(experiments.Store(store, table), output, times):
            print(path)
