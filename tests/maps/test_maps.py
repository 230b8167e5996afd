"""One protocol for every public map: value, derivative, inverse, supremum, pytree, one trace."""

from functools import cache, cached_property

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.catalogue import (
    ALL_MAPS,
    ROOM_MAPS,
    SCALAR_MAPS,
    SIGNED_MAPS,
    VECTOR_MAPS,
    names,
    public_maps,
)
from tests.evaluations import evaluations

import predcp

LOG_TAU = jnp.linspace(-12.0, 4.0, 9)
MAPS = cache(lambda name: {**ALL_MAPS, **ROOM_MAPS, **SIGNED_MAPS}[name]())


class Case:
    """A map, scales, and one compiled program of what the tests ask of the map there."""

    def __init__(self, name):
        self.name, self.complexity, self.traces = name, MAPS(name), 0
        self.log_tau = LOG_TAU
        shape = self.complexity.batch_shape + self.complexity.event_shape
        if shape:
            self.log_tau = LOG_TAU[:, None] * jnp.linspace(0.5, 1.0, shape[0])
        self.size = self.log_tau[0].size
        self.program = jax.jit(self._evaluate)

    def _evaluate(self, complexity, log_tau):
        self.traces += 1
        tau = jnp.exp(log_tau)
        kappa = complexity(tau)
        log_kappa, log_slope = complexity.log_value_and_slope(log_tau)
        return {
            "kappa": kappa,
            "log_kappa": log_kappa,
            "log_slope": log_slope,
            "log_det": complexity.log_abs_det_jacobian(tau, kappa),
            "log_supremum": complexity.log_supremum(log_tau),
            "jacobian": jax.vmap(jax.jacfwd(complexity))(tau),
            "twice_inverted": complexity.inv.inv(tau),
        }

    @cached_property
    def found(self):
        """The program's results for the map itself, every scale in a row of its own."""
        return jax.tree.map(np.asarray, self.program(self.complexity, self.log_tau))

    @property
    def jacobian(self):
        return self.found["jacobian"].reshape(-1, self.size, self.size)


@pytest.fixture(scope="module", params=names([*ALL_MAPS, *ROOM_MAPS]))
def case(request):
    return Case(request.param)


def test_the_catalogue_has_every_public_map():
    assert public_maps() >= {"TabulatedComplexity", "ProgramComplexity", "ChainComplexity"}
    made = [MAPS(name) for name in (*ALL_MAPS, *ROOM_MAPS, *SIGNED_MAPS)]
    assert public_maps() - {type(complexity).__name__ for complexity in made} == set()
    for complexity in made:
        # None: a parameter of flexibility is no scale of an effect.
        assert complexity.unit in ("variance", "standard deviation", "coefficient", None)


def test_a_map_without_a_unit_says_so():
    class Nameless(predcp.ScalarComplexity):
        def bind(self):
            return lambda log_tau: (log_tau, 0.0)

    with pytest.raises(NotImplementedError, match="Nameless must state the unit of its scale"):
        Nameless().unit  # noqa: B018


def test_slope_is_the_derivative_of_the_value(case):
    kappa, slope = case.found["kappa"], np.exp(case.found["log_slope"])
    expected = np.einsum("nii->ni", case.jacobian).reshape(kappa.shape) * np.exp(case.log_tau)
    np.testing.assert_allclose(slope, expected, rtol=2e-7)
    # Later scales never move earlier divergences.
    np.testing.assert_array_equal(np.triu(case.jacobian, 1), 0.0)


def test_finite_differences_agree(case):
    step = 1e-5
    elasticity = np.exp(case.found["log_slope"] - case.found["log_kappa"])
    for index in range(case.size):
        move = step * (jnp.arange(case.size) == index).reshape(case.log_tau.shape[1:])
        ahead, behind = (
            case.program(case.complexity, case.log_tau + sign * move)["log_kappa"]
            for sign in (1.0, -1.0)
        )
        difference = (ahead - behind).reshape(9, -1)[:, index] / (2 * step)
        got = elasticity.reshape(9, -1)[:, index]
        np.testing.assert_allclose(got, difference, rtol=1e-5, atol=1e-9)


def test_inverse_of_the_value_is_the_argument(case):
    tau, kappa = np.exp(case.log_tau), case.found["kappa"]
    back = case.complexity.inv(kappa)
    # Where D has saturated the argument is lost, but not the value.
    again = case.program(case.complexity, jnp.log(back))["kappa"]
    np.testing.assert_allclose(again, kappa, rtol=1e-10)
    clear = kappa < 0.99 * np.exp(case.found["log_supremum"])
    np.testing.assert_allclose(back[clear], tau[clear], rtol=1e-8)


@pytest.mark.parametrize("name", names(SCALAR_MAPS))
def test_few_evaluations_invert_the_usual_quantiles(name):
    complexity = MAPS(name)
    q = jnp.asarray([0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999])
    bound = complexity.log_supremum(jnp.zeros(()))
    targets = []
    for pi in (
        predcp.LogCauchy(scale=1.0),
        predcp.Gamma(shape=0.2, scale=2.0),
        predcp.Exponential(mean=0.5),
    ):
        below = jnp.exp(pi.log_cdf_log(bound)) if complexity.bounded else 1.0
        targets.append(pi.icdf_log(q * below))
    assert int(evaluations(complexity, jnp.concatenate(targets)).max()) <= 12


def test_below_the_supremum_and_increasing(case):
    log_kappa = case.found["log_kappa"]
    assert np.all(log_kappa <= case.found["log_supremum"] + 1e-12)
    if not case.complexity.event_dim:
        assert np.all(np.diff(log_kappa, axis=0) >= 0.0)
    assert np.isfinite(case.complexity.supremum).any() == (
        case.complexity.bounded and not case.name.startswith("depth")
    )


def test_a_rebuilt_map_is_not_traced_again(case):
    leaves, structure = jax.tree.flatten(case.complexity)
    first = case.found["log_kappa"]
    for factor in (0.9, 1.1):
        rebuilt = jax.tree.unflatten(structure, [factor * leaf for leaf in leaves])
        moved = case.program(rebuilt, case.log_tau)["log_kappa"]
        assert not leaves or np.any(moved != first)
    assert case.traces == 1


def test_transform_contract(case):
    complexity, kappa = case.complexity, case.found["kappa"]
    shape = case.log_tau[4].shape
    assert complexity.sign == 1
    assert complexity.forward_shape(shape) == kappa[4].shape == complexity.inverse_shape(shape)
    assert complexity.domain.event_dim == complexity.codomain.event_dim == complexity.event_dim
    assert bool(jnp.all(complexity.codomain(kappa)))
    _, expected = np.linalg.slogdet(case.jacobian)
    # Of a batch of maps, one determinant for each.
    log_det = case.found["log_det"].reshape(9, -1).sum(-1)
    np.testing.assert_allclose(log_det, expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(case.found["twice_inverted"], kappa)
    assert complexity == complexity and complexity != 1


@pytest.mark.parametrize("name", names([*VECTOR_MAPS, "coin", "linear"]))
def test_inverse_is_differentiable_in_every_leaf(name):
    case = Case(name)
    leaves, structure = jax.tree.flatten(case.complexity)
    log_kappa, _ = case.complexity.log_value_and_slope(case.log_tau[5])

    @jax.jit
    @jax.value_and_grad
    def invert(move):
        moved = [
            leaf + move * jnp.cos(jnp.arange(leaf.size).reshape(leaf.shape)) for leaf in leaves
        ]
        return jnp.sum(jnp.sin(jax.tree.unflatten(structure, moved).log_inverse(log_kappa)))

    step = 1e-6
    _, slope = invert(0.0)
    difference = (invert(step)[0] - invert(-step)[0]) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-5)
