"""Predictive complexity priors: say what a model may predict, not what its parameters may be."""

from predcp._complexity import Complexity
from predcp._depth import DepthComplexity
from predcp._diagnose import Diagnosis, EntryDiagnosis, diagnose
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
from predcp._draws import normal_draws
from predcp._evidence import CoefficientEvidence, LinearEvidence, LogisticEvidence
from predcp._modular import ModularComplexity
from predcp._paper import algorithm_1
from predcp._penalised import PenalisedComplexity
from predcp._predictive import PredictiveComplexity
from predcp._prior import ComplexityPrior, LogScalePrior
from predcp._summaries import (
    horseshoe_variance,
    marginal,
    prior_predictive,
    shrinkage_profile,
    tail_probability,
)
from predcp._version import __version__

__all__ = [
    "CoefficientEvidence",
    "Complexity",
    "ComplexityPrior",
    "DepthComplexity",
    "Diagnosis",
    "Divergence",
    "DivergencePrior",
    "EntryDiagnosis",
    "Exponential",
    "Gamma",
    "GammaExponential",
    "HalfCauchy",
    "LinearEvidence",
    "LogCauchy",
    "LogScalePrior",
    "LogisticEvidence",
    "ModularComplexity",
    "PenalisedComplexity",
    "PredictiveComplexity",
    "__version__",
    "algorithm_1",
    "diagnose",
    "horseshoe_variance",
    "jensen_shannon",
    "kl",
    "marginal",
    "normal_draws",
    "prior_predictive",
    "register_divergence",
    "reverse_kl",
    "shrinkage_profile",
    "squared_hellinger",
    "tail_probability",
]
