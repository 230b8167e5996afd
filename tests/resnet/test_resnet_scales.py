"""Scales by EM: closed forms are maxima, complexity priors are the core's, densities integrate."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import integrate, optimize, stats

import predcp
from predcp.resnet import (
    ECPLayers,
    FixedLayers,
    HalfCauchyLayers,
    HalfCauchyRows,
    HorseshoeLayers,
    InverseGammaLayers,
    Model,
    Network,
    Objective,
    PredCPLayers,
    ReluLayerComplexity,
    ReluLayerEvidence,
    as_layer_prior,
)
from predcp.resnet._branch import branch_moments
from predcp.resnet._complexity_priors import depth_complexity
from predcp.resnet._layer_priors import Comparison
from predcp.resnet._objective import divergences, expectation_step
from predcp.resnet._posterior import log_variance, row_divergence, start
from predcp.resnet._rows import ROWS, row_prior

COUNT = 30


def log_joint(prior, log_tau, moment):
    """`E log p(w | tau) + log p`, the prior in the coordinate whose mode the update finds."""
    density = float(prior.log_density(None, jnp.asarray([log_tau]), None))
    if isinstance(prior, HalfCauchyLayers):
        # The mode of sqrt(tau), not of tau.
        density += 0.5 * log_tau
    return -0.5 * COUNT * log_tau - 0.5 * moment * np.exp(-log_tau) + density


@pytest.mark.parametrize(
    "prior", [InverseGammaLayers(), InverseGammaLayers(0.5, 2.0), HalfCauchyLayers(0.3)]
)
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
    prior = HalfCauchyLayers(0.5)
    single = prior.closed_form(jnp.asarray([moment], jnp.float32), 2500)
    double = prior.closed_form(jnp.asarray([moment]), 2500)
    np.testing.assert_allclose(single, double, rtol=1e-5)


@pytest.mark.parametrize("prior", [InverseGammaLayers(), HalfCauchyLayers(0.3)])
def test_densities_integrate_to_one(prior):
    program = jax.jit(lambda u: prior.log_density(None, u[None], None) + u)

    def density(u):
        return np.exp(float(program(u)))

    total, _ = integrate.quad(density, -40.0, 40.0, limit=400)
    assert total == pytest.approx(1.0, abs=1e-6)


def comparison_of(network, classes=False, noise_draws=1, seed=0, precision=20.0):
    keys = jax.random.split(jax.random.key(seed), 5)
    shape = (noise_draws, network.layers, network.width, network.width)
    return Comparison(
        jax.nn.relu(jax.random.normal(keys[0], (12, network.width))),
        jax.random.uniform(keys[1], (network.layers, network.width), minval=0.2, maxval=2.0),
        0.4 * jax.random.normal(keys[2], (network.width, network.outputs)),
        jnp.zeros((network.width, network.outputs)),
        None if classes else jnp.asarray(precision),
        lambda: jax.random.normal(keys[3], shape),
    )


# Each choice by default, every combination of them with `make test-long`.
EARLY = {(1, True, None), (3, True, "layer"), (1, False, "layer"), (3, False, None)}


@pytest.mark.parametrize(
    "outputs,residual,normalize",
    [
        pytest.param(*each, marks=[] if each in EARLY else [pytest.mark.long])
        for each in itertools.product([1, 3], [True, False], [None, "layer"])
    ],
)
def test_one_layer_is_the_limit_of_many_draws_of_the_core(normalize, residual, outputs):
    network = Network(3, 6, 1, outputs, residual, normalize)
    comparison = comparison_of(network, noise_draws=20_000)
    complexity = depth_complexity(network, comparison)
    log_tau = jnp.asarray([-1.3])
    by_draw = np.exp(np.asarray(complexity.log_value_by_draw(log_tau)))[:, 0]
    error = by_draw.std() / np.sqrt(len(by_draw))
    exact = float(PredCPLayers().complexity(network, comparison)(jnp.exp(log_tau))[0])
    assert exact == pytest.approx(by_draw.mean(), abs=5.0 * error)
    assert error < 0.02 * exact


def test_output_weights_are_averaged_over():
    network = Network(3, 5, 1, 2)
    comparison = comparison_of(network)
    variance = 0.3 * jnp.ones_like(comparison.head_mean)
    heads = comparison.head_mean + jnp.sqrt(variance) * jax.random.normal(
        jax.random.key(9), (40_000, *variance.shape)
    )
    hidden, rows = comparison.hidden, comparison.row_variances[0]
    second = jax.vmap(
        lambda head: branch_moments(hidden, rows, head, jnp.zeros_like(head)).second()
    )
    seconds = jax.jit(second)(heads)
    exact = branch_moments(hidden, rows, comparison.head_mean, variance).second()
    assert float(exact) == pytest.approx(float(seconds.mean()), rel=0.02)


# Equally likely numbers with the mean absolute value and the variance of a standard normal.
_FAR, _NEAR = (np.sqrt(2.0 / np.pi) + sign * np.sqrt(1.0 - 2.0 / np.pi) for sign in (1.0, -1.0))
MATCHED = np.asarray([_FAR, -_FAR, _NEAR, -_NEAR])


@pytest.mark.parametrize("residual", [True, False])
def test_the_layer_map_is_the_depth_wise_map_without_noise(residual):
    """With noise whose moments are exact, the general map has no Monte Carlo error."""
    random = np.random.default_rng(4)
    hidden = np.stack([np.abs(random.normal(size=7)), np.zeros(7)], axis=1)
    head = random.normal(size=(2, 3))
    row_variances, precision = np.asarray([0.6, 1.7]), 3.0
    # Both units of the layer see the first hidden unit alone: every pair of numbers once.
    pairs = np.stack([each.ravel() for each in np.meshgrid(MATCHED, MATCHED)], axis=1)
    weights = np.zeros((16, 1, 2, 2))
    weights[:, 0, 0] = pairs * np.sqrt(row_variances[0])
    general = predcp.DepthComplexity(
        hidden,
        weights,
        head,
        lambda f: dist.Normal(f, precision**-0.5).to_event(1),
        residual=residual,
    )
    moments = branch_moments(
        jnp.asarray(hidden), jnp.asarray(row_variances), jnp.asarray(head), jnp.zeros((2, 3))
    )
    fast = ReluLayerComplexity(moments, jnp.asarray(precision))
    log_tau = jnp.asarray([-46.0, -3.0, 0.0, 2.0, 46.0])
    for ours, theirs in zip(
        fast.log_value_and_elasticity(log_tau),
        general.log_value_and_elasticity(log_tau[:, None]),
    ):
        np.testing.assert_allclose(ours, theirs[:, 0], rtol=1e-12, atol=1e-12)
    pi = predcp.LogCauchy(scale=0.7)
    np.testing.assert_allclose(
        predcp.ComplexityPrior(pi, fast).log_prob(jnp.asarray(0.3)),
        predcp.ComplexityPrior(pi, general).log_prob(jnp.asarray([0.3])),
        rtol=1e-12,
    )


def test_the_evidence_map_is_the_predictive_map_of_its_moments():
    random = np.random.default_rng(5)
    hidden, head = np.abs(random.normal(size=(7, 4))), random.normal(size=(4, 2))
    rows, precision = random.uniform(0.3, 2.0, 4), 3.0
    moments = branch_moments(*map(jnp.asarray, (hidden, rows, head, 0.1 + 0.0 * head)))
    mean = jnp.sqrt(jnp.outer(moments.power, moments.mean_squared))
    variance = jnp.outer(moments.power, moments.variance)

    def likelihood(theta, x):
        return dist.Normal(theta["mean"], jnp.sqrt(1.0 / precision + theta["variance"])).to_event(1)

    general = predcp.PredictiveComplexity(
        likelihood,
        lambda tau, xi: {"mean": jnp.sqrt(tau) * mean, "variance": tau * variance + 0.0 * xi},
        {"mean": 0.0 * mean, "variance": 0.0 * variance},
        None,
        jnp.zeros(1),
    )
    fast = ReluLayerEvidence(moments, jnp.asarray(precision))
    log_tau = jnp.asarray([-4.0, -1.0, 0.0, 2.0, 20.0])
    for ours, theirs in zip(
        fast.log_value_and_elasticity(log_tau), general.log_value_and_elasticity(log_tau)
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [ReluLayerComplexity, ReluLayerEvidence])
def test_the_layer_maps_keep_the_protocol(kind):
    random = np.random.default_rng(6)
    moments = branch_moments(
        *map(
            jnp.asarray,
            (
                np.abs(random.normal(size=(7, 4))),
                random.uniform(0.3, 2.0, 4),
                random.normal(size=(4, 2)),
                np.full((4, 2), 0.1),
            ),
        )
    )
    complexity = kind(moments, jnp.asarray(20.0))
    assert complexity.unit == "variance" and not complexity.bounded
    log_tau = jnp.linspace(-46.0, 46.0, 9)
    log_kappa, log_elasticity = complexity.log_value_and_elasticity(log_tau)
    np.testing.assert_allclose(complexity.log_inverse(log_kappa), log_tau, rtol=1e-9, atol=1e-9)
    program = jax.vmap(jax.grad(lambda u: complexity.log_value_and_elasticity(u)[0]))
    slope = jax.jit(program)(log_tau)
    np.testing.assert_allclose(jnp.exp(log_elasticity), slope, rtol=1e-9)
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity).log_scale()
    q = np.asarray(prior.cdf(prior.sample(jax.random.key(0), (2000,))))
    assert stats.kstest(q, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("layers,classes", [(3, False), (2, True)])
def test_the_predcp_of_several_layers_is_the_depth_wise_prior(layers, classes):
    network = Network(3, 6, layers, 3)
    comparison = comparison_of(network, classes, noise_draws=4)
    log_tau = jnp.linspace(-2.0, 1.0, layers)
    found = PredCPLayers(predcp.LogCauchy(scale=0.7)).log_density(network, log_tau, comparison)
    whole = predcp.ComplexityPrior(
        predcp.LogCauchy(scale=0.7), depth_complexity(network, comparison)
    )
    np.testing.assert_allclose(found, whole.log_prob(jnp.exp(log_tau)), rtol=1e-10)


@pytest.mark.parametrize("prior", [PredCPLayers(), ECPLayers()])
def test_complexity_priors_are_proper_and_single_precision_holds(prior):
    network = Network(3, 6, 1, 2)
    comparison = comparison_of(network)

    def densities(u, given):
        return jax.jit(jax.vmap(lambda v: prior.log_density(network, v[None], given)))(u)

    # Evenly spaced in the quantiles of a Cauchy: the integrand is nearly constant.
    q = (np.arange(4000) + 0.5) / 4000
    u = np.tan(np.pi * (q - 0.5))
    log_density = densities(jnp.asarray(u), comparison) + u
    total = np.mean(np.exp(np.asarray(log_density)) * np.pi * (1.0 + u**2))
    assert total == pytest.approx(1.0, abs=1e-3)
    single = jax.tree.map(
        lambda leaf: leaf if callable(leaf) else leaf.astype(jnp.float32), comparison
    )
    u = jnp.asarray([-40.0, -3.0, 0.0, 20.0])
    low, high = densities(u.astype(jnp.float32), single), densities(u, comparison)
    np.testing.assert_allclose(low, high, rtol=1e-4)


def test_the_evidence_is_the_divergence_between_moments():
    network = Network(3, 6, 1, 1)
    comparison = comparison_of(network)
    tau = 0.7
    moments = branch_moments(
        comparison.hidden,
        comparison.row_variances[0],
        comparison.head_mean,
        comparison.head_variance,
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
    found = ECPLayers().log_density(network, jnp.log(jnp.asarray([tau])), comparison)
    assert float(found) == pytest.approx(float(expected), rel=1e-6)


def test_the_closed_form_of_the_evidence_says_where_it_ends():
    network = Network(3, 4, 2)
    with pytest.raises(ValueError, match=r"depth=2.*got 2 of them; use 'predcp'"):
        ECPLayers().log_density(network, jnp.zeros(2), comparison_of(network))


def test_divergences_are_the_exact_ones():
    from numpyro.distributions import Normal, kl_divergence

    network = Network(2, 3, 1)
    model = Model(network, (InverseGammaLayers(),), ROWS)
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
    slope = jax.jit(jax.vmap(jax.grad(log_variance)))(spread)
    assert np.isfinite(slope).all() and slope[0] == 1.0
    assert np.isfinite(row_divergence(jnp.ones((1, 7)), spread[None], jnp.zeros(1))).all()


def test_em_is_a_coordinate_ascent():
    network = Network(2, 4, 2)
    model = Model(network, (InverseGammaLayers(),), ROWS)
    posterior = start(jax.random.key(1), network)

    def value(scales):
        body, head = divergences(model, posterior, scales)
        row_density = InverseGammaLayers(ROWS.shape, ROWS.scale).log_density
        rows = sum(float(row_density(None, part, None)) for part in (scales.body, scales.head))
        taus = float(InverseGammaLayers().log_density(None, scales.log_tau, None))
        return rows + taus - float(body.sum() + head.sum())

    values = []
    for _ in range(6):
        scales = expectation_step(model, posterior, Objective())
        values.append(value(scales))
        posterior = posterior._replace(log_tau=scales.log_tau)
    assert np.all(np.diff(values) > -1e-3) and values[-1] > values[0]


def test_the_public_codes_update_divides_by_lambda():
    network = Network(2, 4, 1)
    model = Model(network, (InverseGammaLayers(),), ROWS, quirks=True)
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
    assert as_layer_prior("fixed-0.1") == FixedLayers(0.1)
    assert as_layer_prior("predcp") is as_layer_prior("predcp")
    assert isinstance(as_layer_prior(predcp.Exponential(mean=0.5)), PredCPLayers)
    assert (
        isinstance(row_prior(HorseshoeLayers()), HalfCauchyRows)
        and row_prior(PredCPLayers()) is ROWS
    )
    for bad in ("fixed-x", "gamma", 3, "fixed--1"):
        with pytest.raises(ValueError, match="scale_prior must be a predcp.resnet prior"):
            as_layer_prior(bad)
    for make in (
        lambda: FixedLayers(0.0),
        lambda: InverseGammaLayers(-1.0),
        lambda: HalfCauchyLayers(np.inf),
    ):
        with pytest.raises(ValueError, match="must be positive and finite"):
            make()
    with pytest.raises(ValueError, match="pi must be a distribution"):
        PredCPLayers("log-cauchy")
