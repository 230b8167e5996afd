"""Families by quadrature or fixed Monte Carlo: values, reported errors, every scale; censoring, masks."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import integrate
from tests.divergences.test_references import own_registry  # noqa: F401  (a fixture)
from tests.family_cases import like

import predcp
from predcp._divergences._divergence import families

DIVERGENCES = (predcp.kl, predcp.reverse_kl, predcp.squared_hellinger, predcp.jensen_shannon)
DESIGN = np.array([[0.8, -0.5], [-1.1, 0.3]])
NOISE = np.array([[0.6, -1.2], [-0.4, 0.9]])

# By name: the distribution at eta, the ends of its support, whether D grows at every scale.
CASES = {
    "Logistic": (lambda e: dist.Logistic(e, jnp.exp(0.5 * e)), (-200.0, 200.0), True),
    "SoftLaplace": (lambda e: dist.SoftLaplace(e, like(e, 0.8)), (-150.0, 150.0), True),
    "AsymmetricLaplace": (
        lambda e: dist.AsymmetricLaplace(e, like(e, 0.8), like(e, 1.4)),
        (-150.0, 150.0),
        True,
    ),
    "AsymmetricLaplaceQuantile": (
        lambda e: dist.AsymmetricLaplaceQuantile(e, like(e, 0.8), like(e, 0.3)),
        (-150.0, 150.0),
        True,
    ),
    "Gompertz": (lambda e: dist.Gompertz(like(e, 0.7), jnp.exp(e)), (0.0, 40.0), True),
    "VonMises": (
        lambda e: dist.VonMises(like(e, 0.3), jnp.exp(0.5 * e) * 2.0),
        (-np.pi, np.pi),
        False,
    ),
    "TruncatedNormal": (
        lambda e: dist.TruncatedNormal(e, like(e, 0.8), low=-0.5),
        (-0.5, 40.0),
        False,
    ),
    "TwoSidedTruncatedCauchy": (
        lambda e: dist.TruncatedCauchy(e, like(e, 0.8), low=-1.0, high=2.0),
        (-1.0, 2.0),
        False,
    ),
    "RightTruncatedLaplace": (
        lambda e: dist.RightTruncatedDistribution(dist.Laplace(0.3 * e, like(e, 0.8)), high=1.0),
        (-100.0, 1.0),
        False,
    ),
}
if hasattr(dist, "Dagum"):
    CASES["Dagum"] = (
        lambda e: dist.Dagum(like(e, 1.5), like(e, 3.0), jnp.exp(e)),
        (0.0, 1e4),
        True,
    )
if hasattr(dist, "LeftTruncatedGamma"):
    CASES["LeftTruncatedGamma"] = (
        lambda e: dist.LeftTruncatedGamma(dist.Gamma(like(e, 2.0), jnp.exp(e)), low=like(e, 0.5)),
        (0.5, 80.0),
        False,
    )
QUICK = ("TruncatedNormal",)
# Families whose log density has a corner that moves are integrated less accurately.
CORNERS = ("AsymmetricLaplace", "AsymmetricLaplaceQuantile", "RightTruncatedLaplace")


def complexity(case, dtype="float64", **options):
    return predcp.PredictiveComplexity(
        lambda theta, x: case(x @ theta),
        lambda tau, xi: tau * xi,
        jnp.zeros(2, dtype),
        jnp.asarray(DESIGN, dtype),
        jnp.asarray(NOISE, dtype),
        **options,
    )


def names():
    return [each if each in QUICK else pytest.param(each, marks=pytest.mark.long) for each in CASES]


@pytest.mark.long
def test_a_corner_beyond_a_limit_leaves_slopes_finite():
    def divergence(loc):
        p, q = (dist.LeftTruncatedDistribution(dist.Laplace(at, 0.8), low=0.0) for at in (loc, 0.5))
        return predcp.kl(p, q)

    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(divergence)))(
        jnp.asarray([-3.0, -0.5, 0.1, 0.4, 2.0])
    )
    # Left of the limit an exponential remains, whatever the location.
    np.testing.assert_allclose(values[:2], values[0], rtol=1e-3)
    np.testing.assert_allclose(slopes[:2], 0.0, atol=1e-6)
    assert np.all(np.isfinite(slopes)) and np.all(values > 0.0)


def test_every_integrated_family_has_a_case():
    integrated = {each.__name__ for each in families() if predcp.kl.rule(each).coarse is not None}
    drawn = {"MultivariateStudentT", "ProjectedNormal"}
    own = {"Logistic", "SoftLaplace", "Gompertz", "VonMises", "Dagum", "AsymmetricLaplace"}
    own |= {"AsymmetricLaplaceQuantile"}
    assert own & integrated <= set(CASES) and drawn <= integrated


@pytest.mark.parametrize("name", names())
def test_values_are_integrals(name):
    make, (low, high), _ = CASES[name]
    etas = jnp.asarray([0.1, -0.7]), jnp.zeros(2)

    @jax.jit
    def program(y):
        p, q = map(make, etas)
        values = [each(p, q) for each in DIVERGENCES]
        return values, p.log_prob(y[:, None]), q.log_prob(y[:, None])

    # Dense near 0, where some densities have a corner or an edge.
    u = np.linspace(0.0, 1.0, 400_001)
    centre = np.clip(0.0, low, high)
    y = np.sort(np.concatenate([centre + (high - centre) * u**4, centre - (centre - low) * u**4]))
    y = np.unique(np.clip(y, low + 1e-12, high - 1e-12))
    got, log_p, log_q = program(jnp.asarray(y))
    log_p, log_q = np.asarray(log_p, float), np.asarray(log_q, float)
    p, q = np.exp(log_p), np.exp(log_q)
    log_m = np.logaddexp(log_p, log_q) - np.log(2.0)
    integrands = (
        p * (log_p - log_q),
        q * (log_q - log_p),
        (np.sqrt(p) - np.sqrt(q)) ** 2 / 2,
        (p * (log_p - log_m) + q * (log_q - log_m)) / 2,
    )
    for value, integrand in zip(got, integrands):
        expected = integrate.trapezoid(np.where(np.isfinite(integrand), integrand, 0.0), y, axis=0)
        np.testing.assert_allclose(value, expected, rtol=2e-3 if name in CORNERS else 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", names())
def test_the_error_is_reported_and_every_scale_has_a_value(name, dtype):
    make, _, grows = CASES[name]
    made = complexity(make, dtype)
    edge = 12 if dtype == "float32" else 20
    log_tau = jnp.asarray(np.log(10.0) * np.linspace(-edge, edge, 17), dtype)
    log_kappa, log_elasticity = jax.jit(made.log_value_and_elasticity)(log_tau)
    assert log_kappa.dtype == log_elasticity.dtype == dtype
    near = slice(None) if grows else slice(0, 8)
    assert np.all(np.isfinite(log_kappa)) and np.all(np.isfinite(log_elasticity[near]))
    assert np.all(np.diff(np.asarray(log_kappa)[near]) > 0.0)
    np.testing.assert_allclose(np.exp(log_elasticity[:4]), 2.0, rtol=1e-3)
    error = float(made.quadrature_error(jnp.asarray(-1.0, dtype)))
    assert 0.0 <= error < (1e-2 if name in CORNERS else 1e-3)


# Draws: a Student-t of two dimensions, and a direction in the plane.
DRAWN = {
    "MultivariateStudentT": lambda e: dist.MultivariateStudentT(
        6.0,
        jnp.stack([e, 0.5 * e], -1),
        jnp.asarray([[1.0, 0.0], [0.4, 0.8]], e.dtype),
    ),
    "ProjectedNormal": lambda e: dist.ProjectedNormal(jnp.stack([1.0 + e, 0.3 - e], -1)),
}


def exact_of_draws(name, eta):
    """KL by quadrature in the plane or on the circle."""
    p, q = DRAWN[name](jnp.asarray(eta)), DRAWN[name](jnp.zeros(()))
    if name == "ProjectedNormal":
        angle = np.linspace(-np.pi, np.pi, 4001)[:-1]
        y, weight = np.stack([np.cos(angle), np.sin(angle)], -1), 2.0 * np.pi / 4000
    else:
        u = np.sinh(np.linspace(-7.0, 7.0, 1401))
        y = np.stack(np.meshgrid(u, u), -1).reshape(-1, 2)
        weight = 0.01**2 * np.prod(np.sqrt(1.0 + y**2), -1)
    log_p, log_q = (np.asarray(each.log_prob(jnp.asarray(y))) for each in (p, q))
    return np.sum(weight * np.exp(log_p) * (log_p - log_q))


@pytest.mark.parametrize("name", [pytest.param(each, marks=pytest.mark.long) for each in DRAWN])
def test_draws_are_near_the_integral_and_say_how_near(name):
    for eta in (0.3, 1.0):
        found = jax.jit(lambda e, n=name: predcp.kl(DRAWN[n](e), DRAWN[n](jnp.zeros(()))))(eta)
        np.testing.assert_allclose(found, exact_of_draws(name, eta), rtol=0.1)
    assert 1e-6 < complexity(DRAWN[name]).quadrature_error(jnp.asarray(-1.0)) < 0.2


@pytest.mark.long
def test_one_line_registers_a_family_of_draws(own_registry):  # noqa: F811
    predcp.register_monte_carlo(dist.MultivariateStudentT, fixed=("df",), noise_draws=2048)
    eta = 0.6
    found = predcp.kl(DRAWN["MultivariateStudentT"](eta), DRAWN["MultivariateStudentT"](0.0 * eta))
    np.testing.assert_allclose(found, exact_of_draws("MultivariateStudentT", eta), rtol=0.05)


@pytest.mark.parametrize(
    "given,message",
    [
        ((3,), "NumPyro class"),
        ((dist.Poisson,), "no smooth sampler"),
        ((dist.MultivariateStudentT, ("dof",)), "fixed names"),
        ((dist.MultivariateStudentT, ("df",), 2), "draws must be at least 4"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        predcp.register_monte_carlo(*given)


@pytest.mark.skipif(not hasattr(dist, "LeftCensoredDistribution"), reason="an older NumPyro")
def test_censoring_does_not_change_a_divergence():
    base = [dist.Weibull(jnp.asarray([1.5, 0.7]), 1.3), dist.Weibull(jnp.asarray([1.0, 1.0]), 1.3)]
    expected = predcp.kl(*base)
    flags = jnp.asarray([True, False])
    for side in ("Left", "Right"):
        pair = [getattr(dist, f"{side}CensoredDistribution")(each, flags) for each in base]
        np.testing.assert_allclose(predcp.kl(*pair), expected, rtol=1e-14)
    if hasattr(dist, "IntervalCensoredDistribution"):
        none = jnp.zeros(2, bool)
        pair = [dist.IntervalCensoredDistribution(each, none, none) for each in base]
        np.testing.assert_allclose(predcp.kl(*pair), expected, rtol=1e-14)


def test_masked_points_and_mixtures_of_general_components():
    kept = jnp.asarray([True, False, True])
    p, q = dist.Normal(jnp.asarray([1.0, 9.0, 2.0]), 1.0), dist.Normal(jnp.zeros(3), 1.0)
    np.testing.assert_allclose(predcp.kl(p.mask(kept), q.mask(kept)), [0.5, 0.0, 2.0])

    def mixed(low, high, weight):
        parts = [dist.Normal(low, 1.0), dist.Normal(high, 2.0)]
        return dist.MixtureGeneral(dist.Categorical(jnp.asarray([weight, 1.0 - weight])), parts)

    # Component and label together: an upper bound of the divergence of the mixture.
    p, q = mixed(0.5, 3.0, 0.4), mixed(0.0, 4.0, 0.5)
    labels = 0.4 * np.log(0.4 / 0.5) + 0.6 * np.log(0.6 / 0.5)
    bound = labels + 0.4 * 0.5**2 / 2 + 0.6 * 1.0 / 8
    np.testing.assert_allclose(predcp.kl(p, q), bound, rtol=1e-12)
    y = np.linspace(-30.0, 40.0, 100_001)
    log_p, log_q = (np.asarray(each.log_prob(jnp.asarray(y))) for each in (p, q))
    assert integrate.trapezoid(np.exp(log_p) * (log_p - log_q), y) <= bound
    with pytest.raises(ValueError, match="components of a mixture must be of one family"):
        parts = [dist.Normal(0.0, 1.0), dist.Laplace(0.0, 1.0)]
        predcp.kl(dist.MixtureGeneral(dist.Categorical(jnp.ones(2) / 2), parts), q)
