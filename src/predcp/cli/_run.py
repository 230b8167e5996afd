"""`predcp run`: run the cells of an experiment."""

import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predcp.cli._errors import FAILED, errors
from predcp.cli._options import (
    ClassesOption,
    DataOption,
    DirectoryOption,
    DropOption,
    EncodingOption,
    InferenceOption,
    JsonOption,
    MissingOption,
    PriorOption,
    SeparatorOption,
    StoreOption,
    file_options,
)
from predcp.cli._output import print_json_lines
from predcp.cli._stopping import say_how_to_resume, stop_on_terminate

if TYPE_CHECKING:
    from predcp.experiments import Cell, Store


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", epilog="Example: predcp run toy --splits 5 --engine pool")(run_command)


def run_command(
    experiment: Annotated[
        str,
        typer.Argument(help="toy, table1, table2, table3, appendix-..., or your module:function."),
    ],
    data: DataOption = None,
    prior: PriorOption = None,
    inference: InferenceOption = None,
    splits: Annotated[
        str | None, typer.Option(help="Splits: 5 (the first five), 0,3 or 2-4.")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds: 3 (0, 1 and 2), 0,7 or 2-4.")] = None,
    cell: Annotated[
        list[str] | None, typer.Option(help="Start of a cell's key; repeatable.")
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="Another network of the experiment: pooled, of table3.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Target column of a --data file.")] = None,
    missing: MissingOption = "refuse",
    drop: DropOption = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    classes: ClassesOption = False,
    engine: Annotated[
        str, typer.Option(help="How cells run: process, pool, batch or ray.")
    ] = "process",
    workers: Annotated[
        int | None, typer.Option(help="Processes of the pool (default: one per core).")
    ] = None,
    address: Annotated[str | None, typer.Option(help="Address of the Ray cluster.")] = None,
    gpus: Annotated[float, typer.Option(help="GPUs per cell on the cluster.")] = 0.0,
    together: Annotated[
        int | None,
        typer.Option(
            envvar="PREDCP_TOGETHER",
            help="Largest number of cells in one batch program (default: the model's own).",
        ),
    ] = None,
    store: StoreOption = Path("results"),
    directory: DirectoryOption = None,
    keep_posterior: Annotated[bool, typer.Option(help="Store posterior draws (netCDF).")] = False,
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            envvar="PREDCP_CHECKPOINTS",
            help="Folder of checkpoints, from which interrupted long fits resume.",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            envvar="PREDCP_SECONDS", min=0, help="Pause long fits after this number of seconds."
        ),
    ] = None,
    retry_failed: Annotated[bool, typer.Option(help="Also run cells that failed before.")] = False,
    dry_run: Annotated[bool, typer.Option(help="List the cells and run nothing.")] = False,
    quiet: Annotated[bool, typer.Option(help="Show no progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run an experiment's cells; finished ones are kept, so the same command resumes."""
    with errors():
        # Registers its models and experiments.
        import predcp.paper  # noqa: F401
        from predcp import experiments

        # A user's own module is in the folder where the command was given.
        sys.path.insert(0, os.getcwd())
        stop_on_terminate()
        if network is not None:
            experiment = experiments.with_network(experiment, network)
        folder, cells = experiments.experiment_cells(experiment)
        known = experiments.find_experiment(experiment)[1]
        options = file_options(missing, drop, separator, encoding, classes)
        cells = experiments.place_on_data(
            cells,
            data or (),
            target,
            options,
            known.file_settings,
            known.baseline,
            known.file_task,
        )
        cells = experiments.select(
            cells,
            prior=prior or (),
            inference=inference or (),
            splits=splits,
            seeds=seeds,
            keys=cell or (),
        )
        if dry_run:
            _list_cells(cells, experiments.Store(store, folder), as_json)
            return
        grid_options: dict[str, Any] = {"--data": data, "--target": target, "--seeds": seeds}
        grid_options |= {"--drop": drop, "--separator": separator, "--encoding": encoding}
        if missing != "refuse":
            grid_options["--missing"] = missing
        words = ["run", experiment, *(["--classes"] if classes else [])]
        try:
            tally = experiments.run(
                folder,
                cells,
                store=store,
                engine=experiments.engine_name(engine),
                workers=workers,
                address=address,
                gpus=gpus,
                together=together,
                data_directory=None if directory is None else str(directory),
                keep_posterior=keep_posterior,
                checkpoints=checkpoints,
                seconds=seconds,
                retry_failed=retry_failed,
                progress=experiments.choose_progress(quiet),
                rerun=_command(words, grid_options),
            )
        except KeyboardInterrupt as stop:
            say_how_to_resume(stop, store / folder)
    if as_json:
        print(json.dumps(vars(tally)))
    else:
        print(
            f"{folder}: {tally.already_finished + tally.finished} of {tally.total} cells finished, "
            f"{tally.failed} failed; see `predcp report {folder} --store {store}`"
        )
    if tally.failed:
        raise typer.Exit(FAILED)


def _list_cells(cells: "Sequence[Cell]", store: "Store", as_json: bool) -> None:
    if as_json:
        print_json_lines([{"key": cell.key, **cell.to_json()} for cell in cells])
        return
    statuses = [store.status(cell) for cell in cells]
    rows = [
        ("cell", "data", "model", "prior", "inference", "split", "seed", "stored"),
        *(
            (
                *(cell.key[:12], cell.data, cell.model, cell.prior, cell.inference),
                *(str(cell.split), str(cell.seed), "" if status == "absent" else status),
            )
            for cell, status in zip(cells, statuses)
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    print(f"{len(cells)} cells, {statuses.count('finished')} finished")


def _command(words: list[str], options: dict[str, list[str] | str | None]) -> str:
    parts = ["predcp", *words]
    for name, value in options.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                parts += [name, item]
    return shlex.join(parts)
