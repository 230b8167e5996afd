"""A map of one's own: mistakes are named, and numbers may be plain Python ones."""

import jax.numpy as jnp
import numpy as np
import pytest

import predcp


class Own(predcp.ScalarComplexity):
    """`D = tau^2`, with whatever function the test gives."""

    unit = "variance"

    def __init__(self, evaluate):
        self.evaluate = evaluate

    def bind(self):
        return self.evaluate


class OwnVector(predcp.VectorComplexity):
    unit = "variance"
    event_shape = (2,)

    def bind_entry(self, entry, below):
        return lambda log_tau: 2.0 * log_tau


def prior(complexity):
    return predcp.ComplexityPrior(predcp.Exponential(mean=0.5), complexity)


@pytest.mark.parametrize("tau", [0.3, [0.3, 0.4], [0.3, 0.4, 0.5]], ids=["one", "two", "three"])
def test_a_forgotten_elasticity_is_named(tau):
    # Two values would unpack into a pair of their own.
    forgets = Own(lambda log_tau: 2.0 * log_tau)
    with pytest.raises(ValueError, match=r"Own\.bind must return .* the pair \(log D, log elas"):
        prior(forgets).log_prob(jnp.asarray(tau))


def test_other_wrong_results_are_named():
    cases = {
        "returned 3 values": Own(lambda log_tau: (log_tau, 0.0, 0.0)),
        r"got shapes \(2,\) and \(\)": Own(lambda log_tau: (jnp.stack([log_tau, log_tau]), 0.0)),
        "got NoneType": Own(None),
    }
    for match, complexity in cases.items():
        for method in ("log_prob", "icdf"):
            with pytest.raises(ValueError, match=match):
                getattr(prior(complexity), method)(0.3)
    with pytest.raises(ValueError, match=r"OwnVector\.bind_entry must return"):
        prior(OwnVector()).log_prob(jnp.ones(2))


def test_a_missing_method_is_named():
    class NoBind(predcp.ScalarComplexity):
        unit = "variance"

    class NoEntries(predcp.VectorComplexity):
        unit = "variance"
        event_shape = (2,)

    with pytest.raises(NotImplementedError, match=r"NoBind must define bind\(self\)"):
        prior(NoBind()).log_prob(0.3)
    with pytest.raises(NotImplementedError, match=r"NoEntries must define bind_entry\(self, entry"):
        prior(NoEntries()).log_prob(jnp.ones(2))


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda log_tau: (2.0 * log_tau, float(np.log(2.0))),
        lambda log_tau: (2.0 * log_tau, np.log(2.0)),
        lambda log_tau: (2.0 * log_tau[None], jnp.log(jnp.asarray([2.0]))),
    ],
    ids=["float", "numpy", "size one"],
)
def test_single_numbers_of_any_kind_serve(evaluate):
    own = prior(Own(evaluate))
    for tau in (0.3, [0.3, 0.4]):
        points = jnp.asarray(tau)
        # p(tau) = 2 exp(-2 tau^2) 2 tau.
        expected = np.log(4.0) + np.log(tau) - 2.0 * np.square(tau)
        np.testing.assert_allclose(own.log_prob(points), expected, rtol=1e-12)
        np.testing.assert_allclose(own.icdf(own.cdf(points)), tau, rtol=1e-10)


@pytest.mark.parametrize("unit", ["sd", "std", "variances"])
def test_a_unit_that_does_not_exist_is_refused(unit):
    with pytest.raises(ValueError, match=f'the unit of Abbreviated must be "variance".*{unit}'):
        type("Abbreviated", (predcp.ScalarComplexity,), {"unit": unit})
    own = Own(None)
    with pytest.raises(ValueError, match=f'the unit of Own must be "variance".*{unit}'):
        own.unit = unit
