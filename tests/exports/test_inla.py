"""Priors as INLA tables."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import predcp

DESIGN = jnp.asarray(np.random.default_rng(0).normal(size=(12, 2)))


def read(text):
    name, *numbers = text.split()
    assert name == "table:"
    theta, log_density = np.split(np.array(numbers, float), 2)
    assert np.all(np.diff(theta) > 0)
    return theta, log_density


@pytest.mark.parametrize("pi", [predcp.LogCauchy(scale=1.0), predcp.Exponential(mean=0.3)])
@pytest.mark.parametrize(
    # tau is a variance here: log tau = factor * theta.
    ("parameter", "factor"),
    [("log precision", -1.0), ("log standard deviation", 2.0), ("log variance", 1.0)],
)
def test_a_spline_through_the_table_is_the_log_density(pi, parameter, factor):
    prior = predcp.ComplexityPrior(pi, predcp.LinearEvidence(DESIGN))
    theta, log_density = read(prior.to_inla(parameter))
    between = np.linspace(theta[0], theta[-1], 3001)
    wanted = prior.log_scale().log_prob(jnp.asarray(factor * between)) + np.log(abs(factor))
    got = CubicSpline(theta, log_density)(between)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-3)
    mass = np.trapezoid(np.exp(got), between)
    left_out = 1.0 - abs(np.diff(prior.log_scale().cdf(jnp.asarray(factor * theta[[0, -1]]))))
    np.testing.assert_allclose(mass, 1.0 - left_out, atol=2e-3)


def test_what_cannot_be_written_is_refused():
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.LinearEvidence(DESIGN))
    with pytest.raises(ValueError, match="parameter must be one of log precision"):
        prior.to_inla("precision")
    with pytest.raises(ValueError, match="tail must be a probability"):
        prior.to_inla(tail=0.7)
    no_unit = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), predcp.PenalisedComplexity())
    if no_unit.complexity.unit is None:
        with pytest.raises(ValueError, match="needs the unit of tau"):
            no_unit.to_inla()
    batch = predcp.ComplexityPrior(predcp.HalfCauchy(jnp.ones(2)), predcp.LinearEvidence(DESIGN))
    with pytest.raises(ValueError, match="of one scale"):
        batch.to_inla()
