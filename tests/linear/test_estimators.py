"""The estimators keep scikit-learn's contract, and do what their own adds to it."""

import pickle

import jax
import numpy as np
import numpyro.distributions as dist
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
        LogisticRegression("ridge", inference=QUICK),
        LinearRegression("ridge", inference=QUICK),
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


def regression(rows=40, columns=6, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((rows, columns)) * np.arange(1, columns + 1) + 3.0
    predictor = 2.0 * x[:, 0] - 0.7 * x[:, 1]
    return x, predictor, generator


def numeric(**options):
    x, predictor, generator = regression(**options)
    return x, 50.0 + 10.0 * predictor + 5.0 * generator.standard_normal(len(x))


def classes(count, **options):
    x, predictor, generator = regression(**options)
    noisy = predictor + generator.logistic(size=len(x))
    edges = np.quantile(noisy, np.linspace(0, 1, count + 1)[1:-1])
    return x, np.array([f"class {k}" for k in range(count)])[np.digitize(noisy, edges)]


FITS = {
    "linear": lambda **options: LinearRegression(**options).fit(*numeric()),
    "two classes": lambda **options: LogisticRegression(**options).fit(*classes(2)),
    "three classes": lambda **options: LogisticRegression(**options).fit(*classes(3)),
}


def predictions(model, x):
    return model.predict_proba(x) if hasattr(model, "predict_proba") else model.predict(x)


@pytest.mark.parametrize("name", FITS)
def test_saved_and_pickled_models_predict_the_same(name):
    model = FITS[name](prior="half-cauchy", inference=Laplace(draws=50))
    x = numeric(seed=1)[0]
    arrays, values = model.to_state()
    for again in (type(model).from_state(arrays, values), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(predictions(again, x), predictions(model, x))
        np.testing.assert_array_equal(again.coef_, model.coef_)
        assert again.summary().notes == model.summary().notes
    with pytest.raises(AttributeError, match="needs the training data"):
        _ = type(model).from_state(arrays, values).posterior_


@pytest.mark.parametrize("name", FITS)
def test_coefficients_are_in_the_units_of_the_columns(name):
    model = FITS[name](prior="half-cauchy", inference=Laplace(draws=50))
    x = numeric(seed=1)[0]
    predictor = x @ model.coef_.T + model.intercept_
    draws = np.concatenate(list(model._predictors(x)))
    if name == "linear":
        np.testing.assert_allclose(predictor, model.predict(x), rtol=1e-10)
    else:
        np.testing.assert_allclose(np.squeeze(predictor), draws.mean(axis=1), rtol=1e-8)


def test_units_do_not_matter():
    x, y = numeric()
    scale = 10.0 ** np.arange(-3, 3)
    model = LinearRegression("half-cauchy", inference=Laplace(draws=50)).fit(x, y)
    other = LinearRegression("half-cauchy", inference=Laplace(draws=50))
    other.fit(x * scale - 7.0, 1e6 * y)
    # Rounding moves the mode a little.
    np.testing.assert_allclose(other.coef_ * scale / 1e6, model.coef_, rtol=1e-3, atol=1e-3)


PRIORS = {
    **{name: name for name in ("predcp", "ecp", "half-cauchy", "regularised-horseshoe", "ridge")},
    "a divergence prior": predcp.LogCauchy(scale=2.0),
    "a distribution": dist.HalfNormal(1.0),
    "a function": lambda x, local_scales: dist.HalfCauchy(0.1),
}


@pytest.mark.parametrize("name", PRIORS)
def test_every_prior_and_any_object_finds_the_signal(name):
    x, y = classes(2, rows=80)
    new_x, new_y = classes(2, rows=300, seed=5)
    # Nobody predicts the noise.
    predictor = 2.0 * new_x[:, 0] - 0.7 * new_x[:, 1]
    best = np.mean((predictor > np.median(predictor)) == (new_y == "class 1"))
    model = LogisticRegression(PRIORS[name], inference=Laplace(draws=50)).fit(x, y)
    assert model.score(new_x, new_y) > best - 0.05


def test_the_same_seed_gives_the_same_answer_and_another_another():
    x, y = classes(2)
    one, same, other = (
        LogisticRegression("ridge", inference="laplace", random_state=seed).fit(x, y)
        for seed in (1, 1, 2)
    )
    one, same, other = (model.predict_proba(x) for model in (one, same, other))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(one, other, atol=0.05)


@pytest.mark.parametrize("container", [scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_sparse_is_dense(container):
    x, y = classes(2)
    model = LogisticRegression("ridge", inference=Laplace(draws=20))
    dense = clone(model).fit(x, y).predict_proba(x)
    np.testing.assert_array_equal(model.fit(container(x), y).predict_proba(container(x)), dense)


@pytest.mark.parametrize("name", ["linear", "two classes"])
def test_weights_are_repeats(name):
    x, y = numeric(rows=20) if name == "linear" else classes(2, rows=20)
    counts = np.random.default_rng(0).integers(0, 4, 20)
    model = LinearRegression if name == "linear" else LogisticRegression
    model = model("ridge", inference=Laplace(draws=400))
    weighted = clone(model).fit(x, y, sample_weight=counts)
    repeated = clone(model).fit(np.repeat(x, counts, axis=0), np.repeat(y, counts))
    # The same posterior; draws of a primal and of a dual form are other draws.
    ours, theirs = (m._original_units()["coef"].reshape(400, -1) for m in (weighted, repeated))
    np.testing.assert_allclose(ours.mean(0), theirs.mean(0), atol=0.15 * theirs.std(0).max())
    np.testing.assert_allclose(ours.std(0), theirs.std(0), rtol=0.15)


def test_standard_deviations_cover_new_observations():
    x, y = numeric(rows=60)
    model = LinearRegression(inference=Laplace(draws=300)).fit(x, y)
    new_x, new_y = numeric(rows=2000, seed=9)
    mean, deviation = model.predict(new_x, return_std=True)
    assert 0.85 < np.mean(np.abs(new_y - mean) < 1.645 * deviation) < 0.95
    assert model.score(new_x, new_y) > 0.8


def test_without_an_intercept_the_origin_is_fixed():
    x, y = numeric()
    model = LinearRegression("ridge", inference=Laplace(draws=20), fit_intercept=False)
    model.fit(np.c_[x, np.ones(len(x))], y)
    assert model.intercept_ == 0.0
    assert model.predict(np.zeros((1, 7))) == pytest.approx(0.0, abs=1e-9)
    # A constant column is an intercept then.
    assert model.coef_[-1] != 0.0


def test_progress_is_told():
    x, y = classes(2)
    seen = []
    model = LogisticRegression("ridge", inference=Laplace(draws=20))
    model.set_params(progress=lambda done, total: seen.append(done / total)).fit(x, y)
    assert seen[-1] == 1.0 and seen == sorted(seen)
    LogisticRegression("ridge", inference=Laplace(draws=20), progress=True).fit(x, y)
    with pytest.raises(ValueError, match="progress must be None, True or a function"):
        LogisticRegression("ridge", inference=Laplace(), progress=3).fit(x, y)


@pytest.mark.parametrize("name", FITS)
def test_single_precision(name):
    options = {"prior": "half-cauchy", "inference": Laplace(draws=50)}
    x = numeric(seed=1)[0]
    with jax.enable_x64(False):
        single = predictions(FITS[name](**options), x)
    # The approximation itself is in double precision; only the data are rounded.
    np.testing.assert_allclose(single, predictions(FITS[name](**options), x), rtol=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("inference", ["nuts", "vi", "laplace"])
def test_the_names_of_inferences(name, inference):
    model = FITS[name](inference=inference)
    x, y = numeric(seed=1) if name == "linear" else classes(2 + (name[1] == "h"), seed=1)
    assert model.score(x, y) > 0.5
