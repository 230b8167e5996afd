"""A few-shot classifier: fit on many classes, adapt to a few examples of new ones."""

import copy
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from predcp._support.fits import new_fit
from predcp._support.progress import progress_bar
from predcp._support.saved import SavedModel, load_model, save_model
from predcp.data import ImageClasses
from predcp.fewshot._adapt import adapted
from predcp.fewshot._episodes import Pool
from predcp.fewshot._evaluate import Evaluation, evaluations
from predcp.fewshot._fit import fit_runs
from predcp.fewshot._module_priors import (
    ModuleScalePrior,
    as_module_prior,
    module_prior_from_config,
)
from predcp.fewshot._networks import ConvNet, DenseNet, Modules, Network, network_from_config
from predcp.fewshot._objective import Meta
from predcp.fewshot._report import ModuleReport, module_report
from predcp.fewshot._runs import Run
from predcp.fewshot._scores import score_tasks
from predcp.fewshot._settings import Settings

_KIND = "fewshot-classifier"
# Attributes of a fit besides those that end in an underscore.
_OF_A_FIT = ("_settings",)


class FewShotClassifier(BaseEstimator):
    """Few-shot classification of images or any arrays by sigma-MAML with a prior on module scales.

    `fit` on examples of many classes, from which tasks are drawn; `adapt` to the labelled examples of a
    new task, then `predict` its queries. A convolutional network with batch statistics (the default for
    images) normalises the queries of one call together, so pass all queries in one call.

    **Arguments**
    - `prior`: `PredCPModules(pi, beta)`, `ShrinkageModules(pi, beta)`, `FlatModules()` or `MAMLModules()`;
        or a name such as `predcp-log-cauchy-1e-1`, `shrinkage-gem-1e-2`, `flat`, `maml`.
    - `network`: a `ConvNet` or `DenseNet`; None for a small one that fits the examples.
    - `ways`, `shots`, `queries`, `iterations`, `meta_batch`, `inner_steps`, `inner_steps_test`,
        `inner_rate`, `outer_rate`, `noise_draws`, `validate_every`, `validation_tasks`, `patience`: see
        `Settings`.
    - `checkpoint`: a file from which an interrupted fit resumes.
    - `random_state`: a seed; on a CPU the same seed gives the same result.
    - `progress`: None, True for a bar, or a function of (done, total, accuracy).

    After `fit`: `meta_` (phi, the normalisation's affine part, log sigma), `sigma_` by module,
    `validation_accuracy_`, `iteration_`, and `summary()`.
    """

    def __init__(
        self,
        prior: Any = "predcp-log-cauchy-1e-1",
        *,
        network: Network | None = None,
        ways: int = 5,
        shots: int = 1,
        queries: int = 15,
        iterations: int = 1000,
        meta_batch: int = 4,
        inner_steps: int = 5,
        inner_steps_test: int = 10,
        inner_rate: float = 0.01,
        outer_rate: float = 1e-3,
        noise_draws: int = 1,
        validate_every: int = 100,
        validation_tasks: int = 100,
        patience: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: int = 0,
        progress: Any = None,
    ) -> None:
        self.prior = prior
        self.network = network
        self.ways = ways
        self.shots = shots
        self.queries = queries
        self.iterations = iterations
        self.meta_batch = meta_batch
        self.inner_steps = inner_steps
        self.inner_steps_test = inner_steps_test
        self.inner_rate = inner_rate
        self.outer_rate = outer_rate
        self.noise_draws = noise_draws
        self.validate_every = validate_every
        self.validation_tasks = validation_tasks
        self.patience = patience
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any = None, validation: Any = None) -> "FewShotClassifier":
        """Learn from tasks of the classes in `y`.

        **Arguments**: `X` `(count, ...)` with labels `y` `(count,)`, or an `ImageClasses`; `validation`, a
        pair of the same or an `ImageClasses`, of other classes; the parameters that do best there are kept.
        """
        with new_fit(self, _OF_A_FIT):
            train = Pool.of(*_examples(X, y), name="X")
            held = None
            if validation is not None:
                pair = _examples(*_pair(validation))
                held = Pool.of(*pair, train.mean, train.deviation, name="validation")
            names = [name for name in Settings.names() if hasattr(self, name)]
            # On a CPU, compiling an unrolled loop takes longer than a small fit.
            unroll = jax.default_backend() != "cpu"
            settings = Settings(unroll=unroll, **{name: getattr(self, name) for name in names})
            network = self.network or default_network(train.example_shape, self.ways)
            run = Run(as_module_prior(self.prior), int(self.random_state))
            with progress_bar(self.progress, "tasks", _accuracy_words) as report:
                fit = fit_runs(
                    network, settings, [run], train, held, self.checkpoint, report_progress=report
                )
            self._keep(
                network, settings, run.prior, train, jax.tree.map(lambda leaf: leaf[0], fit.best)
            )
            self.iteration_ = int(fit.iteration[0])
            self.validation_accuracy_ = float(fit.validation_accuracy[0])
            self.report_ = module_report(fit)
            self._settings = {"prior": run.prior, "random_state": run.seed}
        return self

    def _keep(
        self, network: Network, settings: Settings, prior: ModuleScalePrior, train: Pool, meta: Meta
    ) -> None:
        self.network_, self.settings_, self.meta_ = network, settings, meta
        self.decay_ = float(prior.kind != "maml")
        self.mean_, self.deviation_ = np.asarray(train.mean), np.asarray(train.deviation)
        self.example_shape_ = train.example_shape
        self.sigma_ = dict(zip(network.module_names, np.exp(np.asarray(meta.log_sigma)).tolist()))

    def adapt(self, X: Any, y: Any) -> "AdaptedClassifier":
        """Adapt to a task, given a few examples of each of its classes; `predict` then uses the task.

        **Arguments**: `X` `(count, ...)`, `y` `(count,)`: labels of at most `ways` classes.
        """
        self._check_fitted()
        x, labels = self._standardised(X, "X"), np.asarray(y)
        if labels.shape != (len(x),):
            raise ValueError(
                f"y must have shape ({len(x)},), one label per example, got {labels.shape}"
            )
        classes, numbers = np.unique(labels, return_inverse=True)
        if not 2 <= len(classes) <= self.settings_.ways:
            raise ValueError(
                f"y has {len(classes)} classes; the model was fitted for tasks of 2 to "
                f"{self.settings_.ways} (ways)"
            )
        wanted = jnp.asarray(np.eye(self.settings_.ways)[numbers], self.meta_.log_sigma.dtype)
        settings = self.settings_
        decay, rate = self.decay_, settings.inner_rate
        theta = _adapted(self.network_, settings.program, self.meta_, decay, rate, x, wanted)
        # The task keeps this fit, whatever is fitted later.
        fitted = copy.copy(self)
        vars(fitted).pop("adapted_", None)
        self.adapted_ = AdaptedClassifier(fitted, theta, classes)
        return self.adapted_

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes of the last adapted task."""
        return self._adapted_task().predict_proba(X)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable classes in the last adapted task."""
        return self._adapted_task().predict(X)

    def evaluate(self, X: Any, y: Any = None, tasks: int = 1000) -> Evaluation:
        """Scores on tasks of new classes: accuracy with standard error, log likelihood, calibration."""
        self._check_fitted()
        pool = Pool.of(*_examples(X, y), self.mean_, self.deviation_, name="X")
        settings = self.settings_
        pool.require(settings.ways, settings.shots, settings.queries, "X")
        self._check_shape(pool.example_shape, "X")
        meta = jax.tree.map(lambda leaf: leaf[None], self.meta_)
        kind = self.meta_.log_sigma.dtype
        decay, rate = (jnp.full(1, value, kind) for value in (self.decay_, settings.inner_rate))
        found = score_tasks(self.network_, settings.program, meta, decay, rate, pool, tasks, "test")
        return evaluations(found)[0]

    def summary(self) -> ModuleReport:
        """Scale and kappa of every module: a table (`print` it) and a picture (`.plot()`)."""
        self._check_fitted()
        return self.report_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model as data."""
        self._check_fitted()
        arrays = {
            **{f"theta/{name}": leaf for name, leaf in _named(self.meta_.theta).items()},
            **{f"shared/{name}": leaf for name, leaf in _named(self.meta_.shared).items()},
            "log_sigma": np.asarray(self.meta_.log_sigma),
            "mean": self.mean_,
            "deviation": self.deviation_,
            "report/iteration": np.asarray(self.report_.iteration),
            "report/sigma": np.asarray(self.report_.sigma),
            "report/kappa": np.asarray(self.report_.kappa),
        }
        config = {
            "network": self.network_.to_config(),
            "settings": self.settings_.to_config(),
            "prior": self._settings["prior"].to_config(),
            "decay": self.decay_,
            "example_shape": list(self.example_shape_),
            "iteration": self.iteration_,
            "validation_accuracy": None
            if np.isnan(self.validation_accuracy_)
            else self.validation_accuracy_,
            "report_sizes": list(self.report_.sizes),
            "random_state": self._settings["random_state"],
        }
        save_model(path, SavedModel(_KIND, arrays, config))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "FewShotClassifier":
        """Read a model that `save` wrote; no code is run."""
        saved = load_model(path, _KIND)
        arrays, config = saved.arrays, saved.config
        network = network_from_config(config["network"])
        settings = Settings(**config["settings"])
        # Keep a prior given by name as a name.
        prior = config["prior"]
        prior = prior if isinstance(prior, str) else module_prior_from_config(prior)
        model = cls(network=network, prior=prior, random_state=config["random_state"])
        for name in Settings.names():
            if hasattr(model, name):
                setattr(model, name, getattr(settings, name))
        meta = Meta(
            _nested(arrays, "theta/"), _nested(arrays, "shared/"), jnp.asarray(arrays["log_sigma"])
        )
        model._settings = {
            "prior": as_module_prior(model.prior),
            "random_state": config["random_state"],
        }
        model.network_, model.settings_, model.meta_ = network, settings, meta
        model.decay_ = float(config["decay"])
        model.mean_, model.deviation_ = arrays["mean"], arrays["deviation"]
        model.example_shape_ = tuple(config["example_shape"])
        sigma = np.exp(arrays["log_sigma"])
        model.sigma_ = dict(zip(network.module_names, sigma.tolist()))
        model.iteration_ = int(config["iteration"])
        accuracy = config["validation_accuracy"]
        model.validation_accuracy_ = float("nan") if accuracy is None else accuracy
        model.report_ = ModuleReport(
            network.module_names,
            tuple(config["report_sizes"]),
            arrays["report/iteration"],
            arrays["report/sigma"],
            arrays["report/kappa"],
            model.iteration_,
        )
        return model

    def _check_fitted(self) -> None:
        if not hasattr(self, "meta_"):
            raise NotFittedError("this FewShotClassifier is not fitted yet; call fit first")

    def _adapted_task(self) -> "AdaptedClassifier":
        self._check_fitted()
        if not hasattr(self, "adapted_"):
            raise NotFittedError("no task yet; call adapt with its labelled examples first")
        return self.adapted_

    def _check_shape(self, shape: tuple[int, ...], name: str) -> None:
        if tuple(shape) != tuple(self.example_shape_):
            raise ValueError(
                f"{name} has examples of shape {tuple(shape)}, the model was fitted to "
                f"{tuple(self.example_shape_)} (height, width and channels for images)"
            )

    def _standardised(self, X: Any, name: str) -> Any:
        values = np.asarray(X)
        if values.ndim < 2 or not len(values):
            raise ValueError(f"{name} must be examples in rows, (count, ...), got {values.shape}")
        self._check_shape(values.shape[1:], name)
        if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
            raise ValueError(f"{name} must hold finite numbers")
        kind = self.meta_.log_sigma.dtype
        return jnp.asarray((values - self.mean_) / self.deviation_, kind)


class AdaptedClassifier:
    """A model adapted to one task.

    **Arguments**: the fitted model, the task's parameters, and its classes in the order of the outputs.
    """

    def __init__(self, model: FewShotClassifier, theta: Modules, classes: np.ndarray) -> None:
        self._model, self.theta_, self.classes_ = model, theta, classes

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities `(count, classes)`, in the order of `classes_`."""
        model = self._model
        x = model._standardised(X, "X")
        logits = _logits(model.network_, self.theta_, model.meta_.shared, x)
        # With fewer classes, the other outputs are unused.
        return np.asarray(jax.nn.softmax(logits[:, : len(self.classes_)]))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each example."""
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


@partial(jax.jit, static_argnames="settings")
def _adapted(network, settings, meta, decay, rate, x, wanted) -> Modules:
    return adapted(
        network,
        meta.theta,
        meta.shared,
        meta.log_sigma,
        jnp.asarray(decay, meta.log_sigma.dtype),
        network.prepare(x),
        wanted,
        settings.inner_steps_test,
        jnp.asarray(rate, meta.log_sigma.dtype),
        settings.objective,
    )


@jax.jit
def _logits(network, theta, shared, x):
    return network.logits(theta, shared, network.prepare(x))


def default_network(example_shape: tuple[int, ...], ways: int) -> Network:
    """Up to four convolutional blocks of 32 channels for images, two dense layers for other arrays."""
    if len(example_shape) != 3:
        return DenseNet(ways=ways)
    smallest = min(example_shape[:2])
    blocks = max(1, min(4, int(np.log2(max(smallest, 2)))))
    return ConvNet(ways=ways, channels=32, blocks=blocks)


def _pair(validation: Any) -> tuple[Any, Any]:
    if isinstance(validation, ImageClasses):
        return validation, None
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise ValueError("validation must be a pair (X, y) or an ImageClasses")
    return validation[0], validation[1]


def _examples(X: Any, y: Any) -> tuple[Any, Any]:
    if isinstance(X, ImageClasses):
        return X.images, X.labels
    if y is None:
        raise ValueError("y must be given: one class label per example of X")
    return X, y


def _named(modules: Modules) -> dict[str, np.ndarray]:
    return {
        f"{module}/{name}": np.asarray(leaf)
        for module, own in modules.items()
        for name, leaf in own.items()
    }


def _nested(arrays: Mapping[str, np.ndarray], prefix: str) -> Modules:
    modules: Modules = {}
    for name, leaf in arrays.items():
        if name.startswith(prefix):
            module, _, own = name.removeprefix(prefix).partition("/")
            modules.setdefault(module, {})[own] = jnp.asarray(leaf)
    return modules


def _accuracy_words(accuracy: np.ndarray) -> str:
    """The best validation accuracy of all runs, for a progress bar."""
    best = float(np.max(accuracy))
    return "no accuracy yet" if np.isnan(best) else f"accuracy {100.0 * best:.1f}%"
