"""Cells of Table 2: residual networks on a table, one fit or a whole data set in one program."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp._support.paused import Paused
from predcp.data import Split, Standardiser
from predcp.experiments import Cell, Context, Result, cell_split
from predcp.experiments._long_fits import cells_name, checkpoint_file, seconds_left
from predcp.resnet import _checkpoint
from predcp.resnet._complexity_priors import as_layer_prior
from predcp.resnet._layers import ALIVE, LayerFigures, layer_program
from predcp.resnet._network import Network
from predcp.resnet._objective import Model, Objective, log_precision
from predcp.resnet._predictive import predictor
from predcp.resnet._presets import Preset, as_preset
from predcp.resnet._rows import row_prior
from predcp.resnet._scores import class_scores, regression_scores
from predcp.resnet._sharding import over_devices
from predcp.resnet._training import Data, Optimiser, State, programs, seed_words

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
}
_PREDICTION_STREAM, _LAYER_STREAM = 1000, 1001
_CHUNKS = 50
_SECONDS_BETWEEN_NOTES = 10.0
_SECONDS_BETWEEN_CHECKPOINTS = 60.0


def run(cell: Cell, context: Context) -> Result:
    """Fit one split."""
    return run_many([cell], context)[0]


def group_of(cell: Cell) -> tuple[Any, ...]:
    """Cells with the same group train together: splits, seeds, priors and objectives may differ."""
    return (cell.data, cell.model, tuple(sorted(cell.settings.items())))


def run_many(cells: Sequence[Cell], context: Context) -> list[Result]:
    """Fit cells of one data set and settings in one program."""
    if len({group_of(cell) for cell in cells}) > 1:
        raise ValueError("cells of one program must share their data set and settings")
    fits = _Fits.prepare(cells, [cell_split(cell, context) for cell in cells])
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
    test: Array
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
        priors = tuple(as_layer_prior(name) for name in names)
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
        presets = [as_preset(_preset_name(cell)) for cell in cells]
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
        arrays = [_arrays(split) for split in splits]
        objectives = [
            preset.objective(network, len(split.train), names.index(cell.prior))
            for preset, split, cell in zip(presets, splits, cells)
        ]
        x, y, test = (
            jnp.asarray(np.stack(column)) for column in zip(*(parts[:3] for parts in arrays))
        )
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
            jnp.log(jnp.asarray([as_layer_prior(c.prior).start for c in cells], jnp.float32)),
            [parts[3] for parts in arrays],
        )


def settings_of(cell: Cell) -> dict[str, Any]:
    """The cell's settings over the defaults."""
    given = {
        name: value
        for name, value in cell.settings.items()
        if name not in ("target", "missing", "sha256")
    }
    unknown = sorted(set(given) - set(DEFAULTS))
    if unknown:
        raise ValueError(
            f"resnet knows no settings {', '.join(unknown)}; there are: {', '.join(DEFAULTS)}"
        )
    return DEFAULTS | given


def _preset_name(cell: Cell) -> str:
    if cell.inference not in INFERENCES:
        raise ValueError(
            f"inference must be one of {', '.join(map(repr, INFERENCES))} for resnet, got "
            f"{cell.inference!r}"
        )
    return INFERENCES[cell.inference]


def _trained(fits: _Fits, context: Context) -> State:
    settings = fits.settings
    program = programs(
        fits.model, Optimiser(settings["learning_rate"]), settings["batch"], many=True
    )
    seeds, log_tau, data, objective = over_devices(
        (fits.seeds, fits.log_tau, fits.data, fits.objective)
    )
    state = _resumed(fits.cells, program.start(seeds, log_tau))
    total, done, first = settings["epochs"], int(state.epoch[0]), True
    began = told = written = time.perf_counter()
    while done < total:
        # The first chunk is one epoch: compiling is over when it ends.
        chunk = min(1 if first else max(1, total // _CHUNKS), total - done)
        state, first = program.advance(state, data, objective, chunk), False
        jax.block_until_ready(state.epoch)
        done += chunk
        now = time.perf_counter()
        if context.note is not None and (done == total or now - told >= _SECONDS_BETWEEN_NOTES):
            told = now
            context.note(
                f"{fits.cells[0].data}: {done} of {total} epochs, {len(fits.cells)} fits together, "
                f"{now - began:.0f}s"
            )
        over = seconds_left() == 0.0 and done < total
        if over or now - written >= _SECONDS_BETWEEN_CHECKPOINTS:
            written = now
            _keep(fits.cells, state)
        if over:
            raise Paused(f"{fits.cells[0].data}: time was up at epoch {done} of {total}")
    return state


def _keep(cells: Sequence[Cell], state: State) -> None:
    file = checkpoint_file(cells)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        _checkpoint.write(file, cells_name(cells), state, {})


def _resumed(cells: Sequence[Cell], start: State) -> State:
    """Where an interrupted run of the same cells stood, on the devices of the start."""
    file = checkpoint_file(cells)
    found = None if file is None else _checkpoint.read(file, cells_name(cells), start)
    if found is None:
        return start
    return jax.tree.map(lambda new, old: jax.device_put(new, old.sharding), found[0], start)


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
    outputs = np.asarray(predict(posterior, fits.test, keys, flips))
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
        metrics = {
            "test": _scores(outputs[index], split.test.target, scale, precisions[index]),
            "train": _scores(
                trained[index], split.train.target[:_TRAIN_ROWS], scale, precisions[index]
            ),
        }
        likelihood, divergence, log_prior = np.asarray(objectives[index], np.float64)
        weight = float(weights[index])
        figures = {
            "objective": likelihood - weight * (divergence - log_prior),
            "expected_log_likelihood": likelihood,
            "kl": divergence,
            "training_seconds": seconds / count,
            **_layer_figures(jax.tree.map(lambda leaf, i=index: leaf[i], layers)),
        }
        kept = {"outputs": outputs[index][None]} if context.keep_posterior else None
        results.append(Result(metrics, figures, kept))
    return results


# Rows on which the training scores are computed.
_TRAIN_ROWS = 1000


def _scores(
    outputs: np.ndarray, y: np.ndarray, scale: Standardiser | None, precision: float
) -> dict[str, float]:
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


def _arrays(split: Split) -> tuple[np.ndarray, np.ndarray, np.ndarray, Standardiser | None]:
    features = Standardiser.fit(split.train.features)
    x, test = (
        np.asarray(features.transform(table.features), np.float32)
        for table in (split.train, split.test)
    )
    if split.train.task != "regression":
        return x, np.asarray(split.train.target, np.int32), test, None
    target = Standardiser.fit(split.train.target)
    return x, np.asarray(target.transform(split.train.target), np.float32), test, target
