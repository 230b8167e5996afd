"""Bayesian residual networks that choose their depth."""

from typing import TYPE_CHECKING, Any

from predcp.resnet._network import Biases, Network, Weights
from predcp.resnet._objective import Model, Objective
from predcp.resnet._posterior import Posterior
from predcp.resnet._presets import Preset, as_preset
from predcp.resnet._scale_priors import (
    Evidence,
    FixedScale,
    HalfCauchyScale,
    Horseshoe,
    InverseGamma,
    Predictive,
    ScalePrior,
    as_scale_prior,
)

if TYPE_CHECKING:
    from predcp.resnet._classifier import ResNetClassifier
    from predcp.resnet._regressor import ResNetRegressor
    from predcp.resnet._report import LayerReport

__all__ = [
    "Biases",
    "Evidence",
    "FixedScale",
    "HalfCauchyScale",
    "Horseshoe",
    "InverseGamma",
    "LayerReport",
    "Model",
    "Network",
    "Objective",
    "Posterior",
    "Predictive",
    "Preset",
    "ResNetClassifier",
    "ResNetRegressor",
    "ScalePrior",
    "Weights",
    "as_preset",
    "as_scale_prior",
]

# They need scikit-learn or optax, the network and its priors do not.
_LATE = {
    "LayerReport": "_report",
    "ResNetClassifier": "_classifier",
    "ResNetRegressor": "_regressor",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'predcp.resnet' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"predcp.resnet.{_LATE[name]}"), name)
