"""Families without a closed form, and what maps find out about the observations they are given."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.special import i0e, i1e
from tests.divergences.test_references import own_registry  # noqa: F401  (a fixture)

import predcp

DESIGN = np.array([[0.8, -0.5], [-1.1, 0.3]])
NOISE = np.array([[0.6, -1.2], [-0.4, 0.9]])


def complexity(case, dtype="float64", **options):
    return predcp.PredictiveComplexity(
        lambda theta, x: case(x @ theta),
        lambda tau, xi: tau * xi,
        jnp.zeros(2, dtype),
        jnp.asarray(DESIGN, dtype),
        jnp.asarray(NOISE, dtype),
        **options,
    )


@pytest.mark.long
def test_one_line_teaches_a_family_and_diagnose_reports_the_error(own_registry):  # noqa: F811
    predcp.register_quadrature(dist.BetaBinomial, counts=12)
    made = complexity(lambda eta: dist.BetaBinomial(jnp.exp(eta), 2.0, 10), bounded=True)
    found = predcp.diagnose(predcp.ComplexityPrior(predcp.Exponential(mean=0.1), made))
    error = found.entries[0].quadrature_error
    # Six counts of ten are not enough: the coarse rule is far off, and says so.
    assert 1e-3 < error < 1.0
    assert "quadrature error" in str(found)
    assert abs(found.mass - 1.0) < 1e-3


def test_a_smooth_family_is_integrated_to_ten_digits_from_tiny_to_huge_scales():
    made = complexity(lambda eta: dist.Logistic(eta, 1.0))
    log_tau = jnp.log(10.0) * jnp.asarray([-20.0, -8.0, -3.0, 0.0, 3.0, 8.0, 20.0])
    log_kappa, log_elasticity = jax.jit(made.log_value_and_elasticity)(log_tau)
    shifts = (DESIGN @ NOISE.T).ravel()
    # Fisher information 1/3 near the reference, |shift| - 2 + O(shift e^-shift) far from it.
    near, far = np.mean(shifts**2) / 6.0, np.mean(np.abs(shifts))
    np.testing.assert_allclose(log_kappa[:2], np.log(near) + 2.0 * log_tau[:2], rtol=1e-12)
    expected = np.log(far * np.exp(log_tau[4:]) - 2.0)
    np.testing.assert_allclose(log_kappa[4], expected[0], rtol=1e-9)
    # Beyond a million the power law is continued.
    np.testing.assert_allclose(log_kappa[5:], expected[1:], rtol=1e-6)
    np.testing.assert_allclose(log_elasticity[:2], np.log(2.0), rtol=1e-10)
    assert float(made.quadrature_error(jnp.zeros(()))) < 1e-6
    assert np.isnan(complexity(lambda eta: dist.Normal(eta, 1.0)).quadrature_error(jnp.zeros(())))


def test_truncated_distributions_are_integrated():
    p, q = dist.TruncatedNormal(0.5, 1.2, low=-0.3), dist.TruncatedNormal(0.1, 1.0, low=-0.3)
    y = np.linspace(-0.3, 20.0, 400_001)
    log_p, log_q = np.asarray(p.log_prob(y)), np.asarray(q.log_prob(y))
    expected = np.trapezoid(np.exp(log_p) * (log_p - log_q), y)
    np.testing.assert_allclose(jax.jit(predcp.kl)(p, q), expected, rtol=1e-8)
    with pytest.raises(ValueError, match="same low"):
        predcp.kl(p, dist.TruncatedNormal(0.1, 1.0, low=0.0))


@pytest.mark.parametrize(
    "given,message",
    [
        ((dist.BetaBinomial,), "counts="),
        ((dist.Kumaraswamy,), "no quantiles"),
        ((dist.MultivariateNormal,), "parameter .* write the divergence|no quantiles"),
        ((3,), "NumPyro class"),
    ],
)
def test_what_cannot_be_integrated_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        predcp.register_quadrature(*given)
    with pytest.raises(ValueError, match="corner is 'median'"):
        predcp.register_quadrature(dist.Cauchy, corner="median")


@pytest.mark.skipif(not hasattr(dist, "HurdlePoisson"), reason="this NumPyro has no hurdles")
def test_a_gate_that_moves_alone_is_bounded():
    def made(gate, rate):
        return complexity(lambda eta: dist.HurdlePoisson(gate(eta), rate(eta))).bounded

    assert made(jax.nn.sigmoid, lambda eta: 2.0)
    assert not made(jax.nn.sigmoid, jnp.exp)


@pytest.mark.parametrize(
    "case",
    [
        lambda eta: dist.Normal(eta, 0.7),
        lambda eta: dist.StudentT(4.0, eta, 0.7),
        lambda eta: dist.NegativeBinomial2(jnp.exp(eta), 1.5),
        lambda eta: dist.Gamma(2.0, jnp.exp(eta)),
        lambda eta: dist.Beta(jnp.exp(eta), 2.0),
        lambda eta: dist.LogNormal(eta, 0.7),
        lambda eta: dist.Logistic(eta, 1.0),
    ],
)
def test_python_numbers_leave_a_map_in_single_precision(case):
    made = complexity(case, "float32")
    point = jax.ShapeDtypeStruct((), "float32")
    shapes = jax.eval_shape(made.log_value_and_elasticity, point)
    assert all(shape.dtype == jnp.float32 for shape in shapes)


@pytest.mark.long
def test_narrow_distributions_are_resolved():
    """A location counts in scales: by invariance for one, by the closed form for angles."""

    @jax.jit
    def program(moved, scale, concentration):
        narrow = predcp.kl(dist.Logistic(moved, scale), dist.Logistic(0.0 * moved, scale))
        angles = predcp.kl(
            dist.VonMises(moved, concentration), dist.VonMises(0.0 * moved, concentration)
        )
        return narrow, angles

    shift = jnp.asarray([0.1, 0.02, 0.1])
    scale, concentration = jnp.asarray([1e-3, 1e-3, 1.0]), jnp.asarray([1e6, 1e4, 2.0])
    narrow, angles = program(shift, scale, concentration)
    far = shift / scale
    np.testing.assert_allclose(narrow[:2], far[:2] - 2.0 + 2.0 * far[:2] / jnp.expm1(far[:2]), 1e-9)
    ratio = i1e(np.asarray(concentration)) / i0e(np.asarray(concentration))
    np.testing.assert_allclose(angles, ratio * concentration * (1.0 - np.cos(shift)), rtol=1e-9)


@pytest.mark.skipif(not hasattr(dist, "HurdlePoisson"), reason="this NumPyro has no hurdles")
@pytest.mark.parametrize("gated", ["ZeroInflatedDistribution", "HurdleDistribution"])
def test_bounded_counts_behind_a_gate_are_summed(gated):
    made = [
        getattr(dist, gated)(dist.Binomial(5, probs=probs), gate=gate)
        for gate, probs in ((0.3, 0.4), (0.5, 0.2))
    ]
    p, q = (np.exp(np.asarray(each.log_prob(jnp.arange(6)))) for each in made)
    known = predcp.kl, predcp.reverse_kl, predcp.squared_hellinger
    got = jax.jit(lambda p, q: [each(p, q) for each in known])(*made)
    gap = (np.sqrt(p) - np.sqrt(q)) ** 2 / 2
    expected = np.sum([p * np.log(p / q), q * np.log(q / p), gap], axis=1)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_a_location_on_a_circle_is_not_moved_by_a_scale():
    with pytest.raises(ValueError, match="moves loc of VonMises observations round the circle"):
        predcp.PredictiveComplexity(
            lambda theta, x: dist.VonMises(x * theta, 2.0),
            lambda tau, xi: tau * xi,
            jnp.zeros(()),
            jnp.ones(3),
            jnp.asarray([0.3, -1.2]),
        )
