"""Estimators that worker processes can import."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression


class Rows(LogisticRegression):
    """A logistic regression that remembers what it was fitted to."""

    fits: list = []

    def fit(self, X, y, sample_weight=None):
        Rows.fits.append((np.array(X), np.array(y)))
        return super().fit(X, y, sample_weight)


class Failing(ClassifierMixin, BaseEstimator):
    """Fails."""

    def fit(self, X, y):
        raise RuntimeError("this model never works")

    def predict_proba(self, X):
        raise RuntimeError("this model never works")
