"""`predcp fit` and `predcp predict`: models of a user's own file."""

import json
import sys
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
from predcp.cli._output import print_json_lines
from predcp.cli._words import in_options

# Written out, so that help needs none of the libraries; the tests compare them with the estimators.
_PRIORS = (
    "Of linear and logistic: predcp, ecp, half-cauchy, regularised-horseshoe, ridge. "
    "Of resnet: predcp, ecp, inverse-gamma, half-cauchy, horseshoe, fixed-NUMBER. "
    "Of ridge: evidence, unit, wide."
)
_INFERENCES = (
    "auto (default: nuts, gibbs or laplace by the table), nuts (any table), gibbs (many columns, few "
    "rows), laplace (quick, approximate) or vi (approximate); of linear and logistic."
)


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("fit", epilog="Example: predcp fit houses.csv --target price --output model.st")(
        fit_command
    )
    app.command("predict", epilog="Example: predcp predict model.safetensors new.csv > out.csv")(
        predict_command
    )


def fit_command(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet file.")],
    target: Annotated[str, typer.Option(help="Target column.")],
    model: Annotated[
        str | None,
        typer.Option(help="linear, logistic, resnet or ridge (default: by the target)."),
    ] = None,
    prior: Annotated[str | None, typer.Option(help=_PRIORS)] = None,
    inference: Annotated[str | None, typer.Option(help=_INFERENCES)] = None,
    chains: Annotated[int | None, typer.Option(help="Chains of nuts and gibbs.")] = None,
    warmup: Annotated[int | None, typer.Option(help="Warm-up steps per chain.")] = None,
    draws: Annotated[int | None, typer.Option(help="Draws kept per chain.")] = None,
    acceptance: Annotated[
        float | None,
        typer.Option(
            help="Target acceptance of nuts, 0 to 1 (default 0.8); higher: smaller steps."
        ),
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(help="Tree depth of nuts: at most 2 to this power steps per draw.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(help="Time limit; the summary says what was reached.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the draws.")] = None,
    missing: MissingOption = "refuse",
    drop: DropOption = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    classes: ClassesOption = False,
    output: Annotated[Path, typer.Option(help="File of the saved model.")] = Path(
        "model.safetensors"
    ),
    as_json: JsonOption = False,
) -> None:
    """Fit a model to a file and save it (arrays and JSON, never code)."""
    with errors():
        from predcp.cli._file_models import fit_file

        options = file_options(missing, drop, separator, encoding, classes)
        sampling = {
            "inference": inference,
            "chains": chains,
            "warmup": warmup,
            "draws": draws,
            "acceptance": acceptance,
            "max_depth": max_depth,
            "max_seconds": max_seconds,
        }
        # A bar in a pipe or a log file is noise.
        progress = sys.stderr.isatty() and not as_json
        fitted = fit_file(file, target, output, model, prior, seed, sampling, options, progress)
    summary = None if fitted.summary is None else in_options(fitted.summary)
    if as_json:
        words = [in_options(warning) for warning in fitted.warnings]
        more = {"summary": summary, "warnings": words, "output": str(output)}
        print(json.dumps(vars(fitted) | more))
        return
    if summary is not None:
        print(f"{summary}\n")
    print(
        f"{fitted.estimator} ({fitted.task}) on {fitted.rows} rows and "
        f"{len(fitted.features)} features, saved as {output}"
    )


def predict_command(
    model: Annotated[Path, typer.Argument(help="A saved model.")],
    file: Annotated[Path, typer.Argument(help="CSV or Parquet file with the same columns.")],
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    output: Annotated[Path | None, typer.Option(help="CSV file (default: print).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Predict the rows of a file with a saved model."""
    with errors():
        from predcp.cli._file_models import predict_file

        options = file_options(separator=separator, encoding=encoding)
        frame = predict_file(model, file, options)
        if as_json:
            print_json_lines(frame.to_dict(orient="records"))
        else:
            frame.to_csv(output or sys.stdout, index=False)
