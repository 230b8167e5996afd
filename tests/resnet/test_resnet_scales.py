"""Scales by EM: closed forms are maxima, complexity priors are the core's, densities integrate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize

import predcp
from predcp.resnet import (
    Evidence,
    FixedScale,
    HalfCauchyScale,
    Horseshoe,
    InverseGamma,
    Model,
    Network,
    Objective,
    Predictive,
    as_scale_prior,
)
from predcp.resnet._branch import branch_moments
from predcp.resnet._objective import divergences, expectation_step
from predcp.resnet._posterior import log_variance, row_divergence, start
from predcp.resnet._rows import ROWS, row_prior
from predcp.resnet._scale_priors import Setting, depth_complexity

COUNT = 30


def log_joint(prior, log_tau, moment):
    """`E log p(w | tau) + log p`, the prior in the coordinate whose mode the update finds."""
    density = float(prior.log_density(None, jnp.asarray([log_tau]), None))
    if isinstance(prior, HalfCauchyScale):
        # The mode of sqrt(tau), not of tau.
        density += 0.5 * log_tau
    return -0.5 * COUNT * log_tau - 0.5 * moment * np.exp(-log_tau) + density


@pytest.mark.parametrize("prior", [InverseGamma(), InverseGamma(0.5, 2.0), HalfCauchyScale(0.3)])
@pytest.mark.parametrize("moment", [1e-6, 0.1, 29.9999, 30.0, 1e5])
def test_closed_forms_are_maxima(prior, moment):
    found = float(prior.closed_form(jnp.asarray([moment]), COUNT)[0])
    best = optimize.minimize_scalar(
        lambda u: -log_joint(prior, u, moment),
        bounds=(-25.0, 15.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert found == pytest.approx(best.x, abs=2e-5)


@pytest.mark.parametrize("moment", [1e-12, 1e-4, 1.0, 1e6])
def test_the_half_cauchy_update_keeps_its_digits_in_single_precision(moment):
    prior = HalfCauchyScale(0.5)
    single = prior.closed_form(jnp.asarray([moment], jnp.float32), 2500)
    double = prior.closed_form(jnp.asarray([moment]), 2500)
    np.testing.assert_allclose(single, double, rtol=1e-5)


@pytest.mark.parametrize("prior", [InverseGamma(), HalfCauchyScale(0.3)])
def test_densities_integrate_to_one(prior):
    def density(u):
        return np.exp(float(prior.log_density(None, jnp.asarray([u]), None)) + u)

    total, _ = integrate.quad(density, -40.0, 40.0, limit=400)
    assert total == pytest.approx(1.0, abs=1e-6)


def setting_of(network, classes=False, draws=1, seed=0, precision=20.0):
    keys = jax.random.split(jax.random.key(seed), 5)
    shape = (draws, network.layers, network.width, network.width)
    return Setting(
        jax.nn.relu(jax.random.normal(keys[0], (12, network.width))),
        jax.random.uniform(keys[1], (network.layers, network.width), minval=0.2, maxval=2.0),
        0.4 * jax.random.normal(keys[2], (network.width, network.outputs)),
        jnp.zeros((network.width, network.outputs)),
        None if classes else jnp.asarray(precision),
        lambda: jax.random.normal(keys[3], shape),
    )


@pytest.mark.parametrize("normalize", [None, "layer"])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("outputs", [1, 3])
def test_one_layer_is_the_limit_of_many_draws_of_the_core(normalize, residual, outputs):
    network = Network(3, 6, 1, outputs, residual, normalize)
    setting = setting_of(network, draws=20_000)
    complexity = depth_complexity(network, setting)
    log_tau = jnp.asarray([-1.3])
    by_draw = np.exp(np.asarray(complexity.log_value_by_draw(log_tau)))[:, 0]
    error = by_draw.std() / np.sqrt(len(by_draw))
    exact = np.exp(float(Predictive().log_kappa(network, log_tau, setting)[0]))
    assert exact == pytest.approx(by_draw.mean(), abs=5.0 * error)
    assert error < 0.02 * exact


def test_output_weights_are_averaged_over():
    network = Network(3, 5, 1, 2)
    setting = setting_of(network)
    variance = 0.3 * jnp.ones_like(setting.head_mean)
    heads = setting.head_mean + jnp.sqrt(variance) * jax.random.normal(
        jax.random.key(9), (40_000, *variance.shape)
    )
    hidden, rows = setting.hidden, setting.row_variances[0]
    seconds = jax.vmap(
        lambda head: branch_moments(hidden, rows, head, jnp.zeros_like(head)).second()
    )(heads)
    exact = branch_moments(hidden, rows, setting.head_mean, variance).second()
    assert float(exact) == pytest.approx(float(seconds.mean()), rel=0.02)


@pytest.mark.parametrize("layers,classes", [(1, False), (3, False), (2, True)])
def test_the_predcp_is_the_cores(layers, classes):
    network = Network(3, 6, layers, 3)
    setting = setting_of(network, classes, draws=4)
    log_tau = jnp.linspace(-2.0, 1.0, layers)
    prior = Predictive(predcp.LogCauchy(scale=0.7))
    found = prior.log_density(network, log_tau, setting)
    if layers == 1:
        kappa = prior.log_kappa(network, log_tau, setting)
        expected = predcp.LogCauchy(scale=0.7).log_prob_log(kappa).sum() - log_tau.sum()
    else:
        whole = predcp.ComplexityPrior(
            predcp.LogCauchy(scale=0.7), depth_complexity(network, setting)
        )
        expected = whole.log_prob(jnp.exp(log_tau))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("prior", [Predictive(), Evidence()])
def test_complexity_priors_are_proper_and_single_precision_holds(prior):
    network = Network(3, 6, 1, 2)
    setting = setting_of(network)

    # Evenly spaced in the quantiles of a Cauchy: the integrand is nearly constant.
    q = (np.arange(4000) + 0.5) / 4000
    u = np.tan(np.pi * (q - 0.5))
    log_density = jax.vmap(lambda v: prior.log_density(network, v[None], setting))(u) + u
    total = np.mean(np.exp(np.asarray(log_density)) * np.pi * (1.0 + u**2))
    assert total == pytest.approx(1.0, abs=1e-3)
    single = jax.tree.map(
        lambda leaf: leaf if callable(leaf) else leaf.astype(jnp.float32), setting
    )
    for u in (-40.0, -3.0, 0.0, 20.0):
        low = prior.log_density(network, jnp.asarray([u], jnp.float32), single)
        high = prior.log_density(network, jnp.asarray([u]), setting)
        np.testing.assert_allclose(low, high, rtol=1e-4)


def test_the_evidence_is_the_divergence_between_moments():
    network = Network(3, 6, 1, 1)
    setting = setting_of(network)
    tau = 0.7
    moments = branch_moments(
        setting.hidden, setting.row_variances[0], setting.head_mean, setting.head_variance
    )
    noise = 1.0 / 20.0
    mean_squared = tau * np.outer(moments.power, moments.mean_squared)
    variance = tau * np.outer(moments.power, moments.variance)
    kl = 0.5 * ((noise + variance + mean_squared) / noise - 1.0 - np.log1p(variance / noise))
    kappa = kl.sum(1).mean()

    def log_kappa(u):
        t = np.exp(u)
        v, m = variance / tau * t, mean_squared / tau * t
        return np.log((0.5 * ((v + m) / noise - np.log1p(v / noise))).sum(1).mean())

    slope = (log_kappa(np.log(tau) + 1e-5) - log_kappa(np.log(tau) - 1e-5)) / 2e-5
    expected = predcp.LogCauchy(scale=1.0).log_prob_log(np.log(kappa)) + np.log(slope) - np.log(tau)
    found = Evidence().log_density(network, jnp.log(jnp.asarray([tau])), setting)
    assert float(found) == pytest.approx(float(expected), rel=1e-6)


def test_the_closed_form_of_the_evidence_says_where_it_ends():
    network = Network(3, 4, 2)
    with pytest.raises(ValueError, match=r"depth=2.*got 2 of them; use 'predcp'"):
        Evidence().log_density(network, jnp.zeros(2), setting_of(network))


def test_divergences_are_the_exact_ones():
    from numpyro.distributions import Normal, kl_divergence

    network = Network(2, 3, 1)
    model = Model(network, (InverseGamma(),), ROWS)
    posterior = start(jax.random.key(0), network)
    scales = expectation_step(model, posterior, Objective())
    body, head = divergences(model, posterior, scales)
    sd = jnp.exp(0.5 * (scales.body + network.of_rows(scales.log_tau)))[:, None]
    q = Normal(posterior.mean.body, jnp.sqrt(jax.nn.softplus(posterior.spread.body)))
    np.testing.assert_allclose(
        body, kl_divergence(q, Normal(0.0, jnp.broadcast_to(sd, (5, 3)))).sum(-1), rtol=1e-4
    )
    assert head.shape == (3,)


def test_the_divergence_of_a_tiny_variance_is_right():
    spread = jnp.asarray([-200.0, -100.0, -16.0, -15.0, -14.0, 0.0, 50.0], jnp.float32)
    exact = [-200.0, -100.0, -16.0, -15.0, np.log(np.log1p(np.exp(-14.0))), np.log(np.log(2.0))]
    found = log_variance(spread)
    np.testing.assert_allclose(found[:6], exact, rtol=1e-6)
    assert found[6] == pytest.approx(np.log(50.0))
    slope = jax.vmap(jax.grad(log_variance))(spread)
    assert np.isfinite(slope).all() and slope[0] == 1.0
    assert np.isfinite(row_divergence(jnp.ones((1, 7)), spread[None], jnp.zeros(1))).all()


def test_em_is_a_coordinate_ascent():
    network = Network(2, 4, 2)
    model = Model(network, (InverseGamma(),), ROWS)
    posterior = start(jax.random.key(1), network)

    def value(scales):
        body, head = divergences(model, posterior, scales)
        rows = sum(float(ROWS.log_density(None, part, None)) for part in (scales.body, scales.head))
        taus = float(InverseGamma().log_density(None, scales.log_tau, None))
        return rows + taus - float(body.sum() + head.sum())

    values = []
    for _ in range(6):
        scales = expectation_step(model, posterior, Objective())
        values.append(value(scales))
        posterior = posterior._replace(log_tau=scales.log_tau)
    assert np.all(np.diff(values) > -1e-3) and values[-1] > values[0]


def test_the_public_codes_update_divides_by_lambda():
    network = Network(2, 4, 1)
    model = Model(network, (InverseGamma(),), ROWS, quirks=True)
    posterior = start(jax.random.key(1), network)._replace(log_tau=jnp.asarray([3.0], jnp.float32))
    scales = expectation_step(model, posterior, Objective(updates=1.0))
    moments = np.asarray(posterior.mean.body**2 + jax.nn.softplus(posterior.spread.body))[2:]
    rows = moments.sum(1)
    # lambda never sees tau, and tau divides by lambda instead of lambda^2.
    squared = (6.0 + rows) / (4 + 8)
    np.testing.assert_allclose(np.exp(scales.body[2:]), squared, rtol=1e-5)
    tau = (6.0 + (rows / np.sqrt(squared)).sum()) / (16 + 8)
    np.testing.assert_allclose(np.exp(scales.log_tau), tau, rtol=1e-5)


def test_names_of_priors():
    assert as_scale_prior("fixed-0.1") == FixedScale(0.1)
    assert as_scale_prior("predcp") is as_scale_prior("predcp")
    assert isinstance(as_scale_prior(predcp.Exponential(mean=0.5)), Predictive)
    assert isinstance(row_prior(Horseshoe()), HalfCauchyScale) and row_prior(Predictive()) is ROWS
    for bad in ("fixed-x", "gamma", 3, "fixed--1"):
        with pytest.raises(ValueError, match="scale_prior must be one of"):
            as_scale_prior(bad)
    for make in (
        lambda: FixedScale(0.0),
        lambda: InverseGamma(-1.0),
        lambda: HalfCauchyScale(np.inf),
    ):
        with pytest.raises(ValueError, match="must be positive and finite"):
            make()
    with pytest.raises(ValueError, match="pi must be a prior on a divergence"):
        Predictive("log-cauchy")
