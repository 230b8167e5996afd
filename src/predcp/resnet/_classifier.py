"""A Bayesian residual network as a scikit-learn classifier."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from predcp._support.fits import new_fit
from predcp.data import Standardiser
from predcp.resnet._estimator import OF_A_FIT, ResNet


class ResNetClassifier(ClassifierMixin, ResNet):
    """Classification with a network that switches off the layers it does not need.

    **Arguments**: as `ResNetRegressor`, without `noise`.
    """

    def __init__(
        self,
        scale_prior: Any = "predcp",
        *,
        depth: int = 2,
        width: int = 50,
        ard: bool = True,
        residual: bool = True,
        normalize: Any = None,
        preset: Any = "paper",
        gradient: Any = "flipout",
        epochs: int = 500,
        batch_size: int = 32,
        samples: int = 10,
        learning_rate: Any = 1e-3,
        prediction_samples: int = 500,
        validation_fraction: float = 0.0,
        patience: int = 5,
        checkpoint: Any = None,
        random_state: Any = 0,
        progress: Any = None,
    ) -> None:
        self.scale_prior = scale_prior
        self.depth = depth
        self.width = width
        self.ard = ard
        self.residual = residual
        self.normalize = normalize
        self.preset = preset
        self.gradient = gradient
        self.epochs = epochs
        self.batch_size = batch_size
        self.samples = samples
        self.learning_rate = learning_rate
        self.prediction_samples = prediction_samples
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any) -> "ResNetClassifier":
        """Fit to `X` `(N, D)` and labels `y` `(N,)`."""
        with new_fit(self, OF_A_FIT):
            X, y = validate_data(self, X, y, dtype=np.float64)
            check_classification_targets(y)
            self.classes_, numbers = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"y has one class only ({self.classes_[0]}); a classifier needs two or more"
                )
            self.features_ = Standardiser.fit(X)
            self._train(self.features_.transform(X), numbers.astype(np.int32))
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "points classes"]:
        """Probabilities, averaged over the posterior."""
        return self.sample_predictions(X, self.prediction_samples).mean(axis=0)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        shares = self.predict_proba(X)
        return self.classes_[np.argmax(shares, axis=1)]

    def sample_predictions(
        self, X: Any, samples: int = 100
    ) -> Float[np.ndarray, "samples points classes"]:
        """Draws of the probabilities at the rows of `X`."""
        return softmax(self._function_draws(X, samples), axis=-1)

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """As `ResNet.to_state`, with the classes."""
        arrays, values = super().to_state()
        return arrays, {**values, "classes": self.classes_.tolist()}

    def _restore(self, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
        self.classes_ = np.asarray(values["classes"])

    def _precision(self) -> float | None:
        return 1.0

    def _outputs(self) -> int:
        return len(self.classes_)

    @property
    def _classes(self) -> bool:
        return True
