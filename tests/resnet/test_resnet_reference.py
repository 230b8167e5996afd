"""NUTS as a reference, and functions from the prior."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy import stats

import predcp
from predcp.resnet import (
    Data,
    Model,
    Network,
    Preset,
    as_layer_prior,
    network_program,
    plot_prior_functions,
    prior_functions,
    sample_posterior,
)
from predcp.resnet._fit import fit
from predcp.resnet._predictive import predictor
from predcp.resnet._rows import ROWS
from predcp.resnet._training import Optimiser, seed_words

plt.switch_backend("Agg")


def curve(rows=25, seed=0):
    generator = np.random.default_rng(seed)
    x = np.linspace(-1.5, 1.5, rows)[:, None]
    y = np.tanh(2.0 * x[:, 0]) + 0.2 * generator.standard_normal(rows)
    return Data(jnp.asarray(x), jnp.asarray(y))


@pytest.mark.long
def test_nuts_and_the_variational_posterior_predict_alike():
    network = Network(1, 4, 1)
    model = Model(network, (as_layer_prior("predcp"),), ROWS, precision=25.0)
    data = curve()
    draws = sample_posterior(model, data, warmup=150, draws=150, chains=2)
    assert draws.log_tau.shape == (300, 1) and draws.divergences < 0.2
    assert np.isfinite(draws.rhat)
    reference = np.asarray(draws.outputs(network, data.x))[..., 0]
    single = Data(*(part.astype(jnp.float32) for part in data))
    fitted = fit(model, Optimiser(1e-2), single, Preset().objective(network, 25), 600, 25, 0)
    outputs = np.asarray(
        predictor(network, 200, many=False)(fitted.posterior, single.x, seed_words(0), 0.0)
    )[..., 0]
    # Mean-field means are close, and no wider than the noise of the data.
    assert np.sqrt(np.mean((outputs.mean(0) - reference.mean(0)) ** 2)) < 0.2
    assert np.sqrt(np.mean((reference.mean(0) - np.tanh(2.0 * data.x[:, 0])) ** 2)) < 0.15


@pytest.mark.long
def test_nuts_without_data_is_the_prior():
    network = Network(1, 2, 1)
    model = Model(network, (as_layer_prior("inverse-gamma"),), ROWS, precision=1e-6)
    data = Data(jnp.zeros((1, 1)), jnp.zeros(1))
    draws = sample_posterior(model, data, warmup=300, draws=1500, chains=1)
    # tau ~ IG(3, 3): mean 1.5, median of 1/tau that of a gamma(3) over 3.
    median = float(np.exp(np.median(draws.log_tau)))
    assert median == pytest.approx(3.0 / 2.674, rel=0.12)


@pytest.mark.parametrize("name", ["half-cauchy", "horseshoe", "fixed", "ecp"])
@pytest.mark.long
def test_nuts_runs_under_every_prior(name):
    prior = as_layer_prior(name)
    model = Model(Network(1, 3, 1), (prior,), ROWS, precision=None)
    draws = sample_posterior(model, curve(), warmup=200, draws=200, chains=2)
    assert np.isfinite(np.asarray(draws.log_tau)).all()
    assert np.isfinite(np.asarray(draws.log_precision)).all()


def test_nuts_knows_its_own_density():
    """The program's density against the parts it is made of, at a point."""
    network = Network(1, 2, 1)
    model = Model(network, (as_layer_prior("inverse-gamma"),), ROWS, precision=25.0)
    data = curve(5)
    point = {
        "row_variances_body": jnp.asarray([0.5, 1.0, 2.0]),
        "row_variances_head": jnp.asarray([0.7, 1.3]),
        "hidden_biases": jnp.asarray([[0.1, -0.2], [0.3, 0.0]]),
        "output_biases": jnp.asarray([0.4]),
        "xi_body": jnp.asarray([[0.5, -1.0], [0.2, 0.3], [-0.7, 1.1]]),
        "xi_head": jnp.asarray([[1.0], [-0.5]]),
        "log_tau_free": jnp.asarray([-0.6]),
    }
    found, _ = log_density(network_program, (model, data), {}, point)
    expected = sum(
        stats.norm.logpdf(np.asarray(point[name])).sum()
        for name in ("hidden_biases", "output_biases", "xi_body", "xi_head")
    )
    rows = np.r_[point["row_variances_body"], point["row_variances_head"]]
    expected += stats.invgamma.logpdf(rows, 3.0, scale=3.0).sum()
    # On the log scale, with its Jacobian.
    tau = np.exp(-0.6)
    expected += stats.invgamma.logpdf(tau, 3.0, scale=3.0) + np.log(tau)
    x, scales = np.asarray(data.x), np.sqrt(np.asarray(point["row_variances_body"]))
    body = np.asarray(point["xi_body"]) * (scales * [1.0, tau**0.5, tau**0.5])[:, None]
    head = np.asarray(point["xi_head"]) * np.sqrt([[0.7], [1.3]])
    first = np.maximum(x @ body[:1] + [0.1, -0.2], 0.0)
    top = first + np.maximum(first @ body[1:] + [0.3, 0.0], 0.0)
    outputs = (top @ head + 0.4)[:, 0]
    likelihood = stats.norm.logpdf(np.asarray(data.y), outputs, 0.2).sum()
    expected += likelihood
    assert float(found) == pytest.approx(float(expected), rel=1e-6)
    # At a temperature the likelihood alone counts more.
    cold, _ = log_density(network_program, (model, data), {"temperature": 0.2}, point)
    assert float(cold) == pytest.approx(float(expected + 4.0 * likelihood), rel=1e-6)


def test_temperatures_are_positive():
    model = Model(Network(1, 2, 1), (as_layer_prior("predcp"),), ROWS)
    with pytest.raises(ValueError, match="temperature must be positive"):
        sample_posterior(model, curve(), temperature=0.0)


def test_nuts_is_for_small_networks():
    model = Model(Network(1, 50, 1), (as_layer_prior("predcp"),), ROWS)
    with pytest.raises(ValueError, match="at most 2000 weights"):
        sample_posterior(model, curve())


GRID = np.linspace(-3.0, 3.0, 30)


@pytest.mark.parametrize("residual", [True, False])
def test_a_prior_on_no_complexity_gives_the_reference(residual):
    nearly_none = predcp.LogCauchy(scale=0.01, loc=-60.0)
    deep = prior_functions("predcp", 4, GRID, residual, functions=2, pi=nearly_none)
    if residual:
        shallow = prior_functions(
            "predcp", 1, GRID, residual, functions=2, pi=predcp.LogCauchy(scale=0.01, loc=-60.0)
        )
        # The first layer's weights are the same draws whatever lies above.
        np.testing.assert_allclose(deep, shallow, atol=1e-10)
        assert np.abs(deep).max() > 0.1
    else:
        assert np.abs(deep).max() < 1e-10


@pytest.mark.parametrize("prior", ["normal", "horseshoe", "predcp"])
def test_25_layers_stay_in_floating_point(prior):
    drawn = prior_functions(prior, 25, GRID, functions=3, width=20)
    assert drawn.shape == (3, 30) and np.isfinite(drawn).all()
    assert len(np.unique(drawn[:, 0])) == 3
    np.testing.assert_array_equal(drawn, prior_functions(prior, 25, GRID, functions=3, width=20))


def test_the_picture_of_prior_functions():
    figure = plot_prior_functions((2,), x=GRID, functions=2, width=10)
    assert len(figure.axes) == 3 and all(len(ax.lines) == 2 for ax in figure.axes)
    with pytest.raises(ValueError, match="prior must be one of"):
        prior_functions("cauchy", 2, GRID)
    with pytest.raises(ValueError, match="x must be finite"):
        prior_functions("normal", 2, np.zeros((2, 2)))
