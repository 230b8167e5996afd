"""Cells of Table 3: few-shot classification, runs of one data set and number of shots in one program.

With a folder of checkpoints, the scores of every task are kept there too.
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from predcp._support.saved import SavedModel, save_model
from predcp.data import load_images
from predcp.experiments import Cell, CellModel, Context, Result
from predcp.fewshot import (
    ConvNet,
    Evaluation,
    Fit,
    ModuleScalePrior,
    Pool,
    Rates,
    Run,
    Settings,
    as_module_prior,
    evaluate,
    fit_runs,
    paper_network,
    pooled_network,
)

SCORES = "fewshot-scores"
# Settings of a cell that belong to its prior and to its network; the others belong to training.
_PRIOR = ("modules", "measure", "into_shared", "clip")
_NETWORKS = {"paper": paper_network, "pooled": pooled_network}
_NETWORK = ("channels", "blocks", "stride", "pool", "average", "normalisation", "precision")
# The most runs that share a program.
_TOGETHER = 16


def run(cell: Cell, context: Context) -> Result:
    """Train and test one cell."""
    return run_many([cell], context)[0]


def group_of(cell: Cell) -> tuple[object, ...]:
    """Cells of one group differ in prior, rates and seed alone: they can share a program."""
    own = (*_PRIOR, *Rates._fields)
    common = [(name, value) for name, value in cell.settings.items() if name not in own]
    return (cell.data, cell.model, cell.inference, cell.split, tuple(common))


def run_many(cells: Sequence[Cell], context: Context) -> list[Result]:
    """Train and test cells of one group in one program."""
    first = cells[0]
    # Bad settings are an error now, not after the data are read.
    settings, network = cell_settings(first), cell_network(first)
    runs = [Run(cell_prior(cell), cell.seed, cell_settings(cell).rates) for cell in cells]
    images = str(first.settings.get("images", first.data))
    train, validation, test = _pools(images, context.data_directory)
    checkpoint = context.checkpoint_file(cells)
    context.report(0, settings.iterations, "iterations, compiling")
    fit = fit_runs(
        network,
        settings,
        runs,
        train,
        validation,
        checkpoint,
        _devices(len(runs), settings.meta_batch),
        _report(checkpoint, context, settings.validate_every),
        context.seconds_left(),
    )
    checked = evaluate(fit, validation, stream="check")
    # A search looks at validation classes only.
    tested = evaluate(fit, test) if first.settings.get("tested", True) else None
    results = []
    for index, cell in enumerate(cells):
        on_test = None if tested is None else tested[index]
        if checkpoint is not None:
            _keep_scores(checkpoint.parent, cell, fit, index, checked[index], on_test)
        results.append(_result(fit, index, checked[index], on_test, context.keep_posterior))
    return results


def cell_settings(cell: Cell) -> Settings:
    """Training settings of a cell; an unknown name is an error."""
    known = (
        *_PRIOR,
        *_NETWORK,
        "network",
        "images",
        "tested",
        "complexity_draws",
        *Settings.names(),
    )
    unknown = [name for name in cell.settings if name not in known]
    if unknown:
        raise ValueError(
            f"settings {unknown} are not known for fewshot; there are: {', '.join(known)}"
        )
    own: dict[str, Any] = {
        name: value for name, value in cell.settings.items() if name in Settings.names()
    }
    if "complexity_draws" in cell.settings:
        own["noise_draws"] = cell.settings["complexity_draws"]
    return Settings(**own)


def cell_network(cell: Cell) -> ConvNet:
    """The network for the cell's images, with what its settings change.

    The setting `network` is `paper` (the default) or `pooled`.
    """
    kind = str(cell.settings.get("network", "paper"))
    if kind not in _NETWORKS:
        raise ValueError(f"network must be one of {', '.join(_NETWORKS)}, got {kind!r}")
    changes = {name: value for name, value in cell.settings.items() if name in _NETWORK}
    ways = int(str(cell.settings.get("ways", 5)))
    return _NETWORKS[kind](str(cell.settings.get("images", cell.data)), ways, **changes)


def cell_prior(cell: Cell) -> ModuleScalePrior:
    """The prior by its name, with what its settings change."""
    if cell.inference != "map":
        raise ValueError(f"inference must be 'map' for fewshot, got {cell.inference!r}")
    changes: dict[str, Any] = {
        name: value for name, value in cell.settings.items() if name in _PRIOR
    }
    return as_module_prior(cell.prior, **changes)


def _result(
    fit: Fit, index: int, checked: Evaluation, tested: Evaluation | None, keep: bool
) -> Result:
    metrics = {
        "validation": checked.metrics(),
        "train": {"accuracy": 100.0 * float(fit.history["accuracy"][-1, index])},
    }
    figures = {
        "training_seconds": fit.seconds / len(fit.iteration),
        "selected_iteration": float(fit.iteration[index]),
        "iterations": float(fit.iterations),
        "validation_standard_error": checked.standard_error,
    }
    if fit.diverged[index]:
        figures["divergences"] = 1.0
    if tested is not None:
        metrics["test"] = tested.metrics()
        figures["task_standard_error"] = tested.standard_error
        figures["small_query_interval"] = tested.small_query_interval
    posterior = None
    if keep and tested is not None:
        posterior = {"task_accuracy": tested.accuracy[None]}
    return Result(metrics, figures, posterior)


def _keep_scores(
    folder: Path,
    cell: Cell,
    fit: Fit,
    index: int,
    checked: Evaluation,
    tested: Evaluation | None,
) -> None:
    """Scores task by task, and the scales and kappas over training, for paired comparisons."""
    arrays = {
        "check/accuracy": checked.accuracy,
        "check/log_likelihood": checked.log_likelihood,
        "history/iteration": np.asarray(fit.history["iteration"]),
        "history/sigma": fit.history["sigma"][:, index],
        "history/kappa": fit.history["kappa"][:, index],
        "history/validation_accuracy": fit.history["validation_accuracy"][:, index],
        "history/accuracy": fit.history["accuracy"][:, index],
    }
    if tested is not None:
        arrays |= {
            "test/accuracy": tested.accuracy,
            "test/log_likelihood": tested.log_likelihood,
            "test/small_accuracy": tested.small_accuracy,
            "test/bins": tested.bins,
        }
    config = {
        "cell": cell.to_json(),
        "modules": list(fit.trainer.network.module_names),
        "selected_iteration": int(fit.iteration[index]),
    }
    target = folder / "scores"
    target.mkdir(parents=True, exist_ok=True)
    save_model(target / f"{cell.name}.safetensors", SavedModel(SCORES, arrays, config))


@lru_cache(maxsize=1)
def _pools(images: str, directory: str | None) -> tuple[Pool, Pool, Pool]:
    """Training, validation and test classes, standardised as the training classes are."""
    train = load_images(images, "train", directory)
    pool = Pool.of(train.images, train.labels, name=f"{images}, train")
    parts = [load_images(images, part, directory) for part in ("validation", "test")]
    others = [
        Pool.of(part.images, part.labels, pool.mean, pool.deviation, name=f"{images}, {part.part}")
        for part in parts
    ]
    return pool, others[0], others[1]


def _devices(runs: int, tasks: int) -> list[Any] | None:
    found = jax.devices()
    spread = len(found) > 1 and (runs % len(found) == 0 or tasks % len(found) == 0)
    return found if spread else None


def _report(
    checkpoint: Path | None, context: Context, validate_every: int
) -> Callable[[int, int, np.ndarray], None]:
    """Progress to the user, and at every validation in a log beside the checkpoint."""
    started = time.monotonic()

    def report(done: int, total: int, accuracy: np.ndarray) -> None:
        percent = 100.0 * np.asarray(accuracy)
        words = f"validation accuracy {percent.min():.1f} to {percent.max():.1f}%"
        known = not np.isnan(percent).all()
        context.report(done, total, f"iterations, {words}" if known else "iterations")
        if checkpoint is not None and (done % validate_every == 0 or done == total):
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            with checkpoint.with_suffix(".log").open("a", encoding="utf-8") as log:
                log.write(
                    f"{done} of {total} iterations, {time.monotonic() - started:.0f} s, {words}; "
                    f"{' '.join(f'{value:.2f}' for value in percent)}\n"
                )

    return report


MODEL = CellModel(run, run_many, group_of, together=_TOGETHER)
