"""Predictive complexity priors: say what a model may predict, not what its parameters may be.

Names are imported when they are first used, so that the command line starts without JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from predcp._support.extras import needs
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
        register_monte_carlo,
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
    from predcp.comparison import Comparison, compare
    from predcp.program import (
        Audit,
        ProgramComplexity,
        audit,
        budget_of,
        complexity_of,
        tail,
        to_arviz,
        with_complexity,
    )

# Where names are looked up, in this order: later rooms import the earlier ones.
_ROOMS = (
    "_divergence_priors",
    "_divergences",
    "_maps",
    "_numerics.normal_noise",
    "_prior",
    "_summaries",
    "_diagnose",
    "_budget",
    "program",
    "comparison",
)

__all__ = [
    "Audit",
    "BetaBinomialLimit",
    "Budget",
    "BudgetPrior",
    "CoefficientEvidence",
    "Comparison",
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
    "compare",
    "complexity_of",
    "diagnose",
    "jensen_shannon",
    "kl",
    "linear",
    "marginal",
    "normal_noise",
    "prior_predictive",
    "register_divergence",
    "register_monte_carlo",
    "register_quadrature",
    "resnet",
    "reverse_kl",
    "shrinkage_profile",
    "squared_hellinger",
    "tail",
    "tail_probability",
    "to_arviz",
    "with_complexity",
]


# Packages that `import predcp` alone makes reachable.
_PACKAGES = ("data", "experiments", "fewshot", "linear", "paper", "plot", "resnet")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        with needs("plot" if name == "plot" else "experiments"):
            return import_module(f"predcp.{name}")
    for room in _ROOMS if name in __all__ else ():
        module = import_module(f"predcp.{room}")
        if hasattr(module, name):
            globals()[name] = getattr(module, name)
            return globals()[name]
    raise AttributeError(f"module 'predcp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
