"""Bayesian residual networks that choose their depth."""

from typing import TYPE_CHECKING, Any

from predcp._support.extras import needs
from predcp.resnet._complexity_priors import ECPLayers, PredCPLayers, as_layer_prior
from predcp.resnet._layer_maps import ReluLayerComplexity, ReluLayerEvidence
from predcp.resnet._layer_priors import (
    FixedLayers,
    HalfCauchyLayers,
    HorseshoeLayers,
    InverseGammaLayers,
    LayerScalePrior,
)
from predcp.resnet._network import Biases, Network, Weights
from predcp.resnet._objective import Model, Objective
from predcp.resnet._posterior import Posterior
from predcp.resnet._presets import Preset, as_preset
from predcp.resnet._rows import HalfCauchyRows, InverseGammaRows

if TYPE_CHECKING:
    from predcp.resnet._classifier import ResNetClassifier
    from predcp.resnet._nuts import NutsDraws, network_program, sample_posterior
    from predcp.resnet._prior_functions import plot_prior_functions, prior_functions
    from predcp.resnet._regressor import ResNetRegressor
    from predcp.resnet._report import LayerReport
    from predcp.resnet._training import Data

__all__ = [
    "Biases",
    "Data",
    "ECPLayers",
    "FixedLayers",
    "HalfCauchyLayers",
    "HalfCauchyRows",
    "HorseshoeLayers",
    "InverseGammaLayers",
    "InverseGammaRows",
    "LayerReport",
    "LayerScalePrior",
    "Model",
    "Network",
    "NutsDraws",
    "Objective",
    "Posterior",
    "PredCPLayers",
    "Preset",
    "ReluLayerComplexity",
    "ReluLayerEvidence",
    "ResNetClassifier",
    "ResNetRegressor",
    "Weights",
    "as_layer_prior",
    "as_preset",
    "network_program",
    "plot_prior_functions",
    "prior_functions",
    "sample_posterior",
]

# They need scikit-learn, optax or matplotlib; the network and its priors do not.
_LATE = {
    "Data": "_training",
    "LayerReport": "_report",
    "NutsDraws": "_nuts",
    "ResNetClassifier": "_classifier",
    "ResNetRegressor": "_regressor",
    "network_program": "_nuts",
    "plot_prior_functions": "_prior_functions",
    "prior_functions": "_prior_functions",
    "sample_posterior": "_nuts",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'predcp.resnet' has no attribute {name!r}")
    from importlib import import_module

    with needs("experiments"):
        return getattr(import_module(f"predcp.resnet.{_LATE[name]}"), name)
