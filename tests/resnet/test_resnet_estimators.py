"""The estimators keep scikit-learn's contract, and do what their own adds to it."""

import json
import pickle

import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import predcp
from predcp._divergence_priors import prior_to_config
from predcp.resnet import (
    FixedLayers,
    InverseGammaLayers,
    PredCPLayers,
    Preset,
    ResNetClassifier,
    ResNetRegressor,
)
from predcp.resnet._complexity_priors import layer_prior_from_config

plt.switch_backend("Agg")

# One batch an epoch: enough for the checks that ask for a good score.
QUICK = {
    "depth": 2,
    "width": 8,
    "epochs": 60,
    "batch_size": 1000,
    "samples": 2,
    "learning_rate": 0.05,
    "prediction_samples": 16,
}


SHALLOW = QUICK | {"depth": 1}


@parametrize_with_checks([ResNetRegressor(**SHALLOW)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks([ResNetClassifier(**SHALLOW)])
def test_scikit_learn_contract_of_the_classifier(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks(
    [
        kind(prior, **QUICK)
        for kind in (ResNetRegressor, ResNetClassifier)
        for prior in ("predcp", "inverse-gamma")
    ]
)
def test_scikit_learn_contract_of_deeper_networks(estimator, check):
    check(estimator)


def waves(rows=120, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-2.0, 2.0, (rows, 2)) * [1.0, 100.0] + [0.0, 5.0]
    return x, 300.0 + 50.0 * np.sin(2.0 * x[:, 0]) + 5.0 * generator.standard_normal(rows)


def classes(count=3, **options):
    x, y = waves(**options)
    edges = np.quantile(y, np.linspace(0, 1, count + 1)[1:-1])
    return x, np.array([f"class {k}" for k in range(count)])[np.digitize(y, edges)]


LONGER = QUICK | {"width": 20, "epochs": 200, "batch_size": 40, "learning_rate": 0.02}


def _long(*values):
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


@pytest.mark.parametrize(
    "prior",
    [
        "predcp",
        "horseshoe",
        *_long("ecp", "inverse-gamma", "half-cauchy", "fixed-0.1", predcp.Exponential(mean=1.0)),
    ],
    # Not the address of an object: every worker must find the same names.
    ids=lambda prior: prior if isinstance(prior, str) else type(prior).__name__,
)
def test_every_prior_finds_the_signal(prior):
    # Half-Cauchy rows follow the weights down unless those may learn something first.
    preset = Preset(warmup=100) if prior == "horseshoe" else "paper"
    model = ResNetRegressor(prior, preset=preset, **LONGER).fit(*waves())
    assert model.score(*waves(seed=1)) > 0.8
    assert model.n_iter_ == 200 and model.history_.shape == (50, 5)


def test_by_default_the_divergence_rises_under_complexity_priors():
    def rise(prior, **options):
        model = ResNetRegressor(prior, **options)
        model.n_features_in_ = 2
        return model._objective(model._model(), 50).warmup

    assert rise("predcp") == 100.0 and rise("predcp", epochs=40) == 8.0
    assert rise("inverse-gamma") == 0.0 and rise("predcp", preset="paper") == 0.0


@pytest.mark.parametrize(
    "options",
    [
        {"preset": "public-code", "validation_fraction": 0.2, "patience": 50, "noise": 20.0},
        *_long(
            {"depth": 4, "normalize": "layer", "gradient": "local"},
            {"depth": 1},
            {"depth": 3, "residual": False},
            {"ard": False},
            {"preset": Preset(kl_weight=0.1)},
        ),
    ],
    ids=str,
)
def test_every_option_finds_the_signal(options):
    model = ResNetRegressor(**LONGER | options).fit(*waves())
    assert model.score(*waves(seed=1)) > 0.7
    layers = options.get("depth", 2) - 1
    assert len(model.summary().alive) == layers


def test_standard_deviations_cover_new_observations():
    model = ResNetRegressor(**LONGER | {"prediction_samples": 200}).fit(*waves(200))
    x, y = waves(1000, seed=3)
    mean, deviation = model.predict(x, return_std=True)
    assert 0.8 < np.mean(np.abs(y - mean) < 1.645 * deviation) < 0.99
    assert 2.0 < model.noise_std_ < 20.0
    draws = model.sample_predictions(x[:50], 400)
    assert draws.shape == (400, 50)
    np.testing.assert_allclose(
        draws.std(0) ** 2 + model.noise_std_**2, deviation[:50] ** 2, rtol=0.3
    )
    # A draw is one function: the same rows twice get the same values.
    again = model.sample_predictions(np.r_[x[:50], x[:50]], 3)
    np.testing.assert_allclose(again[:, :50], again[:, 50:], rtol=1e-5)


def test_classes_and_probabilities():
    model = ResNetClassifier("inverse-gamma", **LONGER).fit(*classes())
    x, y = classes(seed=1)
    assert model.score(x, y) > 0.7
    shares = model.predict_proba(x)
    np.testing.assert_allclose(shares.sum(1), 1.0)
    draws = model.sample_predictions(x, 5)
    assert draws.shape == (5, len(x), 3) and draws.std(0).max() > 0.0


@pytest.mark.parametrize(
    "prior",
    [
        PredCPLayers(predcp.Exponential(mean=0.25)),
        PredCPLayers(dist.HalfNormal(0.5)),
        predcp.LogCauchy(scale=0.5),
        FixedLayers(0.1),
        InverseGammaLayers(2.0, 3.0),
        "half-cauchy",
    ],
    ids=lambda prior: prior if isinstance(prior, str) else type(prior).__name__,
)
def test_a_saved_prior_is_the_same_prior(prior):
    config = json.loads(json.dumps(prior_to_config(prior)))
    again = layer_prior_from_config(config)
    assert type(again) is type(prior) and prior_to_config(again) == config
    if hasattr(prior, "pi"):
        kappa = np.asarray([0.1, 2.0])
        np.testing.assert_array_equal(again.pi.log_prob(kappa), prior.pi.log_prob(kappa))


def test_only_priors_are_made_from_a_saved_file():
    for config in (
        {"class": "Network", "parameters": {}},
        {"pi": "Popen", "parameters": {}},
        {"numpyro": "util", "parameters": {}},
    ):
        with pytest.raises(ValueError, match="no prior is called|numpyro has no distribution"):
            layer_prior_from_config(config)


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_saved_models_predict_the_same(kind, tmp_path):
    regressor = kind == "regressor"
    model = (ResNetRegressor if regressor else ResNetClassifier)(**SHALLOW)
    model.fit(*(waves() if regressor else classes()))
    x = waves(seed=1)[0]
    path = tmp_path / "model.safetensors"
    model.save(path)
    outputs = model.predict if regressor else model.predict_proba
    for again in (type(model).load(path), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(
            (again.predict if regressor else again.predict_proba)(x), outputs(x)
        )
        assert str(again.summary()) == str(model.summary())
        assert clone(again).get_params()["scale_prior"] == "predcp"
    with pytest.raises(ValueError, match="holds a"):
        (ResNetClassifier if regressor else ResNetRegressor).load(path)
    # Settings after the fit are for the next one, and a fit that fails changes nothing.
    before, report = outputs(x), str(model.summary())
    model.set_params(scale_prior="ecp", depth=3, width=50, random_state=7, gradient="none")
    wider, other = waves() if regressor else classes()
    with pytest.raises(ValueError, match="gradient must be one of"):
        model.fit(np.hstack([wider, wider]) * 100.0, other[::-1])
    assert model.n_features_in_ == 2 and str(model.summary()) == report
    model.save(path)
    again = type(model).load(path)
    assert again.get_params()["depth"] == 1 and again.get_params()["scale_prior"] == "predcp"
    for each in (model, again):
        np.testing.assert_array_equal(
            (each.predict if regressor else each.predict_proba)(x), before
        )


def test_the_layer_report_says_which_layers_are_alive():
    options = LONGER | {"depth": 3, "normalize": "layer"}
    report = ResNetRegressor("predcp", **options).fit(*waves()).summary()
    table = report.table
    assert list(table.index) == [1, 2] and table["alive"].any()
    assert (table[["tau", "acting_scale", "kappa"]] > 0.0).all().all()
    assert f"{table['alive'].sum()} of 2 hidden layers" in str(report)
    assert "<table" in report._repr_html_()
    ax = report.plot()
    assert len(ax.patches) == 2 and ax.get_yscale() == "log"
    assert report.plot(ax) is ax
    # A straight line needs no layer above the first.
    x = np.random.default_rng(0).standard_normal((100, 1))
    flat = ResNetRegressor("predcp", **options | {"noise": 20.0}).fit(x, 0.0 * x[:, 0] + 1.0)
    assert not flat.summary().alive.any()


def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path):
    x, y = waves()
    whole = ResNetRegressor(**QUICK).fit(x, y)
    stopped = ResNetRegressor(**QUICK, checkpoint=tmp_path / "fit.checkpoint")

    def stop(done, total):
        if done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped.set_params(progress=stop).fit(x, y)
    seen = []
    stopped.set_params(progress=lambda done, total: seen.append(done)).fit(x, y)
    assert seen[0] > 20 and seen[-1] == 60
    np.testing.assert_array_equal(stopped.predict(x), whole.predict(x))


@pytest.mark.parametrize(
    "options,words",
    [
        ({"depth": 0}, "depth must be a whole number"),
        ({"width": 2.5}, "width must be a whole number"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"scale_prior": "horse"}, "scale_prior must be a predcp.resnet prior"),
        ({"noise": "known"}, "noise must be 'learned' or a precision"),
        ({"noise": -1.0}, "positive precision"),
        ({"preset": "exact"}, "preset must be one of"),
        ({"gradient": "score"}, "gradient must be one of"),
        ({"gradient": "local", "preset": "public-code"}, "needs gradient='flipout'"),
        ({"normalize": "batch"}, 'normalize must be None or "layer"'),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"validation_fraction": 1.0}, "validation_fraction must be in"),
        ({"scale_prior": "ecp", "depth": 3}, "use 'predcp'"),
        ({"progress": 3}, "progress must be None, True or a function"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        ResNetRegressor(**QUICK | options).fit(*waves(10))
