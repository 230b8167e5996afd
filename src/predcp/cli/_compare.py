"""`predcp compare`: which model for this file?"""

from pathlib import Path
from typing import Annotated

import typer

from predcp.cli._errors import errors
from predcp.cli._options import (
    ClassesOption,
    DropOption,
    EncodingOption,
    JsonOption,
    MissingOption,
    SeparatorOption,
    file_options,
)
from predcp.cli._stopping import say_how_to_resume, stop_on_terminate

# Written out, so that help needs none of the libraries; a test compares them with the room's.
_MODELS = (
    "base-rate, predcp, ecp, horseshoe, ridge, boosting; for classes sklearn-l1, sklearn-l2; for "
    "numbers sklearn-lasso, sklearn-ridge, sklearn-ard; repeatable (default: all that suit the target)."
)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare", epilog="Example: predcp compare houses.csv --target price")(
        compare_command
    )


def compare_command(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet file.")],
    target: Annotated[str, typer.Option(help="Target column.")],
    model: Annotated[list[str] | None, typer.Option(help=_MODELS)] = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.")] = 5,
    repeats: Annotated[int, typer.Option(help="Repeats of the cross-validation.")] = 3,
    weights: Annotated[
        str | None, typer.Option(help="Column of weights: how often each row counts.")
    ] = None,
    inference: Annotated[
        str, typer.Option(help="For predcp's models: laplace (quick), auto, nuts, gibbs or vi.")
    ] = "laplace",
    max_seconds: Annotated[
        float | None,
        typer.Option(
            help="Time limit: compare the fits that are finished by then; the same command resumes."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Fits at the same time (default: one per core).")
    ] = None,
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster to run on.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of folds and fits.")] = 0,
    missing: MissingOption = "impute",
    drop: DropOption = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    classes: ClassesOption = False,
    output: Annotated[Path, typer.Option(help="Folder of the report and of finished fits.")] = Path(
        "comparison"
    ),
    quiet: Annotated[bool, typer.Option(help="Show no progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find the model that predicts a file best, and whether its lead is more than chance.

    All models are fitted to the same folds of repeated cross-validation. Finished fits are kept, so
    the same command resumes.
    """
    with errors():
        from predcp._support.cores import available_cores
        from predcp.comparison import compare_file

        stop_on_terminate()
        options = file_options(missing, drop, separator, encoding, classes)
        try:
            found = compare_file(
                file,
                target,
                model or None,
                weights=weights,
                options=options,
                folds=folds,
                repeats=repeats,
                inference=inference,
                seed=seed,
                jobs=len(available_cores()) if jobs is None else jobs,
                address=address,
                max_seconds=max_seconds,
                store=output,
                progress=not (quiet or as_json),
            )
        except KeyboardInterrupt as stop:
            say_how_to_resume(stop, output)
        pages = found.save(output)
    print(found.to_json() if as_json else f"{found}\n\nreport: {pages[1]}")
