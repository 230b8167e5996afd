"""Ordered components: nested references, triangular Jacobian, exact density, and the depth-wise case."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats
from tests.catalogue import HIDDEN, OUTPUT, WEIGHTS

import predcp

_RANDOM = np.random.default_rng(11)
GROUP, SITE = np.asarray([0, 0, 1, 1, 2, 2, 0, 1]), np.asarray([0, 1, 0, 1, 0, 1, 2, 2])
NOISE = [jnp.asarray(_RANDOM.normal(size=(4, 3))), jnp.asarray(_RANDOM.normal(size=(4, 3)))]
TAU = jnp.asarray([0.3, 0.7])


def counts(theta, x):
    """Counts of groups and sites, whose log rates add up."""
    return dist.Poisson(jnp.exp(0.2 + theta[0][GROUP] + theta[1][SITE]))


def measurements(theta, x):
    return dist.Normal(1.0 + theta[0][GROUP] + theta[1][SITE], 0.5)


def root(tau, xi):
    return jnp.sqrt(tau) * xi


def centred(tau, xi):
    """An effect that is no power of its scale."""
    return jnp.sqrt(tau) * xi - 0.25 * tau


def both(tau, xi):
    return [jnp.sqrt(tau[0]) * xi[0], jnp.sqrt(tau[1]) * xi[1]]


def factors(likelihood=counts, parameters=(root, root), **options):
    return predcp.OrderedComplexity(likelihood, parameters, None, NOISE, **options)


def nested_poisson(tau, shapes=(root, root)):
    """Both divergences from two models each, as the definition has it."""
    effects = [np.asarray(f(t, xi)) for f, t, xi in zip(shapes, tau, NOISE)]
    effects = [effects[0][:, GROUP], effects[1][:, SITE]]
    start = np.full(effects[0].shape, 0.2)
    kappas = []
    for reference, model in (
        (start, start + effects[0]),
        (start + effects[0], start + effects[0] + effects[1]),
    ):
        p, q = np.exp(model), np.exp(reference)
        kappas.append(np.mean(p * (model - reference) - p + q))
    return np.asarray(kappas)


@pytest.mark.parametrize(
    "shapes",
    [
        (root, centred),
        pytest.param((root, root), marks=pytest.mark.long),
        pytest.param((centred, centred), marks=pytest.mark.long),
    ],
)
def test_values_are_those_of_nested_models(shapes):
    complexity = factors(parameters=shapes)
    np.testing.assert_allclose(complexity(TAU), nested_poisson(TAU, shapes), rtol=1e-11)
    grid = jnp.asarray([[0.1, 3.0], [2.0, 1e-3]])
    expected = [nested_poisson(tau, shapes) for tau in grid]
    np.testing.assert_allclose(complexity(grid), expected, rtol=1e-11)


def test_one_function_of_the_vector_is_the_same_map():
    together = factors(parameters=both, components=2, unit="variance")
    apart = factors()
    assert apart.unit == together.unit == "variance" and [power for power, _ in apart.powers] == [
        0.5,
        0.5,
    ]
    log_tau = jnp.asarray([[-30.0, -1.0], [-1.0, -30.0], [0.5, 1.0]])
    for ours, theirs in zip(
        together.log_value_and_elasticity(log_tau), apart.log_value_and_elasticity(log_tau)
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shapes", [(root, root), (centred, centred)])
def test_the_jacobian_is_triangular_and_its_determinant_the_slopes_product(shapes):
    complexity = factors(parameters=shapes)
    step = 1e-5
    columns = []
    for place in range(2):
        change = step * np.eye(2)[place] * np.asarray(TAU)
        gap = complexity(TAU + change) - complexity(TAU - change)
        columns.append(gap / (2.0 * step * TAU[place]))
    finite = np.stack(columns, axis=1)
    assert finite[0, 1] == 0.0 and finite[1, 0] != 0.0
    np.testing.assert_allclose(
        jax.jit(jax.jacobian(complexity))(TAU), finite, rtol=1e-7, atol=1e-12
    )
    sign, log_det = np.linalg.slogdet(finite)
    assert sign == 1.0
    np.testing.assert_allclose(
        complexity.log_abs_det_jacobian(TAU, complexity(TAU)), log_det, rtol=1e-7
    )


def test_gaussian_components_do_not_depend_on_those_before():
    complexity = factors(measurements)
    kappa = np.asarray(complexity(TAU))
    for place, index in ((0, GROUP), (1, SITE)):
        moved = np.sqrt(TAU[place]) * np.asarray(NOISE[place])[:, index]
        np.testing.assert_allclose(kappa[place], np.mean(moved**2) / 0.5, rtol=1e-12)
    far = complexity(jnp.asarray([1e20, 1e-20]))
    np.testing.assert_allclose(far, kappa * np.asarray([1e20, 1e-20]) / TAU, rtol=1e-12)


def test_weights_and_units_are_those_of_the_predictive_map():
    weights = jnp.asarray([2.0, 1.0, 1.0, 0.5, 1.0, 3.0, 1.0, 1.0])
    weighted = factors(measurements, weights=weights, per="row")
    for place, index in ((0, GROUP), (1, SITE)):
        squares = TAU[place] * NOISE[place][:, index] ** 2 / 0.5
        expected = jnp.mean(squares @ weights / weights.sum())
        np.testing.assert_allclose(weighted(TAU)[place], expected, rtol=1e-12)


@pytest.mark.parametrize(
    "shapes,dtype,rtol",
    [
        ((root, root), jnp.float32, 2e-4),
        ((centred, centred), jnp.float64, 1e-8),
        pytest.param((root, root), jnp.float64, 1e-8, marks=pytest.mark.long),
        pytest.param((centred, centred), jnp.float32, 2e-4, marks=pytest.mark.long),
    ],
)
def test_the_inverse_is_a_forward_substitution(dtype, rtol, shapes):
    noise = [each.astype(dtype) for each in NOISE]
    complexity = predcp.OrderedComplexity(counts, shapes, None, noise)
    log_tau = jnp.asarray([[-20.0, 0.5], [0.0, -20.0], [1.0, 1.0]], dtype)
    log_kappa, _ = complexity.log_value_and_elasticity(log_tau)
    assert log_kappa.dtype == dtype
    np.testing.assert_allclose(complexity.log_inverse(log_kappa), log_tau, rtol=rtol, atol=rtol)


def test_the_density_of_two_counts_components_integrates_to_one():
    prior = predcp.ComplexityPrior(predcp.Exponential(mean=0.5), factors()).log_scale()
    u = np.linspace(-24.0, 6.0, 241)
    grid = jnp.stack(jnp.meshgrid(u, u, indexing="ij"), axis=-1)
    density = np.exp(np.asarray(prior.log_prob(grid)))
    assert density.sum() * (u[1] - u[0]) ** 2 == pytest.approx(1.0, abs=1e-7)


def test_draws_have_the_conditional_distributions():
    prior = predcp.ComplexityPrior(predcp.Exponential(mean=0.5), factors())
    tau = prior.sample(jax.random.key(0), (2000,))
    for column in np.asarray(prior.cdf(tau)).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    np.testing.assert_allclose(
        np.quantile(prior.complexity(tau)[:, 1], 0.9), stats.expon(scale=0.5).ppf(0.9), rtol=0.1
    )
    simulate = jax.jit(jax.vmap(prior.complexity.simulate))
    seen = simulate(tau[:500], jax.random.split(jax.random.key(1), 500))
    assert seen.shape == (500, 8) and seen.min() >= 0


def test_a_bounded_divergence_is_truncated_given_the_scales_before():
    def coin(theta, x):
        return dist.Bernoulli(logits=0.3 + theta[0][GROUP] + theta[1][SITE])

    complexity = factors(coin, divergence=predcp.jensen_shannon)
    assert complexity.bounded
    log_tau = jnp.asarray([[0.0, 60.0], [2.0, 60.0]])
    log_kappa, _ = complexity.log_value_and_elasticity(log_tau)
    bound = complexity.log_supremum(log_tau)
    np.testing.assert_allclose(log_kappa[:, 1], bound[:, 1], atol=1e-6)
    assert bound[0, 1] != bound[1, 1]
    prior = predcp.ComplexityPrior(predcp.Exponential(mean=0.5), complexity).log_scale()
    for column in np.asarray(prior.cdf(prior.sample(jax.random.key(2), (1000,)))).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


def test_gradients_are_finite_and_right():
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), factors()).log_scale()
    log_tau = jnp.asarray([-0.4, 0.6])
    program = jax.jit(jax.value_and_grad(prior.log_prob))
    step = 1e-5
    finite = [
        (program(log_tau + step * e)[0] - program(log_tau - step * e)[0]) / (2.0 * step)
        for e in jnp.eye(2)
    ]
    np.testing.assert_allclose(program(log_tau)[1], finite, rtol=1e-6)
    for extreme in (-300.0, -20.0, 3.0):
        assert np.all(np.isfinite(program(jnp.full(2, extreme))[1]))


@pytest.mark.long
@pytest.mark.parametrize("softmax", [False, True])
def test_the_depth_wise_map_is_the_special_case_of_layers(softmax):
    """Layers as components: theta is the list of weight matrices, the draw's output weights noise."""

    def likelihood(theta, x):
        (first, output), *rest = theta
        hidden = HIDDEN
        for weights in (first, *rest):
            hidden = hidden + jax.nn.relu(hidden @ weights)
        outputs = hidden @ output
        if softmax:
            return dist.Categorical(logits=outputs)
        return dist.Normal(outputs, 1.0).to_event(1)

    def first(tau, xi):
        return jnp.sqrt(tau) * xi[0], xi[1]

    noise = [(WEIGHTS[:, 0], OUTPUT), WEIGHTS[:, 1], WEIGHTS[:, 2]]
    general = predcp.OrderedComplexity(likelihood, [first, root, root], None, noise)
    options = {"likelihood": lambda f: dist.Categorical(logits=f)} if softmax else {}
    depth = predcp.DepthComplexity(HIDDEN, WEIGHTS, OUTPUT, **options)
    log_tau = jnp.asarray([[-3.0, -1.0, 0.0], [-8.0, -4.0, -6.0]])
    for ours, theirs in zip(
        general.log_value_and_elasticity(log_tau), depth.log_value_and_elasticity(log_tau)
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        general.log_value_by_draw(log_tau[0]), depth.log_value_by_draw(log_tau[0]), rtol=1e-8
    )


@pytest.mark.parametrize(
    "change,message",
    [
        ({"likelihood": 1.0}, "likelihood must be a function"),
        ({"parameters": both}, "components must be the number of scales"),
        ({"parameters": [root, 3.0]}, r"parameters\[1\] must be a function"),
        ({"parameters": [root], "components": 2}, "parameters has 1 functions, components is 2"),
        ({"parameters": []}, "at least one"),
        ({"noise": NOISE[0]}, "noise must be a list of 2 pytrees"),
        ({"noise": [NOISE[0], NOISE[1][:2]]}, "component 1: noise must share a leading axis"),
        (
            {"noise": [NOISE[0], 0.0 * NOISE[1]]},
            "component 2: the predictions equal the reference's",
        ),
        ({"divergence": "kl"}, "divergence must be one of predcp's"),
        ({"unit": "precision"}, "unit must be"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"likelihood": counts, "parameters": [root, root], "x": None, "noise": NOISE}
    with pytest.raises(ValueError, match=message):
        predcp.OrderedComplexity(**{**arguments, **change})
