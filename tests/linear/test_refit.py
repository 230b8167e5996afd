"""One fit at a time: nothing of an earlier fit, of later settings or of a failed fit shows."""

import numpy as np
import pandas
import pytest
from sklearn.exceptions import NotFittedError

from predcp.linear import Laplace, LinearRegression, LogisticRegression

QUICK = Laplace(draws=30)
GENERATOR = np.random.default_rng(0)
X = GENERATOR.standard_normal((30, 3))
NOISY = X @ [2.0, 0.0, -1.0] + GENERATOR.logistic(size=30)
OTHER_X = GENERATOR.standard_normal((25, 4)) + 5.0
OTHER_NOISY = OTHER_X @ [0.0, 3.0, 0.0, 1.0] + GENERATOR.logistic(size=25)

CASES = {
    "linear": (LinearRegression, lambda noisy: 10.0 * noisy + 5.0),
    "two classes": (LogisticRegression, lambda noisy: noisy > np.median(noisy)),
    "three classes": (
        LogisticRegression,
        lambda noisy: np.digitize(noisy, np.quantile(noisy, [0.3, 0.7])),
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    estimator, outcomes = CASES[request.param]
    return estimator, outcomes(NOISY), outcomes(OTHER_NOISY)


def seen(model, x):
    """Everything a fitted model shows."""
    tree = model.posterior_
    predict = getattr(model, "predict_proba", model.predict)
    return {
        "coef": model.coef_,
        "intercept": model.intercept_,
        "predictions": predict(x),
        "columns": model.columns_.mean,
        "posterior": tree["posterior"]["coef"].to_numpy(),
        "log_prior": tree["log_prior"]["tau"].to_numpy(),
        "log_likelihood": tree["log_likelihood"]["y"].to_numpy(),
        "observed": tree["observed_data"]["y"].to_numpy(),
        "summary": np.asarray(str(model.summary())),
    }


def equal(first, second):
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def test_a_second_fit_is_the_only_one(case):
    estimator, y, other_y = case
    model = estimator("ridge", inference=QUICK)
    seen(model.fit(pandas.DataFrame(X, columns=list("abc")), y), X)
    again = seen(model.fit(OTHER_X, other_y), OTHER_X)
    equal(again, seen(estimator("ridge", inference=QUICK).fit(OTHER_X, other_y), OTHER_X))


def test_settings_after_a_fit_are_for_the_next(case):
    estimator, y, _ = case
    model = estimator("half-cauchy", inference=QUICK).fit(X, y)
    model.set_params(prior="ridge", inference="nuts", fit_intercept=False)
    equal(seen(model, X), seen(estimator("half-cauchy", inference=QUICK).fit(X, y), X))
    _, values = model.to_state()
    assert values["settings"]["prior"] == "half-cauchy" and values["settings"]["fit_intercept"]


def test_a_loaded_model_can_be_fitted_again(case, tmp_path):
    estimator, y, other_y = case
    frame = pandas.DataFrame(X, columns=list("abc"))
    estimator("ridge", inference="laplace").fit(frame, y).save(tmp_path / "model.safetensors")
    model = estimator.load(tmp_path / "model.safetensors")
    assert model._names() == list("abc")
    model.fit(OTHER_X, other_y)
    fresh = estimator("ridge", inference="laplace").fit(OTHER_X, other_y)
    equal(seen(model, OTHER_X), seen(fresh, OTHER_X))


class Failing:
    """An inference that does not come back."""

    def sample(self, target, progress=None):
        raise FloatingPointError("no draws")


FAILURES = {
    "columns that never vary": (np.ones((25, 4)), ValueError, QUICK),
    "not a number": (np.full((25, 4), np.nan), ValueError, QUICK),
    "inference": (OTHER_X, FloatingPointError, Failing()),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_fit_changes_nothing(case, name):
    estimator, y, other_y = case
    x, error, inference = FAILURES[name]
    fresh = estimator("ridge", inference=inference)
    with pytest.raises(error):
        fresh.fit(x, other_y)
    with pytest.raises(NotFittedError):
        fresh.predict(OTHER_X)
    model = estimator("ridge", inference=QUICK).fit(X, y)
    before = seen(model, X)
    model.set_params(inference=inference)
    with pytest.raises(error):
        model.fit(x, other_y)
    equal(seen(model, X), before)
    assert model.n_features_in_ == 3


def test_one_class_and_a_constant_target_change_nothing():
    for estimator, y in ((LogisticRegression, np.zeros(25)), (LinearRegression, np.ones(25))):
        model = estimator("ridge", inference=QUICK).fit(X, NOISY > 0 if y[0] == 0 else NOISY)
        before = seen(model, X)
        with pytest.raises(ValueError, match="y "):
            model.fit(OTHER_X, y)
        equal(seen(model, X), before)


def test_a_file_of_another_estimator_is_refused(tmp_path):
    LinearRegression("ridge", inference=QUICK).fit(X, NOISY).save(tmp_path / "model")
    with pytest.raises(ValueError, match="linear-LinearRegression"):
        LogisticRegression.load(tmp_path / "model")
