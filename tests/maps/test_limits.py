"""Maps of flexibility: oracles at 50 digits, and the published PC priors of R-INLA."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import integrate, stats

import predcp

mp.mp.dps = 140
TAUS = (1e-20, 1e-6, 1e-3, 0.02, 0.09, 0.11, 0.3, 0.49, 0.51, 2.0, 9.0, 300.0, 1e6, 1e20)


def negative_binomial(tau):
    return 2 * (mp.digamma(1 + 1 / tau) + mp.log(tau))


def mixing_gamma(tau):
    return mp.log(1 / tau) - mp.digamma(1 / tau)


def beta_binomial(tau):
    def part(m):
        return m * (mp.digamma(1 + m / tau) - mp.digamma(1 + 1 / tau) - mp.log(m))

    return part(mp.mpf(0.3)) + part(1 - mp.mpf(0.3))


def student_t(tau):
    nu = 2 + 1 / tau
    entropy = (nu + 1) / 2 * (mp.digamma((nu + 1) / 2) - mp.digamma(nu / 2))
    entropy += mp.log(nu) / 2 + mp.log(mp.beta(nu / 2, 0.5)) + mp.log((nu - 2) / nu) / 2
    return mp.log(2 * mp.pi) / 2 + mp.mpf(1) / 2 - entropy


def gamma_of(shape):
    return mp.log(shape) + (shape - 1) * mp.digamma(shape) - mp.loggamma(shape) - shape + 1


ORACLES = {
    "negative binomial": (predcp.NegativeBinomialLimit(2.0), negative_binomial),
    "mixing gamma": (predcp.NegativeBinomialLimit(), mixing_gamma),
    "beta-binomial": (predcp.BetaBinomialLimit(0.3), beta_binomial),
    "student-t": (predcp.StudentTLimit(), student_t),
    "regular": (predcp.GammaLimit(), lambda tau: gamma_of(1 + tau)),
    "bursts": (predcp.GammaLimit("bursts"), lambda tau: gamma_of(1 / (1 + tau))),
    "pair": (predcp.CorrelationLimit(), lambda tau: mp.log(mp.cosh(tau))),
    "series": (predcp.CorrelationLimit(6), lambda tau: 5 * mp.log(mp.cosh(tau))),
}


@pytest.mark.parametrize("name", ORACLES)
def test_value_and_elasticity_agree_with_fifty_digits(name):
    complexity, oracle = ORACLES[name]
    log_kappa, log_elasticity = complexity.log_value_and_elasticity(jnp.log(jnp.asarray(TAUS)))
    for place, tau in enumerate(TAUS):
        with mp.workdps(140):
            exact, step = oracle(mp.mpf(tau)), mp.mpf(10) ** -30
            above, below = (mp.log(oracle(tau * (1 + each))) for each in (step, -step))
            rate = (above - below) / (2 * step)
        np.testing.assert_allclose(np.exp(log_kappa[place]), float(exact), rtol=1e-10)
        np.testing.assert_allclose(np.exp(log_elasticity[place]), float(rate), rtol=1e-10)


def test_divergences_are_those_of_the_distributions():
    """Against numerical integration, without the formulas."""
    nu = 5.0
    noise = stats.t(nu, scale=np.sqrt((nu - 2) / nu))
    kl, _ = integrate.quad(
        lambda y: noise.pdf(y) * (noise.logpdf(y) - stats.norm.logpdf(y)), -np.inf, np.inf
    )
    np.testing.assert_allclose(predcp.StudentTLimit()(1 / (nu - 2)), kl, rtol=1e-6)
    waiting = stats.gamma(3.0, scale=1 / 3.0)
    kl, _ = integrate.quad(lambda y: waiting.pdf(y) * (waiting.logpdf(y) + y), 0, 40)
    np.testing.assert_allclose(predcp.GammaLimit()(2.0), kl, rtol=1e-7)
    rate = stats.gamma(2.0, scale=0.5)
    kl, _ = integrate.quad(lambda g: rate.pdf(g) * (g * np.log(g) - g + 1) * 7.0, 0, 40)
    np.testing.assert_allclose(predcp.NegativeBinomialLimit(7.0)(0.5), kl, rtol=1e-7)
    p = stats.beta(1.2, 2.8)
    kl, _ = integrate.quad(
        lambda x: p.pdf(x) * (x * np.log(x / 0.3) + (1 - x) * np.log((1 - x) / 0.7)), 0, 1
    )
    np.testing.assert_allclose(predcp.BetaBinomialLimit(0.3)(0.25), kl, rtol=1e-7)


X = np.asarray([-1.0, -0.2, 0.1, 0.7, 1.5])


def process_oracle(tau):
    """KL of two Gaussians, in 50 digits."""
    kernel = mp.matrix(5, 5)
    constant = mp.matrix(5, 5)
    for i in range(5):
        for j in range(5):
            kernel[i, j] = mp.mpf(1.5) ** 2 * mp.exp(-((mp.mpf(X[i]) - X[j]) ** 2) * tau**2 / 2)
            constant[i, j] = mp.mpf(1.5) ** 2
            if i == j:
                kernel[i, j] += mp.mpf(0.4) ** 2
                constant[i, j] += mp.mpf(0.4) ** 2
    ratio = mp.inverse(constant) * kernel
    return (sum(ratio[i, i] for i in range(5)) - 5 - mp.log(mp.det(ratio))) / 2


def test_the_lengthscale_of_a_process():
    complexity = predcp.LengthscaleLimit(X, 1.5, 0.4)
    for tau in (1e-8, 1e-3, 0.1, 1.0, 5.0, 40.0):
        np.testing.assert_allclose(complexity(tau), float(process_oracle(mp.mpf(tau))), rtol=1e-10)
    # A kernel that changes as tau^2 has a divergence that starts as tau^4.
    log_kappa, log_elasticity = complexity.log_value_and_elasticity(
        jnp.asarray([-600.0, -60.0, 0.0])
    )
    np.testing.assert_allclose(np.exp(log_elasticity[:2]), 4.0, rtol=1e-9)
    np.testing.assert_allclose(log_kappa[1] - log_kappa[0], 4 * 540.0, rtol=1e-9)
    assert (
        predcp.diagnose(predcp.ComplexityPrior(predcp.LogCauchy(), complexity)).verdict
        == "truncate"
    )


def pc(rate):
    """An exponential on `sqrt(2 kappa)`, the distance of PC priors, is a Weibull on kappa."""
    return dist.Weibull(scale=0.5 / rate**2, concentration=0.5)


def test_a_given_pi_may_be_made_inside_a_compiled_program():
    def density(log_tau):
        return predcp.ComplexityPrior(pc(3.0), predcp.StudentTLimit()).log_scale().log_prob(log_tau)

    np.testing.assert_allclose(jax.jit(density)(-1.0), density(-1.0), rtol=1e-12)


def test_pc_prec():
    # sigma ~ Exp(rate): a type-2 Gumbel on the precision.
    prior = predcp.ComplexityPrior(predcp.Exponential(mean=0.5), predcp.PenalisedComplexity(1.0))
    for precision in (0.1, 1.0, 30.0):
        published = 1.0 * precision**-1.5 * np.exp(-2.0 * precision**-0.5)
        ours = np.exp(prior.log_prob(1 / precision)) / precision**2
        np.testing.assert_allclose(ours, published, rtol=1e-8)


def test_pc_mgamma():
    rate = 7.0
    prior = predcp.ComplexityPrior(pc(rate), predcp.NegativeBinomialLimit())
    for a in (1e-4, 0.01, 0.3, 2.0, 40.0):
        z = mp.mpf(1) / a
        d = mp.sqrt(2 * (mp.log(z) - mp.digamma(z)))
        published = rate * mp.exp(-rate * d) / d / mp.mpf(a) ** 2 * (mp.polygamma(1, z) - a)
        np.testing.assert_allclose(np.exp(prior.log_prob(a)), float(published), rtol=1e-8)


def test_pc_dof():
    rate = 3.0
    prior = predcp.ComplexityPrior(pc(rate), predcp.StudentTLimit())
    for nu in (2.1, 3.0, 9.0, 60.0, 900.0):
        distance = lambda n: mp.sqrt(2 * student_t(1 / (n - 2)))  # noqa: E731
        published = rate * mp.exp(-rate * distance(mp.mpf(nu))) * abs(mp.diff(distance, mp.mpf(nu)))
        ours = np.exp(prior.log_prob(1 / (nu - 2))) / (nu - 2) ** 2
        np.testing.assert_allclose(ours, float(published), rtol=1e-8)


@pytest.mark.parametrize("points", [2, 6])
def test_pc_cor0_and_pc_ar(points):
    # For a series the rate is per step: the distance of n points is sqrt(n - 1) that of a pair.
    rate = 2.5
    prior = predcp.ComplexityPrior(pc(rate / np.sqrt(points - 1)), predcp.CorrelationLimit(points))
    for rho in (-0.99, -0.3, 0.01, 0.5, 0.9):
        distance = np.sqrt(-np.log1p(-(rho**2)))
        published = 0.5 * rate * np.exp(-rate * distance) * abs(rho) / ((1 - rho**2) * distance)
        ours = np.exp(prior.log_prob(np.arctanh(rho))) / (1 - rho**2)
        np.testing.assert_allclose(ours, published, rtol=1e-8)


def test_an_autoregressive_process_is_that_gaussian():
    rho, points = 0.6, 7
    places = np.arange(points)
    correlation = rho ** np.abs(places[:, None] - places)
    expected = -0.5 * np.linalg.slogdet(correlation)[1]
    np.testing.assert_allclose(
        predcp.CorrelationLimit(points)(np.arctanh(rho)), expected, rtol=1e-12
    )


def test_priors_are_proper():
    for complexity, _ in ORACLES.values():
        if complexity.signed:
            continue
        for pi in (predcp.LogCauchy(scale=1.0), predcp.Exponential(mean=0.3)):
            found = predcp.diagnose(predcp.ComplexityPrior(pi, complexity))
            np.testing.assert_allclose(found.mass, 1.0, atol=1e-5)
            # A log-Cauchy of a divergence that grows as log tau has mass beyond every number.
            infinite = complexity.logarithmic and isinstance(pi, predcp.LogCauchy)
            growing = "warn" if infinite else "accept"
            assert found.verdict == ("truncate" if complexity.bounded else growing), found
            assert ("sample prior.log_scale()" in found.reasons[0]) == infinite, found


def test_the_elasticity_at_a_scale_of_one():
    """Two formulas meet there: each must have its own slope, not half of it."""
    complexity, oracle = ORACLES["beta-binomial"]
    _, log_elasticity = complexity.log_value_and_elasticity(jnp.zeros(()))
    with mp.workdps(140):
        step = mp.mpf(10) ** -30
        above, below = (mp.log(oracle(1 + each)) for each in (step, -step))
        np.testing.assert_allclose(
            np.exp(log_elasticity), float((above - below) / (2 * step)), rtol=1e-10
        )


@pytest.mark.parametrize("name", ORACLES)
def test_single_precision_is_enough_at_every_scale(name):
    log_tau = np.log(np.asarray([1e-12, *TAUS[1:-1], 1e12]))
    wide = ORACLES[name][0].log_value_and_elasticity(jnp.asarray(log_tau))
    with jax.enable_x64(False):
        made = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), ORACLES[name][0])
        narrow = made.log_value_and_elasticity(jnp.asarray(log_tau, jnp.float32))
    for ours, theirs in zip(narrow, wide):
        assert ours.dtype == jnp.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=2e-4)


def test_bad_input_is_refused_by_name():
    with pytest.raises(ValueError, match="mean must be positive"):
        predcp.NegativeBinomialLimit(-1.0)
    with pytest.raises(ValueError, match="probability must be strictly between 0 and 1"):
        predcp.BetaBinomialLimit(1.0)
    with pytest.raises(ValueError, match="points must be a whole number of at least 2, got 1"):
        predcp.CorrelationLimit(1)
    with pytest.raises(ValueError, match='direction must be "regular" or "bursts"'):
        predcp.GammaLimit("up")
    with pytest.raises(ValueError, match="x has equal points only"):
        predcp.LengthscaleLimit(jnp.ones(4))
    with pytest.raises(ValueError, match=r"x must have shape \(N, D\) or \(N,\)"):
        predcp.LengthscaleLimit(jnp.ones((2, 2, 2)))


def test_gradients_are_finite():
    for complexity in (predcp.StudentTLimit(), predcp.GammaLimit(), predcp.LengthscaleLimit(X)):
        prior = predcp.ComplexityPrior(predcp.LogCauchy(), complexity).log_scale()
        slopes = jax.jit(jax.vmap(jax.grad(prior.log_prob)))(
            jnp.asarray([-30.0, -3.7, -2.3, -0.7, 1.0])
        )
        assert np.all(np.isfinite(slopes))
