"""A Bayesian residual network as a scikit-learn regressor."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from predcp._support.fits import new_fit
from predcp.data import Standardiser
from predcp.resnet._estimator import OF_A_FIT, ResNet


class ResNetRegressor(RegressorMixin, ResNet):
    """Regression with a network that switches off the layers it does not need.

    Columns and the target are standardised inside.

    **Arguments**
    - `scale_prior`: of the hidden layers' scales: `PredCPLayers(pi)`, `ECPLayers(pi)`,
      `InverseGammaLayers()`, `HalfCauchyLayers()`, `HorseshoeLayers()`, `FixedLayers(tau)`, a prior on a
      divergence (for `PredCPLayers` with it), or a name: `predcp`, `ecp`, `inverse-gamma`,
      `half-cauchy`, `horseshoe`, `fixed`, `fixed-0.1`.
    - `depth`, `width`: hidden layers (all but the first have a scale) and units of each.
    - `ard`: row scales, so that inputs and units can be switched off too.
    - `residual`: False for a plain network; `normalize`: "layer" for deep ones.
    - `noise`: "learned", or its precision on the standardised target (the paper's is 20).
    - `preset`: a `predcp.resnet.Preset`, or one by name: `paper` (the exact ELBO), `public-code`,
      `tempered`; None for the exact ELBO; with the PredCP and the ECP the weight of its divergence
      then rises over the first hundred epochs (at most a fifth of them).
    - `gradient`: `flipout` or `local` (local reparameterisation).
    - `epochs`, `batch_size`, `samples` (of the expected log likelihood), `learning_rate` (a number or
      an optax schedule), `prediction_samples`.
    - `validation_fraction`, `patience`: the fraction of rows set aside, and how many of the fifty
      evaluations on them may pass without improvement before training stops; the best posterior is kept.
    - `checkpoint`: a file to resume from; on a CPU the result is the same to the bit.
    - `random_state`: a seed; on a CPU the same seed gives the same result.
    - `progress`: None, True for a bar, or a function of (done, total).

    After `fit`: `variational_` (means and variances of the weights, see `Posterior`), `history_`,
    `layers_`, `n_iter_` (epochs done), and `summary()`.
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
        noise: Any = "learned",
        preset: Any = None,
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
        self.noise = noise
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

    def fit(self, X: Any, y: Any) -> "ResNetRegressor":
        """Fit to `X` `(N, D)` and numbers `y` `(N,)`."""
        with new_fit(self, OF_A_FIT):
            X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            self.features_ = Standardiser.fit(X)
            self.target_ = Standardiser.fit(np.asarray(y, np.float64))
            scores = np.asarray(self.target_.transform(y), np.float32)
            self._train(self.features_.transform(X), scores)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Posterior means `(N,)`.

        **Arguments**: `return_std`, also the standard deviations of new observations `(N,)`.
        """
        draws = self.sample_predictions(X, self.prediction_samples)
        mean = draws.mean(axis=0)
        if not return_std:
            return mean
        return mean, np.sqrt(draws.var(axis=0) + self.noise_std_**2)

    def sample_predictions(self, X: Any, samples: int = 100) -> Float[np.ndarray, "samples points"]:
        """Draws of the regression function at the rows of `X`, without noise."""
        draws = self._function_draws(X, samples)
        return self.target_.inverse(draws[..., 0])

    @property
    def noise_std_(self) -> float:
        """Standard deviation of the noise, in units of the target."""
        return float(self.target_.scale) / self._noise_precision() ** 0.5

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """As `ResNet.to_state`, with the units of the target."""
        arrays, values = super().to_state()
        target = np.array([self.target_.mean, self.target_.scale], np.float64)
        settings = values["settings"] | {"noise": self._settings["noise"]}
        return {**arrays, "target": target}, {**values, "settings": settings}

    def _restore(self, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
        self.target_ = Standardiser(arrays["target"][0], arrays["target"][1])

    def _precision(self) -> float | None:
        if isinstance(self.noise, str):
            if self.noise != "learned":
                raise ValueError(f"noise must be 'learned' or a precision, got {self.noise!r}")
            return None
        precision = float(self.noise)
        if not (np.isfinite(precision) and precision > 0.0):
            raise ValueError(f"noise must be 'learned' or a positive precision, got {self.noise!r}")
        return precision

    def _outputs(self) -> int:
        return 1
