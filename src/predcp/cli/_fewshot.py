"""`predcp fewshot`: scores and checkpoints of few-shot runs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from predcp.cli._errors import USAGE, errors, fail
from predcp.cli._options import JsonOption

_fewshot = typer.Typer(
    help="Few-shot runs: compare priors task by task, follow training.", no_args_is_help=True
)


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(_fewshot, name="fewshot")


@_fewshot.command("compare", epilog="Example: predcp fewshot compare checkpoints/scores")
def compare_command(
    folder: Annotated[
        Path, typer.Argument(help="Folder of scores, inside the folder of checkpoints.")
    ],
    part: Annotated[str, typer.Option(help="Tasks: test, or check (validation classes).")] = "test",
    as_json: JsonOption = False,
) -> None:
    """Compare priors on the same tasks; --json prints test and validation tasks."""
    with errors():
        from predcp import paper

        if part not in ("test", "check"):
            fail(f"--part must be test or check, got {part!r}", USAGE)
        scores = paper.read_scores(folder)
        if as_json:
            rows = {name: paper.compare_fewshot(scores, name) for name in ("test", "check")}
            print(json.dumps(rows, indent=1))
        else:
            print(paper.comparison_table(paper.compare_fewshot(scores, part)))


@_fewshot.command("training", epilog="Example: predcp fewshot training run.checkpoint")
def training_command(
    checkpoints: Annotated[list[Path], typer.Argument(help="Checkpoint files.")],
    seed: Annotated[int | None, typer.Option(help="Only runs with this seed.")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also save a picture of the runs in this file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the course of training: accuracy, and the scale and kappa of every module."""
    with errors():
        from predcp import paper

        runs = [run for path in checkpoints for run in paper.read_training(path)]
        runs = [run for run in runs if seed in (None, run.seed)]
        if not runs:
            fail(f"--seed {seed}: no run has this seed", USAGE)
        if picture is not None:
            paper.training_picture(runs).savefig(picture, dpi=120)
        print(
            json.dumps([run.to_json() for run in runs]) if as_json else paper.training_lines(runs)
        )
