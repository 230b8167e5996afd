"""Families without a closed form, and what maps find out about the observations they are given."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
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
