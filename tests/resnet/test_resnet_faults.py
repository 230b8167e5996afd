"""Extremes: deep networks at any scale in single precision, hardly any data, a great deal of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from predcp.resnet import (
    FixedLayers,
    Model,
    Network,
    Objective,
    ResNetClassifier,
    ResNetRegressor,
    as_layer_prior,
)
from predcp.resnet._layers import layer_program
from predcp.resnet._rows import ROWS
from predcp.resnet._training import Data, Optimiser, programs, seed_words

QUICK = {"width": 6, "epochs": 5, "samples": 2, "prediction_samples": 8}


def rows(count=64, columns=3, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((count, columns)).astype(np.float32)
    return Data(jnp.asarray(x), jnp.asarray(x[:, 0] ** 2 - 1.0))


@pytest.mark.parametrize(
    "prior,normalize",
    [
        ("predcp", None),
        ("fixed", "layer"),
        pytest.param("predcp", "layer", marks=pytest.mark.long),
        pytest.param("fixed", None, marks=pytest.mark.long),
    ],
)
def test_25_layers_at_any_scale(prior, normalize):
    network = Network(3, 10, 25, normalize=normalize)
    data = rows()
    scales = np.array([1e-8, 1e-4, 1.0, 1e2], np.float32)
    chosen = tuple(FixedLayers(float(tau)) for tau in scales)
    if prior == "predcp":
        chosen = (as_layer_prior("predcp"),)
    model = Model(network, chosen, ROWS, samples=2)
    program = programs(model, Optimiser(), 32, many=True)
    choice = np.arange(4) if prior == "fixed" else np.zeros(4)
    objective = Objective(
        jnp.asarray(choice, jnp.int32),
        *(jnp.full(4, value, jnp.float32) for value in (1.0 / 64, 0.0, 0.0, 0.0, 0.0)),
    )
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), data)
    state = program.start(jnp.stack([seed_words(0)] * 4), jnp.log(scales))
    state = program.advance(state, stacked, objective, 10)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.posterior))
    assert np.isfinite(state.objective).all()
    figures = layer_program(model, many=True)(
        state.posterior, objective, stacked.x, jnp.stack([seed_words(1)] * 4)
    )
    assert np.isfinite(figures.effect).all() and not np.isnan(figures.kappa).any()
    if prior == "fixed":
        np.testing.assert_allclose(figures.tau, np.repeat(scales[:, None], 25, 1), rtol=1e-5)


def test_one_row():
    x, y = np.array([[1.0, 2.0]]), np.array([3.0])
    model = ResNetRegressor(**QUICK).fit(x, y)
    mean, deviation = model.predict(np.array([[1.0, 2.0], [50.0, -3.0]]), return_std=True)
    assert np.isfinite(mean).all() and (deviation > 0.0).all()


@pytest.mark.parametrize("noise", ["learned", 20.0])
def test_a_constant_target(noise):
    x = np.random.default_rng(0).standard_normal((40, 2))
    model = ResNetRegressor(**QUICK | {"epochs": 300, "learning_rate": 0.02}, noise=noise)
    model.fit(x, np.full(40, 1e6))
    np.testing.assert_allclose(model.predict(x), 1e6, atol=0.5)
    assert 0.0 < model.noise_std_ <= 1.0


def test_columns_that_never_vary_and_huge_units():
    x = np.random.default_rng(0).standard_normal((40, 3)) * [1e12, 1e-12, 1.0]
    x[:, 2] = 7.0
    model = ResNetRegressor(**QUICK).fit(x, x[:, 0] * 1e12)
    assert np.isfinite(model.predict(x)).all()


def test_nan_and_one_class_are_refused():
    x = np.ones((6, 2))
    with pytest.raises(ValueError, match="NaN"):
        ResNetRegressor(**QUICK).fit(np.where(np.eye(6, 2), np.nan, x), np.arange(6.0))
    with pytest.raises(ValueError, match="one class only"):
        ResNetClassifier(**QUICK).fit(x, np.zeros(6))


def test_memory_is_flat_in_the_rows():
    model = Model(Network(3, 10, 1), (as_layer_prior("predcp"),), ROWS, samples=2)
    program = programs(model, Optimiser(), 32, many=False)
    objective = Objective(0, 1e-5)
    taken = []
    for count in (1000, 100_000):
        state = program.start(seed_words(0), jnp.zeros((), jnp.float32))
        compiled = program.advance.lower(state, rows(count), objective, 1).compile()
        taken.append(compiled.memory_analysis().temp_size_in_bytes)
    # The order of the rows is all that grows: a few words a row.
    assert taken[1] - taken[0] < 100_000 * 40


@pytest.mark.long
def test_a_hundred_thousand_rows():
    generator = np.random.default_rng(0)
    x = generator.standard_normal((100_000, 3))
    y = np.sin(x[:, 0]) + 0.1 * generator.standard_normal(100_000)
    model = ResNetRegressor(**QUICK | {"epochs": 1, "width": 20}).fit(x, y)
    assert model.score(x, y) > 0.9
