"""kappa of modules in one pass against the core's map, module by module."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import predcp
from predcp.fewshot import (
    ChainComplexity,
    ConvNet,
    DenseNet,
    PredCPModules,
    Rates,
    Settings,
    ShrinkageModules,
    module_noise,
)
from predcp.fewshot._objective import Meta, predcp_log_density, shrinkage_log_density
from predcp.fewshot._runs import run_values

KEY = jax.random.key(0)


def problem(network, shape, draws=2, points=6):
    theta, shared = network.init(KEY, shape)
    x = network.prepare(jax.random.normal(jax.random.key(1), (points, *shape)))
    return theta, shared, x, module_noise(jax.random.key(2), theta, draws)


CONV = ConvNet(ways=3, channels=4, blocks=2, precision="highest")
DENSE = DenseNet(ways=3, widths=(5,), precision="highest")
SMALL = ConvNet(ways=3, channels=2, blocks=1, precision="highest")
CASES = [(SMALL, (4, 4, 2)), (DENSE, (4,))]


def core_map(network, theta, shared, x, noise):
    return predcp.ModularComplexity(
        lambda own, x: dist.Categorical(logits=network.logits(own, shared, x)), theta, x, noise
    )


# The core keeps modules in the order of a sorted dictionary.
def in_core_order(network, complexity, values):
    return jnp.asarray(values)[
        jnp.asarray([network.module_names.index(name) for name in complexity.module_names])
    ]


def fast_map(network, parts):
    return ChainComplexity(network, *parts)


@pytest.mark.parametrize(
    "network,shape,log_sigma", [(*CASES[0], [-1.0, 0.5]), (*CASES[1], [2.0, 1.0])]
)
def test_values_and_slopes_are_the_cores(network, shape, log_sigma):
    parts = problem(network, shape)
    general = core_map(network, *parts)
    fast = fast_map(network, parts)
    assert fast.unit == "variance" and fast.batch_shape == (2,)
    log_tau = 2.0 * jnp.asarray(log_sigma)
    # Names of both networks are in the core's order.
    assert general.module_names == network.module_names
    for ours, theirs in zip(
        fast.log_value_and_elasticity(log_tau), general.log_value_and_elasticity(log_tau)
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        fast.log_supremum(log_tau), general.log_supremum(log_tau), rtol=1e-3, atol=1e-7
    )
    # A batch of scales is a scale at a time.
    grid = jnp.stack([log_tau, log_tau - 1.0, log_tau + 0.5])
    together = fast.log_value_and_elasticity(grid)
    for row in range(3):
        alone = fast.log_value_and_elasticity(grid[row])
        np.testing.assert_allclose([part[row] for part in together], alone, rtol=1e-12)


def test_the_inverse_and_samples_keep_the_protocol():
    fast = fast_map(DENSE, problem(DENSE, (4,)))
    log_tau = jnp.asarray([[-40.0, -2.0], [-3.0, 1.0], [0.0, 2.0]])
    log_kappa, _ = fast.log_value_and_elasticity(log_tau)
    np.testing.assert_allclose(fast.log_inverse(log_kappa), log_tau, rtol=1e-7, atol=1e-7)
    prior = predcp.ComplexityPrior(predcp.Exponential(mean=0.5), fast).log_scale()
    assert prior.batch_shape == (2,) and prior.event_shape == ()
    q = np.asarray(prior.cdf(prior.sample(jax.random.key(3), (400,))))
    for column in q.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


def test_each_module_moves_alone():
    theta, shared, x, noise = problem(CONV, (8, 8, 3))
    log_sigma = jnp.asarray([-1.0, 0.3, -0.5])
    found = ChainComplexity(CONV, theta, shared, x, noise)(jnp.exp(2.0 * log_sigma))
    predictions = jax.jit(lambda own: CONV.logits(own, shared, x))
    start = dist.Categorical(logits=predictions(theta))
    for index, name in enumerate(CONV.module_names):
        totals = []
        for draw in range(2):
            own = jax.tree.map(
                lambda phi, xi, index=index, draw=draw: phi + jnp.exp(log_sigma[index]) * xi[draw],
                theta[name],
                noise[name],
            )
            moved = dist.Categorical(logits=predictions({**theta, name: own}))
            totals.append(predcp.kl(moved, start).mean())
        np.testing.assert_allclose(found[index], np.mean(totals), rtol=1e-9)


@pytest.mark.parametrize("kind,precision", [(jnp.float32, "highest"), (jnp.float64, "default")])
def test_tiny_scales_keep_their_digits(kind, precision):
    """kappa falls as tau however small the scale: its elasticity is 1, and nothing is lost."""
    network = ConvNet(ways=3, channels=4, blocks=2, precision=precision)
    parts = problem(network, (8, 8, 3))
    theta, shared, x, noise = jax.tree.map(lambda leaf: leaf.astype(kind), parts)
    log_sigma = jnp.asarray([-9.0, -14.0, -25.0], kind)
    complexity = ChainComplexity(network, theta, shared, x, noise)
    log_tau = jnp.broadcast_to(2.0 * log_sigma[:, None], (3, 3))
    log_kappa, log_elasticity = complexity.log_value_and_elasticity(log_tau)
    kappas = np.asarray(log_kappa, np.float64)
    expected = kappas[-1] + 2.0 * (np.asarray(log_sigma, np.float64)[:, None] + 25.0)
    np.testing.assert_allclose(kappas, expected, atol=5e-3)
    np.testing.assert_allclose(log_elasticity[-1], 0.0, atol=1e-3)


def test_large_scales_saturate_at_the_supremum():
    complexity = fast_map(CONV, problem(CONV, (8, 8, 3)))
    log_tau = jnp.full(3, 18.0)
    log_kappa, log_elasticity = complexity.log_value_and_elasticity(log_tau)
    np.testing.assert_allclose(log_kappa, complexity.log_supremum(log_tau), rtol=0.02, atol=0.02)
    assert np.all(np.isfinite(log_elasticity))


# By default the map is held to the core's above.
@pytest.mark.long
@pytest.mark.parametrize("network,shape,truncate", [(*CASES[0], False), (*CASES[1], True)])
def test_the_density_is_the_cores_prior(network, shape, truncate):
    theta, shared, x, _ = problem(network, shape)
    settings = Settings(ways=3, noise_draws=2, truncate=truncate)
    prior = PredCPModules("exponential", 0.1)
    run, densities = run_values([prior], network.module_names, [Rates()])
    run = jax.tree.map(lambda leaf: leaf[0], run)
    log_sigma = jnp.asarray([-1.0, 0.4])
    key = jax.random.key(7)

    def ours(theta, log_sigma):
        meta = Meta(theta, shared, log_sigma)
        return predcp_log_density(densities, run, network, settings, meta, x, key)

    def theirs(theta, log_sigma):
        noise = module_noise(key, theta, 2)
        complexity = core_map(network, theta, shared, x, noise)
        core = predcp.ComplexityPrior(predcp.Exponential(mean=0.5), complexity, truncate=truncate)
        return core.log_prob(jnp.exp(2.0 * in_core_order(network, complexity, log_sigma)))

    value, slopes = jax.jit(jax.value_and_grad(ours, (0, 1)))(theta, log_sigma)
    core_value, core_slopes = jax.jit(jax.value_and_grad(theirs, (0, 1)))(theta, log_sigma)
    rtol = 1e-3 if truncate else 1e-6
    np.testing.assert_allclose(value, core_value, rtol=rtol)
    np.testing.assert_allclose(slopes[1], core_slopes[1], rtol=1e-6, atol=1e-8)
    if not truncate:
        head = slopes[0]["head"]["weight"]
        np.testing.assert_allclose(head, core_slopes[0]["head"]["weight"], rtol=1e-5, atol=1e-8)


def test_the_prior_can_be_kept_from_what_tasks_share():
    theta, shared, x, _ = problem(SMALL, (4, 4, 2))
    settings = Settings(ways=3)
    log_sigma = jnp.zeros(2)
    slopes = {}
    for into_shared in (True, False):
        prior = PredCPModules("log-cauchy", 1.0, into_shared=into_shared)
        run, densities = run_values([prior], SMALL.module_names, [Rates()])
        run = jax.tree.map(lambda leaf: leaf[0], run)

        def density(meta, run=run, densities=densities):
            return predcp_log_density(densities, run, SMALL, settings, meta, x, KEY)

        slopes[into_shared] = jax.jit(jax.value_and_grad(density))(Meta(theta, shared, log_sigma))
    np.testing.assert_allclose(slopes[True][0], slopes[False][0])
    np.testing.assert_allclose(slopes[True][1].log_sigma, slopes[False][1].log_sigma)
    assert np.abs(slopes[True][1].theta["conv1"]["weight"]).max() > 0.0
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(slopes[False][1].theta))


@pytest.mark.parametrize("pi", ["half-cauchy", "log-cauchy", "gem", "exponential"])
@pytest.mark.parametrize("measure", [None, "variance", "log"])
def test_shrinkage_is_a_density_of_sigma(pi, measure):
    options = {} if measure is None else {"measure": measure}
    prior = ShrinkageModules(pi, modules=("conv2", "head"), **options)
    run, densities = run_values([prior], CONV.module_names, [Rates()])
    run = jax.tree.map(lambda leaf: leaf[0], run)
    sigma = np.asarray([0.3, 1.7, 4.0])
    own = np.asarray(predcp.fewshot.HYPERPRIORS[pi].log_prob(sigma))
    # Densities of sigma, of sigma^2 and of log sigma, up to constants.
    power = {None: 0.0, "variance": -1.0, "log": 1.0}[measure]
    wanted = np.sum((own + power * np.log(sigma))[1:])
    ours = shrinkage_log_density(densities, run, jnp.log(sigma))
    np.testing.assert_allclose(ours, wanted, rtol=1e-10)
