"""Base of the regressor and the classifier: validation, fitting, prediction, saving."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from predcp._divergence_priors import prior_to_config
from predcp._support.check import require_whole
from predcp._support.progress import progress_bar
from predcp._support.saved import SavedModel, load_model, save_model
from predcp._support.seeds import seed_of
from predcp.data import Standardiser
from predcp.resnet._complexity_priors import as_layer_prior, layer_prior_from_config
from predcp.resnet._fit import Fitted, Stopping, fit
from predcp.resnet._layers import LayerFigures, layer_program
from predcp.resnet._network import Network
from predcp.resnet._objective import ESTIMATORS, Model, Objective, log_precision
from predcp.resnet._posterior import Posterior, start
from predcp.resnet._predictive import function_draws, predictor
from predcp.resnet._presets import Preset, as_preset, default_preset
from predcp.resnet._report import LayerReport
from predcp.resnet._rows import row_prior
from predcp.resnet._training import Data, Optimiser, seed_words

# Attributes of a fit besides those that end in an underscore.
OF_A_FIT = ("_seed_", "_flips_", "_settings")
# Rows predicted at once, and the smallest number that a program is compiled for.
_MOST_ROWS, _FEWEST_ROWS = 4096, 64
_PREDICTION_STREAM = 1000
_KINDS = "resnet-"
_SETTINGS = (
    "depth",
    "width",
    "ard",
    "residual",
    "normalize",
    "preset",
    "epochs",
    "batch_size",
    "samples",
    "prediction_samples",
    "random_state",
)


class ResNet(BaseEstimator):
    """Base of `ResNetRegressor` and `ResNetClassifier`."""

    scale_prior: Any
    depth: int
    width: int
    ard: bool
    residual: bool
    normalize: Any
    preset: Any
    gradient: Any
    epochs: int
    batch_size: int
    samples: int
    learning_rate: Any
    prediction_samples: int
    validation_fraction: float
    patience: int
    checkpoint: Any
    random_state: Any
    progress: Any
    n_features_in_: int
    features_: Standardiser
    # Those of the fit itself: later changes by `set_params` apply to the next fit.
    _settings: dict[str, Any]

    # Methods of subclasses.

    def _precision(self) -> float | None:
        """Precision of the noise, None to learn it."""
        raise NotImplementedError

    def _outputs(self) -> int:
        """Number of outputs of the network."""
        raise NotImplementedError

    @property
    def _classes(self) -> bool:
        return False

    # Fitting.

    def _model(self) -> Model:
        prior = as_layer_prior(self.scale_prior)
        if self.gradient not in ESTIMATORS:
            raise ValueError(
                f"gradient must be one of {', '.join(map(repr, ESTIMATORS))}, got {self.gradient!r}"
            )
        network = Network(
            self.n_features_in_,
            require_whole("width", self.width),
            require_whole("depth", self.depth) - 1,
            self._outputs(),
            bool(self.residual),
            self.normalize,
        )
        rows = row_prior(prior) if self.ard else None
        return Model(
            network,
            (prior,),
            rows,
            self._precision(),
            self._classes,
            require_whole("samples", self.samples),
            self.gradient,
            self._preset.quirks,
        )

    @property
    def _preset(self) -> Preset:
        if self.preset is None:
            return default_preset(as_layer_prior(self.scale_prior).by_gradient, self.epochs)
        return as_preset(self.preset)

    def _objective(self, model: Model, rows: int) -> Objective:
        preset = self._preset
        if (preset.flips or preset.updates) and model.estimator != "flipout":
            raise ValueError("preset='public-code' needs gradient='flipout'")
        return preset.objective(model.network, rows)

    def _train(self, x: np.ndarray, y: np.ndarray) -> None:
        """Fit to standardised rows."""
        epochs, batch = (
            require_whole("epochs", self.epochs),
            require_whole("batch_size", self.batch_size),
        )
        require_whole("prediction_samples", self.prediction_samples)
        model = self._model()
        seed = seed_of(self.random_state)
        keep, stopping = self._set_aside(x, y, seed)
        data = Data(jnp.asarray(x[keep], jnp.float32), jnp.asarray(y[keep]))
        with progress_bar(self.progress, "training") as report:
            fitted = fit(
                model,
                Optimiser(self.learning_rate),
                data,
                self._objective(model, len(keep)),
                epochs,
                batch,
                seed,
                report,
                stopping,
                self.checkpoint,
            )
        self._seed_, self._flips_ = seed, self._preset.flips
        self._settings = self.get_params(deep=False)
        self._set_fitted(model, fitted, data.x, len(keep))

    def _set_fitted(self, model: Model, fitted: Fitted, x: Any, rows: int) -> None:
        self.model_ = model
        self.variational_ = jax.tree.map(np.asarray, fitted.posterior)
        self.history_ = fitted.history
        self.n_iter_ = int(fitted.history[-1, 0]) if len(fitted.history) else 0
        key = seed_words(self._seed_, _PREDICTION_STREAM)
        figures = layer_program(model, many=False)(
            fitted.posterior, self._objective(model, rows), x, key
        )
        self.layers_ = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), figures)

    def _set_aside(
        self, x: np.ndarray, y: np.ndarray, seed: int
    ) -> tuple[np.ndarray, Stopping | None]:
        """Rows to train on, and rows for early stopping."""
        fraction = float(self.validation_fraction)
        if not 0.0 <= fraction < 1.0:
            raise ValueError(f"validation_fraction must be in [0, 1), got {fraction!r}")
        order = np.random.default_rng(seed).permutation(len(x))
        count = round(fraction * len(x))
        if count == 0:
            return np.arange(len(x)), None
        if count == len(x):
            raise ValueError(f"validation_fraction {fraction} leaves no rows of {len(x)} to fit")
        held, keep = order[:count], np.sort(order[count:])
        patience = require_whole("patience", self.patience)
        return keep, Stopping(jnp.asarray(x[held], jnp.float32), jnp.asarray(y[held]), patience)

    # Reading.

    def _function_draws(self, x: Any, samples: int) -> np.ndarray:
        """Outputs (S, N, K) in standard units, each draw one function of all the rows."""
        check_is_fitted(self)
        x = validate_data(self, x, dtype=np.float64, reset=False)
        scores = np.asarray(self.features_.transform(x), np.float32)
        draws = self._drawn(require_whole("samples", samples))
        key = seed_words(self._seed_, _PREDICTION_STREAM)
        blocks = []
        for first in range(0, len(scores), _MOST_ROWS):
            block = scores[first : first + _MOST_ROWS]
            # Padded to a few sizes, so that few programs are compiled.
            padded = np.zeros((_padded(len(block)), block.shape[1]), np.float32)
            padded[: len(block)] = block
            outputs = draws(self.variational_, padded, key)
            blocks.append(np.asarray(outputs)[:, : len(block)])
        return np.concatenate(blocks, axis=1).astype(np.float64)

    def _drawn(self, samples: int) -> Callable[..., Array]:
        network = self.model_.network
        if not self._flips_:
            return function_draws(network, samples)
        # The public code fits with independent noise per row, so predict with the same.
        rowwise = predictor(network, samples, many=False)
        return lambda posterior, x, key: rowwise(posterior, x, key, 1.0)

    def summary(self) -> LayerReport:
        """Report of the hidden layers that are alive: a table (`print` it) and a picture (`.plot()`)."""
        check_is_fitted(self)
        return LayerReport(self.layers_, self._notes())

    def _notes(self) -> tuple[str, ...]:
        prior = prior_to_config(self._settings["scale_prior"])
        prior = prior if isinstance(prior, str) else json.dumps(prior)
        log_likelihood = self.history_[-1, 1]
        return (
            f"prior of the layer scales: {prior}",
            f"{self.n_iter_} epochs; expected log likelihood {log_likelihood:.4g} per row at the end",
        )

    # Saving.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file of arrays and JSON."""
        arrays, values = self.to_state()
        save_model(path, SavedModel(_KINDS + type(self).__name__, arrays, values))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """A model that `save` wrote; it predicts the same."""
        saved = load_model(path, _KINDS + cls.__name__)
        return cls.from_state(saved.arrays, saved.config)

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and plain values from which `from_state` makes a model that predicts the same."""
        check_is_fitted(self)
        arrays = {
            "features.mean": self.features_.mean,
            "features.scale": self.features_.scale,
            "history": self.history_,
        }
        for number, leaf in enumerate(jax.tree.leaves(self.variational_)):
            arrays[f"posterior.{number}"] = np.asarray(leaf)
        arrays |= {f"layers.{name}": values for name, values in self.layers_._asdict().items()}
        settings = {name: self._settings[name] for name in _SETTINGS}
        for name, value in settings.items():
            if not isinstance(value, str | int | float | bool | None):
                settings[name] = None if name == "random_state" else type(value).__name__
        values = {
            "settings": settings | {"scale_prior": prior_to_config(self._settings["scale_prior"])},
            "precision": self.model_.precision,
            "seed": self._seed_,
            "flips": self._flips_,
        }
        return arrays, values

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> Any:
        """The inverse of `to_state`."""
        settings = dict(values["settings"])
        prior = layer_prior_from_config(settings.pop("scale_prior"))
        model: Any = cls(**settings)
        model.scale_prior = prior
        model._settings = model.get_params(deep=False)
        model.features_ = Standardiser(arrays["features.mean"], arrays["features.scale"])
        model.n_features_in_ = len(model.features_.mean)
        model._restore(arrays, values)
        network = Network(
            model.n_features_in_,
            settings["width"],
            settings["depth"] - 1,
            model._outputs(),
            settings["residual"],
            settings["normalize"],
        )
        # Predictions need only the network and the noise, not the prior.
        model.model_ = Model(network, (as_layer_prior("fixed"),), None, values["precision"])
        like = start(jax.random.key(0), network)
        leaves = [
            arrays[f"posterior.{n}"].reshape(leaf.shape)
            for n, leaf in enumerate(jax.tree.leaves(like))
        ]
        model.variational_ = jax.tree.unflatten(jax.tree.structure(like), leaves)
        model.layers_ = LayerFigures(
            *(cast("Array", arrays[f"layers.{n}"]) for n in LayerFigures._fields)
        )
        model.history_ = arrays["history"]
        model.n_iter_ = int(model.history_[-1, 0])
        model._seed_, model._flips_ = int(values["seed"]), bool(values["flips"])
        return model

    def _restore(self, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
        """Restore the fields that a subclass added to the state."""

    def _noise_precision(self) -> float:
        posterior = Posterior(*self.variational_)
        return float(np.exp(np.asarray(log_precision(self.model_, posterior), np.float64)))


def _padded(rows: int) -> int:
    size = _FEWEST_ROWS
    while size < rows:
        size *= 2
    return size
