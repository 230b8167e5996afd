"""Linear and logistic regression with horseshoe-type local scales under complexity priors."""

from typing import TYPE_CHECKING, Any

from predcp._support.extras import needs
from predcp.linear._auto import Auto
from predcp.linear._chain_sampler import ChainSampler
from predcp.linear._coefficient_prior import (
    CoefficientPrior,
    GlobalLocalPrior,
    LocalScalePrior,
    Setting,
)
from predcp.linear._draws import Draws
from predcp.linear._gibbs import Gibbs
from predcp.linear._laplace import Laplace
from predcp.linear._models import linear_regression, logistic_regression
from predcp.linear._nuts import Nuts
from predcp.linear._predictive import GaussianPredictive, LogisticPredictive
from predcp.linear._priors import (
    ECP,
    Horseshoe,
    PredCP,
    RegularisedHorseshoe,
    Ridge,
    ScaleDistribution,
    ScaleFunction,
    as_coefficient_prior,
)
from predcp.linear._target import Target
from predcp.linear._vi import MeanField

if TYPE_CHECKING:
    from predcp.linear._linear import LinearRegression
    from predcp.linear._logistic import LogisticRegression

__all__ = [
    "ECP",
    "Auto",
    "ChainSampler",
    "CoefficientPrior",
    "Draws",
    "GaussianPredictive",
    "Gibbs",
    "GlobalLocalPrior",
    "Horseshoe",
    "Laplace",
    "LinearRegression",
    "LocalScalePrior",
    "LogisticPredictive",
    "LogisticRegression",
    "MeanField",
    "Nuts",
    "PredCP",
    "RegularisedHorseshoe",
    "Ridge",
    "ScaleDistribution",
    "ScaleFunction",
    "Setting",
    "Target",
    "as_coefficient_prior",
    "linear_regression",
    "logistic_regression",
]


def __getattr__(name: str) -> Any:
    # The estimators need scikit-learn, the models and priors do not.
    if name in ("LinearRegression", "LogisticRegression"):
        with needs("experiments"):
            from predcp.linear import _linear, _logistic

        return getattr(_linear if name == "LinearRegression" else _logistic, name)
    raise AttributeError(f"module 'predcp.linear' has no attribute {name!r}")
