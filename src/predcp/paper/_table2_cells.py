"""Cells of Table 2: residual networks on a table, one fit or a whole data set in one program."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp import Exponential, HalfCauchy
from predcp._support.checkpoint import Checkpoint
from predcp._support.pace import Pace
from predcp._support.paused import Paused
from predcp.data import Split, Standardiser, load
from predcp.experiments import (
    FILE_SETTINGS,
    Cell,
    CellModel,
    Context,
    Result,
    cell_split,
    cells_name,
)
from predcp.paper._held_out import ROWS, gap_split, moved_inputs, validation_split
from predcp.resnet import (
    LayerScalePrior,
    Model,
    Network,
    Objective,
    PredCPLayers,
    Preset,
    as_layer_prior,
    as_preset,
)
from predcp.resnet.programs import (
    ALIVE,
    Data,
    LayerFigures,
    Optimiser,
    State,
    class_scores,
    layer_program,
    log_precision,
    over_devices,
    predictor,
    programs,
    regression_scores,
    row_prior,
    seed_words,
)

# What a cell's `inference` asks for.
INFERENCES = {"vi": "paper", "vi-tempered": "public-code", "vi-averaged": "tempered"}
DEFAULTS: dict[str, Any] = {
    "layers": 1,
    "width": 50,
    "epochs": 4500,
    "batch": 32,
    "samples": 10,
    "learning_rate": 1e-3,
    "noise_precision": 20.0,
    "prediction_samples": 500,
    "normalize": None,
    "residual": True,
    "ard": True,
    "estimator": "flipout",
    # Which rows are held out, and whether inputs are moved too: see `_held_out`.
    "rows": "standard",
    "moved": False,
    # Weight of the divergence, epochs over which it rises to that weight, start of tau.
    "temperature": 1.0,
    "warmup": 0,
    "start": None,
}
# Numbers of a fit: fits of one program may differ in them.
_OWN = ("temperature", "warmup", "start")
# Of divergences, without a pole at zero.
_FINITE = {
    "predcp-half-cauchy": lambda: HalfCauchy(1.0),
    "predcp-exponential": lambda: Exponential(mean=0.5),
}
_PREDICTION_STREAM, _LAYER_STREAM = 1000, 1001
_SECONDS_BETWEEN_CHECKPOINTS = 60.0


def run(cell: Cell, context: Context) -> Result:
    """Fit one split."""
    return run_many([cell], context)[0]


def group_of(cell: Cell) -> tuple[Any, ...]:
    """Cells with the same group train together: splits, seeds, priors and objectives may differ."""
    common = sorted(item for item in cell.settings.items() if item[0] not in _OWN)
    return (cell.data, cell.model, tuple(common))


def run_many(cells: Sequence[Cell], context: Context) -> list[Result]:
    """Fit cells of one data set and settings in one program."""
    if len({group_of(cell) for cell in cells}) > 1:
        raise ValueError("cells of one program must share their data set and settings")
    fits = _Fits.prepare(cells, [split_of(cell, context) for cell in cells])
    began = time.perf_counter()
    state = _trained(fits, context)
    seconds = time.perf_counter() - began
    return _results(fits, state, seconds, context)


class _Fits(NamedTuple):
    """Everything the program takes, with a leading axis of cells (padded for the devices)."""

    cells: Sequence[Cell]
    splits: Sequence[Split]
    model: Model
    settings: dict[str, Any]
    presets: list[Preset]
    data: Data
    test: dict[str, Array]
    objective: Objective
    seeds: Array
    log_tau: Array
    targets: list[Standardiser | None]

    @classmethod
    def prepare(cls, cells: Sequence[Cell], splits: Sequence[Split]) -> "_Fits":
        settings = settings_of(cells[0])
        first = splits[0].train
        classes = first.task != "regression"
        names = list(dict.fromkeys(cell.prior for cell in cells))
        priors = tuple(prior_of(name) for name in names)
        rows = {row_prior(prior) for prior in priors}
        if len(rows) > 1:
            raise ValueError("the horseshoe's row scales cannot share a program with the others'")
        outputs = len(first.class_names) if classes else 1
        network = Network(
            first.features.shape[1],
            settings["width"],
            settings["layers"],
            outputs,
            settings["residual"],
            settings["normalize"],
        )
        presets = [_preset(cell) for cell in cells]
        model = Model(
            network,
            priors,
            rows.pop() if settings["ard"] else None,
            settings["noise_precision"],
            classes,
            settings["samples"],
            settings["estimator"],
            any(preset.quirks for preset in presets),
        )
        arrays = [arrays_of(split) for split in splits]
        objectives = [
            preset.objective(network, len(split.train), names.index(cell.prior))
            for preset, split, cell in zip(presets, splits, cells)
        ]
        x, y = (jnp.asarray(np.stack(column)) for column in zip(*(parts[:2] for parts in arrays)))
        inputs = [
            {"test": own[2]} | (moved_inputs(own[2], cell.split) if settings["moved"] else {})
            for own, cell in zip(arrays, cells)
        ]
        test = {name: jnp.asarray(np.stack([own[name] for own in inputs])) for name in inputs[0]}
        return cls(
            cells,
            splits,
            model,
            settings,
            presets,
            Data(x, y),
            test,
            Objective(
                jnp.asarray([each.choice for each in objectives], jnp.int32),
                *(jnp.asarray(column, jnp.float32) for column in list(zip(*objectives))[1:]),
            ),
            # The same start, batches and noise for every prior on a split: differences are paired.
            jnp.stack([seed_words(cell.seed, cell.split) for cell in cells]),
            jnp.asarray([math.log(_start(cell)) for cell in cells], jnp.float32),
            [parts[3] for parts in arrays],
        )


def settings_of(cell: Cell) -> dict[str, Any]:
    """The cell's settings over the defaults."""
    given = {name: value for name, value in cell.settings.items() if name not in FILE_SETTINGS}
    unknown = sorted(set(given) - set(DEFAULTS))
    if unknown:
        raise ValueError(
            f"resnet knows no settings {', '.join(unknown)}; there are: {', '.join(DEFAULTS)}"
        )
    return DEFAULTS | given


def split_of(cell: Cell, context: Context) -> Split:
    """The rows of a cell."""
    rows = cell.settings.get("rows", DEFAULTS["rows"])
    if rows not in ROWS:
        raise ValueError(f"rows must be one of {', '.join(ROWS)}, got {rows!r}")
    if rows == "gap":
        return gap_split(load(cell.data, context.data_directory), cell.split)
    split = cell_split(cell, context)
    return validation_split(split) if rows == "validation" else split


@lru_cache(maxsize=len(_FINITE))
def _finite(name: str) -> PredCPLayers:
    """One object per name, because a program is compiled for each object."""
    return PredCPLayers(_FINITE[name]())


def prior_of(name: str) -> LayerScalePrior:
    """The prior on the layers' scales of that name."""
    return _finite(name) if name in _FINITE else as_layer_prior(name)


def _start(cell: Cell) -> float:
    start = settings_of(cell)["start"]
    return prior_of(cell.prior).start if start is None else start


def _preset(cell: Cell) -> Preset:
    if cell.inference not in INFERENCES:
        raise ValueError(
            f"inference must be one of {', '.join(map(repr, INFERENCES))} for resnet, got "
            f"{cell.inference!r}"
        )
    settings = settings_of(cell)
    preset = as_preset(INFERENCES[cell.inference])
    return replace(preset, kl_weight=settings["temperature"], warmup=settings["warmup"])


def _trained(fits: _Fits, context: Context) -> State:
    settings = fits.settings
    program = programs(
        fits.model, Optimiser(settings["learning_rate"]), settings["batch"], many=True
    )
    seeds, log_tau, data, objective = over_devices(
        (fits.seeds, fits.log_tau, fits.data, fits.objective)
    )
    cells, path = fits.cells, context.checkpoint_file(fits.cells)
    checkpoint = None if path is None else Checkpoint(path, {"cells": cells_name(cells)})
    state = program.start(seeds, log_tau)
    found = None if checkpoint is None else checkpoint.load(state)
    if found is not None:
        # On the devices of the start.
        state = jax.tree.map(lambda new, old: jax.device_put(new, old.sharding), found[0], state)
    total, done, pace = settings["epochs"], int(state.epoch[0]), Pace()
    context.report(done, total, "epochs, compiling")
    written = time.perf_counter()
    while done < total:
        began, chunk = time.perf_counter(), pace.steps(total - done)
        state = program.advance(state, data, objective, chunk)
        jax.block_until_ready(state.epoch)
        done += chunk
        now = time.perf_counter()
        pace.took(chunk, now - began)
        context.report(done, total, "epochs")
        over = context.seconds_left() == 0.0 and done < total
        if checkpoint is not None and (over or now - written >= _SECONDS_BETWEEN_CHECKPOINTS):
            written = now
            checkpoint.save(state)
        if over:
            raise Paused(f"{cells[0].data}: time was up at epoch {done} of {total}")
    return state


def _results(fits: _Fits, state: State, seconds: float, context: Context) -> list[Result]:
    count = len(fits.cells)
    posterior, objectives = jax.tree.map(
        lambda leaf: leaf[:count], (state.posterior, state.objective)
    )
    predict = predictor(fits.model.network, fits.settings["prediction_samples"], many=True)
    keys = jnp.stack(
        [seed_words(cell.seed, _PREDICTION_STREAM + cell.split) for cell in fits.cells]
    )
    flips = fits.objective.flips
    outputs = {
        part: np.asarray(predict(posterior, inputs, keys, flips))
        for part, inputs in fits.test.items()
    }
    trained = np.asarray(predict(posterior, fits.data.x[:, :_TRAIN_ROWS], keys, flips))
    layers = jax.tree.map(
        np.asarray,
        layer_program(fits.model, many=True)(posterior, fits.objective, fits.data.x, keys),
    )
    precisions = np.exp(np.asarray(jax.vmap(lambda q: log_precision(fits.model, q))(posterior)))
    weights = np.asarray(fits.objective.kl_weight)
    results = []
    for index, split in enumerate(fits.splits):
        scale = fits.targets[index]
        held = "validation" if fits.settings["rows"] == "validation" else "test"
        metrics = {
            held if part == "test" else part: scores_of(
                own[index], split.test.target, scale, precisions[index]
            )
            for part, own in outputs.items()
        }
        metrics["train"] = scores_of(
            trained[index], split.train.target[:_TRAIN_ROWS], scale, precisions[index]
        )
        likelihood, divergence, log_prior = np.asarray(objectives[index], np.float64)
        weight = float(weights[index])
        figures = {
            "objective": likelihood - weight * (divergence - log_prior),
            "expected_log_likelihood": likelihood,
            "kl": divergence,
            "training_seconds": seconds / count,
            **_layer_figures(jax.tree.map(lambda leaf, i=index: leaf[i], layers)),
        }
        kept = {"outputs": outputs["test"][index][None]} if context.keep_posterior else None
        results.append(Result(metrics, figures, kept))
    return results


# Rows on which the training scores are computed.
_TRAIN_ROWS = 1000


def scores_of(
    outputs: np.ndarray, y: np.ndarray, scale: Standardiser | None, precision: float
) -> dict[str, float]:
    """Scores of draws of the outputs, (S, N, K), in units of the targets; `scale` is None for classes."""
    if scale is None:
        return class_scores(outputs, y)
    means = scale.inverse(np.asarray(outputs[..., 0], np.float64))
    return regression_scores(means, y, float(scale.scale) / float(np.sqrt(precision)))


def _layer_figures(layers: LayerFigures) -> dict[str, float]:
    figures = {"live_layers": float(np.sum(layers.effect > ALIVE))}
    for name, values in layers._asdict().items():
        for number, value in enumerate(np.asarray(values, np.float64), start=1):
            figures[f"layer{number}_{'kl' if name == 'divergence' else name}"] = float(value)
    return figures


def arrays_of(split: Split) -> tuple[np.ndarray, np.ndarray, np.ndarray, Standardiser | None]:
    """Standardised training rows, targets and test rows; the scale of targets, None for classes."""
    features = Standardiser.fit(split.train.features)
    x, test = (
        np.asarray(features.transform(table.features), np.float32)
        for table in (split.train, split.test)
    )
    if split.train.task != "regression":
        return x, np.asarray(split.train.target, np.int32), test, None
    target = Standardiser.fit(split.train.target)
    return x, np.asarray(target.transform(split.train.target), np.float32), test, target


MODEL = CellModel(run, run_many, group_of)
