"""Predictive complexity priors: say what a model may predict, not what its parameters may be."""

from predcp._complexity import Complexity
from predcp._divergence_priors import (
    DivergencePrior,
    Exponential,
    Gamma,
    GammaExponential,
    HalfCauchy,
    LogCauchy,
)
from predcp._divergences import (
    Divergence,
    jensen_shannon,
    kl,
    register_divergence,
    reverse_kl,
    squared_hellinger,
)
from predcp._evidence import CoefficientEvidence, LinearEvidence, LogisticEvidence
from predcp._penalised import PenalisedComplexity
from predcp._prior import ComplexityPrior, LogScalePrior
from predcp._version import __version__

__all__ = [
    "CoefficientEvidence",
    "Complexity",
    "ComplexityPrior",
    "Divergence",
    "DivergencePrior",
    "Exponential",
    "Gamma",
    "GammaExponential",
    "HalfCauchy",
    "LinearEvidence",
    "LogCauchy",
    "LogScalePrior",
    "LogisticEvidence",
    "PenalisedComplexity",
    "__version__",
    "jensen_shannon",
    "kl",
    "register_divergence",
    "reverse_kl",
    "squared_hellinger",
]
