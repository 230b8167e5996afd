"""Priors as INLA tables, read and interpolated as R-INLA does."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.interpolate import CubicSpline
from tests.exports.test_stan import DESIGN, PIS, counts_map, effects

import predcp


def read(text):
    """Places and log densities: the words that are numbers, halved, as in `inla.write.hyper`."""
    name, *numbers = text.split()
    assert name == "table:" and len(numbers) % 2 == 0
    theta, log_density = np.split(np.array(numbers, float), 2)
    # R-INLA merges places that are nearer than this.
    assert np.all(np.diff(theta) > 1.5e-8)
    return theta, log_density


def interpolated(table, theta):
    """R-INLA's spline: GSL's `cspline`, whose second derivative is 0 at both ends."""
    return CubicSpline(*table, bc_type="natural")(theta)


def linear_map():
    return predcp.LinearEvidence(DESIGN)


# log tau = factor * theta, where tau is a variance and where it is a standard deviation.
VARIANCE = {"log precision": -1.0, "log standard deviation": 2.0, "log variance": 1.0}
DEVIATION = {name: 0.5 * factor for name, factor in VARIANCE.items()}
CASES = [
    *((linear_map, "log-cauchy", name, factor) for name, factor in VARIANCE.items()),
    *((counts_map, "half-cauchy", name, factor) for name, factor in DEVIATION.items()),
    *((linear_map, pi, "log precision", -1.0) for pi in PIS if pi != "log-cauchy"),
    *((counts_map, pi, "log precision", -0.5) for pi in PIS if pi != "half-cauchy"),
]


@pytest.mark.parametrize(
    ("complexity", "pi", "parameter", "factor"),
    CASES,
    ids=["-".join((case[0].__name__, *case[1:3])) for case in CASES],
)
def test_inlas_spline_through_the_table_is_the_log_density(complexity, pi, parameter, factor):
    prior = predcp.ComplexityPrior(PIS[pi], complexity())
    table = read(prior.to_inla(parameter))
    theta, log_density = table
    between = np.linspace(theta[0], theta[-1], 3001)
    wanted = prior.log_scale().log_prob(jnp.asarray(factor * between)) + np.log(abs(factor))
    got = interpolated(table, between)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-3)
    # R-INLA stops at places outside of the table, so it ends where nothing is left, or at 100.
    for end in (0, -1):
        assert abs(theta[end]) == 100.0 or log_density[end] < log_density.max() - 16.0
    # The table's integral is the probability between its ends, computed without it.
    inside = np.abs(np.diff(prior.log_scale().cdf(jnp.asarray(factor * theta[[0, -1]]))))
    middles = np.concatenate([theta, 0.5 * (theta[1:] + theta[:-1])])
    middles = np.sort(middles)
    mass = np.trapezoid(np.exp(interpolated(table, middles)), middles)
    np.testing.assert_allclose(mass, inside, rtol=0, atol=2e-3)


def test_a_table_of_the_precision_is_that_of_the_deviation_moved():
    """By hand: theta = -2 log(sd), so p(theta) = p(sd) |d sd / d theta| = p(sd) sd / 2."""
    prior = predcp.ComplexityPrior(PIS["half-cauchy"], effects(lambda eta: dist.Normal(eta, 1.0)))
    theta, log_density = read(prior.to_inla("log precision"))
    sd = np.exp(-0.5 * theta)
    inside = (sd > 1e-3) & (sd < 1e3)
    wanted = np.asarray(prior.log_prob(jnp.asarray(sd))) + np.log(0.5 * sd)
    np.testing.assert_allclose(log_density[inside], wanted[inside], rtol=0, atol=1e-6)


def test_single_precision_makes_a_table_too():
    with jax.enable_x64(False):
        linear = predcp.LinearEvidence(np.asarray(DESIGN, np.float32))
        prior = predcp.ComplexityPrior(predcp.HalfCauchy(0.4), linear)
        table = read(prior.to_inla())
    exact = predcp.ComplexityPrior(predcp.HalfCauchy(0.4), linear_map())
    theta, _ = table
    wanted = exact.log_scale().log_prob(jnp.asarray(-theta))
    np.testing.assert_allclose(interpolated(table, theta), wanted, rtol=0, atol=1e-3)


def test_what_cannot_be_written_is_refused():
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), linear_map())
    with pytest.raises(ValueError, match="parameter must be one of log precision"):
        prior.to_inla("precision")
    with pytest.raises(ValueError, match="tail must be a probability"):
        prior.to_inla(tail=0.7)
    unknown = predcp.PredictiveComplexity(
        lambda theta, g: dist.Normal(theta[g], 1.0),
        lambda tau, xi: tau**0.7 * xi,
        jnp.zeros(2),
        jnp.arange(2),
        jnp.ones((4, 2)),
    )
    with pytest.raises(ValueError, match="needs the unit of tau"):
        predcp.ComplexityPrior(PIS["half-cauchy"], unknown).to_inla()
    batch = predcp.ComplexityPrior(predcp.HalfCauchy(jnp.ones(2)), linear_map())
    with pytest.raises(ValueError, match="of one scale"):
        batch.to_inla()
