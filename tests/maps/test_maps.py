"""One protocol for every public map: value, derivative, inverse, supremum, pytree, one trace."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.catalogue import ALL_MAPS, SCALAR_MAPS, SIGNED_MAPS, VECTOR_MAPS, names, public_maps

import predcp

LOG_TAU = jnp.linspace(-12.0, 4.0, 9)


def arguments(complexity):
    if not complexity.event_dim:
        return LOG_TAU
    return LOG_TAU[:, None] * jnp.linspace(0.5, 1.0, complexity.event_shape[0])


def test_the_catalogue_has_every_public_map():
    made = {type(make()) for make in {**ALL_MAPS, **SIGNED_MAPS}.values()}
    assert public_maps() - made == set()
    for make in {**ALL_MAPS, **SIGNED_MAPS}.values():
        # None: a parameter of flexibility is no scale of an effect.
        assert make().unit in ("variance", "standard deviation", "coefficient", None)


def test_a_map_without_a_unit_says_so():
    class Nameless(predcp.ScalarComplexity):
        def bind(self):
            return lambda log_tau: (log_tau, 0.0)

    with pytest.raises(NotImplementedError, match="Nameless must state the unit of its scale"):
        Nameless().unit  # noqa: B018


@pytest.mark.parametrize("name", names(ALL_MAPS))
def test_slope_is_the_derivative_of_the_value(name):
    complexity = ALL_MAPS[name]()
    size = complexity.event_shape[0] if complexity.event_dim else 1

    def value(log_tau):
        return complexity.log_value_and_slope(log_tau)[0]

    derivative = jax.jit(jax.jacfwd(value))
    for log_tau in arguments(complexity):
        log_kappa, log_slope = complexity.log_value_and_slope(log_tau)
        jacobian = np.reshape(derivative(log_tau), (size, size))
        np.testing.assert_allclose(
            np.exp(log_slope - log_kappa), np.diag(jacobian).reshape(log_slope.shape), rtol=2e-7
        )
        # Later scales never move earlier divergences.
        np.testing.assert_array_equal(np.triu(jacobian, 1), 0.0)


@pytest.mark.parametrize("name", names(ALL_MAPS))
def test_finite_differences_agree(name):
    complexity = ALL_MAPS[name]()
    program = jax.jit(lambda c, u: c.log_value_and_slope(u))
    step = 1e-5
    for log_tau in arguments(complexity)[::2]:
        for index in range(log_tau.size):
            move = step * (jnp.arange(log_tau.size) == index).reshape(log_tau.shape)
            ahead, behind = program(complexity, log_tau + move), program(complexity, log_tau - move)
            here = program(complexity, log_tau)
            slope = np.exp(np.ravel(here[1] - here[0]))[index]
            difference = np.ravel(ahead[0] - behind[0])[index] / (2 * step)
            np.testing.assert_allclose(slope, difference, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", names(ALL_MAPS))
def test_inverse_of_the_value_is_the_argument(name):
    complexity = ALL_MAPS[name]()
    tau = jnp.exp(arguments(complexity))
    kappa = complexity(tau)
    back = complexity.inv(kappa)
    # Where D has saturated the argument is lost, but not the value.
    np.testing.assert_allclose(complexity(back), kappa, rtol=1e-10)
    clear = kappa < 0.99 * jnp.exp(complexity.log_supremum(jnp.log(tau)))
    np.testing.assert_allclose(back[clear], tau[clear], rtol=1e-8)


@pytest.mark.parametrize("name", names(SCALAR_MAPS))
def test_few_evaluations_invert_the_usual_quantiles(name):
    complexity = SCALAR_MAPS[name]()
    q = jnp.asarray([0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999])
    bound = complexity.log_supremum(jnp.zeros(()))
    for pi in (
        predcp.LogCauchy(scale=1.0),
        predcp.Gamma(shape=0.2, scale=2.0),
        predcp.Exponential(mean=0.5),
    ):
        below = jnp.exp(pi.log_cdf_log(bound)) if complexity.bounded else 1.0
        assert int(complexity.evaluations(pi.icdf_log(q * below)).max()) <= 12


@pytest.mark.parametrize("name", names(ALL_MAPS))
def test_below_the_supremum_and_increasing(name):
    complexity = ALL_MAPS[name]()
    grid = arguments(complexity)
    log_kappa, _ = complexity.log_value_and_slope(grid)
    assert np.all(log_kappa <= complexity.log_supremum(grid) + 1e-12)
    if not complexity.event_dim:
        assert np.all(np.diff(log_kappa) >= 0.0)
    assert np.isfinite(complexity.supremum).any() == (
        complexity.bounded and not name.startswith("depth")
    )


@pytest.mark.parametrize("name", names(ALL_MAPS))
def test_a_rebuilt_map_is_not_traced_again(name):
    complexity = ALL_MAPS[name]()
    traces = []

    @jax.jit
    def evaluate(complexity, log_tau):
        traces.append(None)
        return complexity.log_value_and_slope(log_tau)

    leaves, structure = jax.tree.flatten(complexity)
    log_tau = arguments(complexity)[2]
    evaluate(complexity, log_tau)
    for factor in (0.9, 1.1):
        rebuilt = jax.tree.unflatten(structure, [factor * leaf for leaf in leaves])
        evaluate(rebuilt, log_tau)
    assert len(traces) == 1


@pytest.mark.parametrize("name", names(ALL_MAPS))
def test_transform_contract(name):
    complexity = ALL_MAPS[name]()
    tau = jnp.exp(arguments(complexity)[4])
    kappa = complexity(tau)
    assert complexity.sign == 1
    assert complexity.forward_shape(tau.shape) == kappa.shape == complexity.inverse_shape(tau.shape)
    assert complexity.domain.event_dim == complexity.codomain.event_dim == complexity.event_dim
    assert bool(jnp.all(complexity.codomain(kappa)))
    log_det = complexity.log_abs_det_jacobian(tau, kappa)
    jacobian = jax.jit(jax.jacfwd(complexity))(tau)
    expected = np.log(np.abs(np.linalg.det(np.reshape(jacobian, (tau.size, tau.size)))))
    np.testing.assert_allclose(log_det, expected, rtol=1e-7)
    np.testing.assert_allclose(complexity.inv.inv(tau), kappa)
    assert complexity == complexity and complexity != 1


@pytest.mark.parametrize("name", names([*VECTOR_MAPS, "coin", "linear"]))
def test_inverse_is_differentiable_in_every_leaf(name):
    complexity = ALL_MAPS[name]()
    leaves, structure = jax.tree.flatten(complexity)
    log_kappa, _ = complexity.log_value_and_slope(arguments(complexity)[5])

    def invert(move):
        moved = [
            leaf + move * jnp.cos(jnp.arange(leaf.size).reshape(leaf.shape)) for leaf in leaves
        ]
        return jnp.sum(jnp.sin(jax.tree.unflatten(structure, moved).log_inverse(log_kappa)))

    slope = jax.jit(jax.grad(invert))(0.0)
    step, invert = 1e-6, jax.jit(invert)
    difference = (invert(step) - invert(-step)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-5)
