"""Predictive complexity priors: say what a model may predict, not what its parameters may be.

Names are imported when they are first used, so that the command line starts without JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from predcp._version import __version__

if TYPE_CHECKING:
    from predcp import linear, resnet
    from predcp._budget import Budget, BudgetPrior
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
        register_quadrature,
        reverse_kl,
        squared_hellinger,
    )
    from predcp._maps import (
        BetaBinomialLimit,
        CoefficientEvidence,
        Complexity,
        CorrelationLimit,
        DepthComplexity,
        GammaLimit,
        JointComplexity,
        LengthscaleLimit,
        LinearEvidence,
        LogisticEvidence,
        ModularComplexity,
        NegativeBinomialLimit,
        OrderedComplexity,
        PenalisedComplexity,
        PredictiveComplexity,
        RowEvidence,
        ScalarComplexity,
        SeparateComplexity,
        StudentTLimit,
        TabulatedComplexity,
        VectorComplexity,
    )
    from predcp._numerics.normal_noise import normal_noise
    from predcp._prior import ComplexityPrior, LogScalePrior
    from predcp._summaries import (
        marginal,
        prior_predictive,
        shrinkage_profile,
        tail_probability,
    )
    from predcp.program import (
        Audit,
        ProgramComplexity,
        audit,
        budget_of,
        complexity_of,
        tail,
        with_complexity,
    )

_HOMES = {
    "predcp._budget": ("Budget", "BudgetPrior"),
    "predcp._diagnose": ("Diagnosis", "EntryDiagnosis", "diagnose"),
    "predcp._divergence_priors": (
        "DivergencePrior",
        "Exponential",
        "Gamma",
        "GammaExponential",
        "HalfCauchy",
        "LogCauchy",
    ),
    "predcp._divergences": (
        "Divergence",
        "jensen_shannon",
        "kl",
        "register_divergence",
        "register_quadrature",
        "reverse_kl",
        "squared_hellinger",
    ),
    "predcp._maps": (
        "BetaBinomialLimit",
        "CoefficientEvidence",
        "Complexity",
        "CorrelationLimit",
        "DepthComplexity",
        "GammaLimit",
        "JointComplexity",
        "LengthscaleLimit",
        "LinearEvidence",
        "LogisticEvidence",
        "ModularComplexity",
        "NegativeBinomialLimit",
        "OrderedComplexity",
        "PenalisedComplexity",
        "PredictiveComplexity",
        "RowEvidence",
        "ScalarComplexity",
        "SeparateComplexity",
        "StudentTLimit",
        "TabulatedComplexity",
        "VectorComplexity",
    ),
    "predcp._numerics.normal_noise": ("normal_noise",),
    "predcp._prior": ("ComplexityPrior", "LogScalePrior"),
    "predcp.program": (
        "Audit",
        "ProgramComplexity",
        "audit",
        "budget_of",
        "complexity_of",
        "tail",
        "with_complexity",
    ),
    "predcp._summaries": (
        "marginal",
        "prior_predictive",
        "shrinkage_profile",
        "tail_probability",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Audit",
    "BetaBinomialLimit",
    "Budget",
    "BudgetPrior",
    "CoefficientEvidence",
    "Complexity",
    "ComplexityPrior",
    "CorrelationLimit",
    "DepthComplexity",
    "Diagnosis",
    "Divergence",
    "DivergencePrior",
    "EntryDiagnosis",
    "Exponential",
    "Gamma",
    "GammaExponential",
    "GammaLimit",
    "HalfCauchy",
    "JointComplexity",
    "LengthscaleLimit",
    "LinearEvidence",
    "LogCauchy",
    "LogScalePrior",
    "LogisticEvidence",
    "ModularComplexity",
    "NegativeBinomialLimit",
    "OrderedComplexity",
    "PenalisedComplexity",
    "PredictiveComplexity",
    "ProgramComplexity",
    "RowEvidence",
    "ScalarComplexity",
    "SeparateComplexity",
    "StudentTLimit",
    "TabulatedComplexity",
    "VectorComplexity",
    "__version__",
    "audit",
    "budget_of",
    "complexity_of",
    "diagnose",
    "jensen_shannon",
    "kl",
    "linear",
    "marginal",
    "normal_noise",
    "prior_predictive",
    "register_divergence",
    "register_quadrature",
    "resnet",
    "reverse_kl",
    "shrinkage_profile",
    "squared_hellinger",
    "tail",
    "tail_probability",
    "with_complexity",
]


# Packages that `import predcp` alone makes reachable.
_PACKAGES = ("data", "experiments", "fewshot", "linear", "paper", "plot", "resnet")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"predcp.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'predcp' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
