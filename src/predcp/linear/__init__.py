"""Linear and logistic regression with horseshoe-type local scales under complexity priors."""

from predcp.linear._draws import Draws
from predcp.linear._hamiltonian import Hmc, Nuts
from predcp.linear._models import linear_regression, logistic_regression
from predcp.linear._predictive import GaussianPredictive, LogisticPredictive
from predcp.linear._priors import (
    CoefficientPrior,
    Evidence,
    GivenFunction,
    GivenScale,
    HalfCauchyScale,
    Horseshoe,
    Predictive,
    RegularisedHorseshoe,
    Ridge,
    Setting,
    as_coefficient_prior,
)
from predcp.linear._target import Target
from predcp.linear._vi import MeanField

__all__ = [
    "CoefficientPrior",
    "Draws",
    "Evidence",
    "GaussianPredictive",
    "GivenFunction",
    "GivenScale",
    "HalfCauchyScale",
    "Hmc",
    "Horseshoe",
    "LogisticPredictive",
    "MeanField",
    "Nuts",
    "Predictive",
    "RegularisedHorseshoe",
    "Ridge",
    "Setting",
    "Target",
    "as_coefficient_prior",
    "linear_regression",
    "logistic_regression",
]
