"""Bad input: a clear error or a sound posterior, never a NaN."""

import numpy as np
import pytest

from predcp.linear import Laplace, LinearRegression, LogisticRegression

GENERATOR = np.random.default_rng(0)
X = GENERATOR.standard_normal((12, 3))
Y = (X[:, 0] > 0).astype(int)
QUICK = Laplace(draws=30)


def replaced(entry, value):
    changed = X.copy()
    changed[entry] = value
    return changed


REFUSED = [
    ((replaced((2, 1), np.nan), Y), {}, "NaN"),
    ((replaced((2, 1), np.inf), Y), {}, "infinity"),
    ((X, np.where(Y > 0, 1.0, np.nan)), {}, "NaN"),
    ((X[:, 0], Y), {}, "Expected 2D array, got 1D array"),
    ((X, Y[:-1]), {}, "inconsistent numbers of samples"),
    ((X[:, :0], Y), {}, "0 feature"),
    ((X[:1], Y[:1]), {}, "1 sample"),
    ((np.ones((12, 3)), Y), {}, "no column of X varies over its 12 rows"),
    ((X, Y, -np.ones(12)), {}, "Negative values"),
    ((X, Y, np.ones(3)), {}, "sample_weight.shape"),
    ((X, Y, np.eye(12)[0]), {}, "positive for at least two rows"),
    ((X, Y), {"prior": "laplace"}, "one of the names 'half-cauchy', 'ecp', 'predcp'"),
    ((X, Y), {"inference": "guess"}, "one of the names 'auto', 'nuts', 'gibbs', 'vi'"),
    ((X, Y), {"inference": Laplace}, "an object with a `sample"),
]


@pytest.mark.parametrize("model", [LinearRegression, LogisticRegression])
@pytest.mark.parametrize(("data", "options", "words"), REFUSED)
def test_refused_with_a_reason(model, data, options, words):
    with pytest.raises(ValueError, match=words):
        model(**{"inference": QUICK, **options}).fit(*data)


def test_one_class_and_numbers_for_classes_are_refused():
    with pytest.raises(ValueError, match="one class only"):
        LogisticRegression(inference=QUICK).fit(X, np.zeros(12))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        LogisticRegression(inference=QUICK).fit(X, X[:, 0])


@pytest.mark.parametrize("intercept", [True, False])
def test_gibbs_refuses_three_classes_by_name(intercept):
    model = LogisticRegression(inference="gibbs", fit_intercept=intercept)
    with pytest.raises(ValueError, match="two classes, got more classes; use inference='nuts'"):
        model.fit(X, np.arange(12) % 3)


def test_one_class_among_the_rows_that_count_is_refused():
    with pytest.raises(ValueError, match="one class only"):
        LogisticRegression(inference=QUICK).fit(X, Y, sample_weight=Y)


def test_a_constant_target_is_refused():
    with pytest.raises(ValueError, match="the same number in all 12 rows"):
        LinearRegression(inference=QUICK).fit(X, np.full(12, 3.3))


def test_other_columns_at_prediction_are_refused():
    model = LogisticRegression("ridge", inference=QUICK).fit(X, Y)
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(replaced((0, 0), np.nan))


HARD = {
    "separable": (X, Y),
    "separable by far": (1e6 * (2 * Y[:, None] - 1) + X, Y),
    "a constant column": (np.c_[X, np.full(12, 0.1)], Y),
    "equal columns": (np.c_[X, X, X], Y),
    "two rows": (X[:2] * [[1], [-1]], np.array([0, 1])),
    "a thousand columns and three rows": (
        GENERATOR.standard_normal((3, 1000)),
        np.array([0, 1, 1]),
    ),
    "huge numbers": (1e200 * X, Y),
    "tiny numbers": (1e-200 * X, Y),
    "one huge row": (np.r_[X, [[1e150] * 3]], np.r_[Y, 1]),
    "columns far from 0": (X + 1e9, Y),
    "zeros but for one entry": (np.eye(12)[:, :3], Y),
    "three classes of one row each": (X[:3], np.array([0, 1, 2])),
    "equal rows, other outcomes": (np.repeat(X[:2], 6, axis=0), np.tile([0, 1], 6)),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("prior", ["half-cauchy", pytest.param("predcp", marks=pytest.mark.long)])
@pytest.mark.parametrize("model", [LinearRegression, LogisticRegression])
def test_a_sound_posterior(model, prior, name):
    x, y = HARD[name]
    outcomes = y + 1e-3 * x[:, 0] / np.abs(x[:, 0]).max() if model is LinearRegression else y
    fitted = model(prior, inference=QUICK).fit(x, outcomes)
    assert np.isfinite(fitted.coef_).all() and np.isfinite(fitted.intercept_).all()
    probed = np.r_[x, 2 * x, 1e6 * x[:1]]
    if model is LogisticRegression:
        probabilities = fitted.predict_proba(probed)
        assert np.isfinite(probabilities).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    else:
        for numbers in fitted.predict(probed, return_std=True):
            assert np.isfinite(numbers).all()
    assert np.isfinite(fitted.summary().table[["median", "5%", "95%"]].to_numpy()).all()


def test_constant_columns_are_named_and_have_no_coefficient():
    import pandas

    frame = pandas.DataFrame(np.c_[X, np.full(12, 0.1)], columns=["a", "b", "c", "always"])
    model = LogisticRegression("ridge", inference=QUICK).fit(frame, Y)
    assert model.coef_[0, 3] == 0.0
    assert any("never vary and have coefficient 0: always" in n for n in model.summary().notes)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_targets_of_any_size(scale):
    y = X @ [1.0, 2.0, 0.0] + 0.1 * GENERATOR.standard_normal(12)
    model = LinearRegression("half-cauchy", inference=QUICK).fit(X, scale * y)
    np.testing.assert_allclose(model.predict(X) / scale, y, atol=0.6)


def test_data_on_a_straight_line():
    y = 3.0 * X[:, 0] - X[:, 1] + 5.0
    model = LinearRegression("half-cauchy", inference=QUICK).fit(X, y)
    np.testing.assert_allclose(model.coef_, [3.0, -1.0, 0.0], atol=0.02)
    _, deviation = model.predict(X, return_std=True)
    assert (deviation > 0.0).all() and (deviation < 0.05).all()


@pytest.mark.parametrize("name", ["separable", "a thousand columns and three rows"])
@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", [LinearRegression, LogisticRegression])
def test_a_sound_posterior_by_nuts(model, name):
    from predcp.linear import Nuts

    x, y = HARD[name]
    fitted = model(inference=Nuts(chains=2, warmup=200, draws=200)).fit(x, y)
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(fitted.predict(x)).all()
