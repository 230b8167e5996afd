"""Divergences against their definitions in fifty digits, near equality and at saturation."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.distributions.kl import kl_divergence

import predcp
from tests.oracle import relative_error

DIVERGENCES = {
    "kl": (predcp.kl, lambda p, q: sum(a * mp.log(a / b) for a, b in zip(p, q) if a)),
    "reverse_kl": (predcp.reverse_kl, lambda p, q: sum(b * mp.log(b / a) for a, b in zip(p, q))),
    "squared_hellinger": (
        predcp.squared_hellinger,
        lambda p, q: sum((mp.sqrt(a) - mp.sqrt(b)) ** 2 for a, b in zip(p, q)) / 2,
    ),
    "jensen_shannon": (
        predcp.jensen_shannon,
        lambda p, q: sum(
            a * mp.log(2 * a / (a + b)) + b * mp.log(2 * b / (a + b)) for a, b in zip(p, q)
        )
        / 2,
    ),
}


def softmax(logits):
    weights = [mp.exp(logit) for logit in logits]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("name", DIVERGENCES)
@pytest.mark.parametrize("size", [1e-7, 1e-3, 0.3, 1.1, 5.0, 40.0])
def test_categorical_and_bernoulli_match_their_definitions(name, size):
    divergence, definition = DIVERGENCES[name]
    reference, move = np.array([0.3, -1.0, 0.8]), np.array([1.0, -0.4, 0.2])
    # The displacement is exact in floating point so that the oracle sees the same logits.
    logits = reference + size * move
    exact = [mp.mpf(float(a)) for a in logits], [mp.mpf(float(a)) for a in reference]
    got = divergence(dist.Categorical(logits=logits), dist.Categorical(logits=reference))
    # The displacement itself is known to rounding over its size.
    tolerance = 1e-13 + 4e-16 / size
    assert relative_error(got, definition(*map(softmax, exact))) < 4 * tolerance
    coin = divergence(dist.Bernoulli(logits=logits[0]), dist.Bernoulli(logits=reference[0]))
    pair = [softmax([mp.mpf(float(a)), mp.mpf(0)]) for a in (logits[0], reference[0])]
    assert relative_error(coin, definition(*pair)) < 4 * tolerance


@pytest.mark.parametrize("name", DIVERGENCES)
@pytest.mark.parametrize("shift,scale", [(0.0, 1.3), (1.2, 1.0), (-0.7, 0.6), (4.0, 2.0)])
def test_normal_divergences_match_integrals(name, shift, scale):
    divergence, _ = DIVERGENCES[name]
    got = divergence(dist.Normal(shift, scale), dist.Normal(0.0, 1.0))
    y = np.linspace(-40, 40, 400_001)
    p = np.exp(dist.Normal(shift, scale).log_prob(y))
    q = np.exp(dist.Normal(0.0, 1.0).log_prob(y))
    log_p = np.asarray(dist.Normal(shift, scale).log_prob(y))
    log_q = np.asarray(dist.Normal(0.0, 1.0).log_prob(y))
    log_m = np.logaddexp(log_p, log_q) - np.log(2)
    integrand = {
        "kl": p * (log_p - log_q),
        "reverse_kl": q * (log_q - log_p),
        "squared_hellinger": (np.sqrt(p) - np.sqrt(q)) ** 2 / 2,
        "jensen_shannon": (p * (log_p - log_m) + q * (log_q - log_m)) / 2,
    }[name]
    np.testing.assert_allclose(got, np.trapezoid(integrand, y), rtol=1e-9)


def test_normal_kl_agrees_with_numpyro():
    p, q = dist.Normal(0.3, 2.0), dist.Normal(-1.0, 1.5)
    np.testing.assert_allclose(predcp.kl(p, q), kl_divergence(p, q), rtol=1e-14)


@pytest.mark.parametrize("change", [-3.0, -1e-6, 1e-6, 0.5, 4.0])
def test_poisson_matches_its_formula(change):
    rate, moved = mp.mpf(1.25), mp.mpf(1.25) * mp.exp(mp.mpf(change))
    p, q = dist.Poisson(1.25 * np.exp(change)), dist.Poisson(1.25)
    tolerance = 1e-13 + 1e-15 / abs(change)
    expected = moved * mp.log(moved / rate) - moved + rate
    assert relative_error(predcp.kl(p, q), expected) < tolerance
    expected = rate * mp.log(rate / moved) - rate + moved
    assert relative_error(predcp.reverse_kl(p, q), expected) < tolerance


@pytest.mark.parametrize("df", [1.0, 3.0, 30.0])
@pytest.mark.parametrize("shift,scale", [(1e-4, 1.0), (0.0, 1.0001), (0.7, 1.3), (3.0, 0.5)])
def test_student_t_matches_quadrature(df, shift, scale):
    got = predcp.kl(dist.StudentT(df, shift, scale), dist.StudentT(df, 0.0, 1.0))

    def log_density(y, loc, width):
        z = (y - loc) / width
        return (
            mp.loggamma((df + 1) / mp.mpf(2))
            - mp.loggamma(mp.mpf(df) / 2)
            - mp.log(width * mp.sqrt(df * mp.pi))
            - mp.mpf(df + 1) / 2 * mp.log(1 + z**2 / df)
        )

    with mp.workdps(25):
        loc, width = mp.mpf(shift), mp.mpf(scale)
        expected = mp.quad(
            lambda y: mp.exp(log_density(y, loc, width))
            * (log_density(y, loc, width) - log_density(y, mp.mpf(0), mp.mpf(1))),
            [-mp.inf, -10, -3, 0, shift + 0.5, 3, 10, mp.inf],
        )
    assert relative_error(got, expected) < 2e-7


def test_counts_scale_binomial_and_multinomial():
    logits, reference = jnp.asarray([0.2, -0.5]), jnp.asarray([0.0, 0.1])
    one = predcp.kl(dist.Bernoulli(logits=logits), dist.Bernoulli(logits=reference))
    many = predcp.kl(dist.Binomial(7, logits=logits), dist.Binomial(7, logits=reference))
    np.testing.assert_allclose(many, 7 * one, rtol=1e-14)
    throw = predcp.kl(dist.Categorical(logits=logits), dist.Categorical(logits=reference))
    throws = predcp.kl(dist.Multinomial(5, logits=logits), dist.Multinomial(5, logits=reference))
    np.testing.assert_allclose(throws, 5 * throw, rtol=1e-14)


def test_events_are_summed_and_products_added():
    p, q = dist.Normal(jnp.arange(6.0).reshape(2, 3), 1.0), dist.Normal(jnp.zeros((2, 3)), 1.0)
    np.testing.assert_allclose(
        predcp.kl(p.to_event(1), q.to_event(1)), predcp.kl(p, q).sum(-1), rtol=1e-14
    )
    both = predcp.kl((p.to_event(2), dist.Poisson(2.0)), (q.to_event(2), dist.Poisson(1.0)))
    expected = predcp.kl(p, q).sum() + predcp.kl(dist.Poisson(2.0), dist.Poisson(1.0))
    np.testing.assert_allclose(both, expected, rtol=1e-14)
    np.testing.assert_allclose(predcp.kl(p.expand((2, 3)), q), predcp.kl(p, q))


def test_a_user_may_register_a_divergence():
    def coordinates(gamma):
        return {"log_rate": jnp.log(gamma.rate), "shape": jnp.asarray(gamma.concentration)}

    @predcp.register_divergence(predcp.kl, dist.Gamma, coordinates)
    def gamma_kl(reference, displacement):
        change = displacement["log_rate"]
        return reference["shape"] * (jnp.expm1(-change) + change)

    p, q = dist.Gamma(3.0, 2.0), dist.Gamma(3.0, 1.0)
    np.testing.assert_allclose(predcp.kl(p, q), kl_divergence(p, q), rtol=1e-12)
    complexity = predcp.PredictiveComplexity(
        lambda theta, x: dist.Gamma(3.0, jnp.exp(x * theta)),
        lambda tau, xi: tau * xi,
        jnp.zeros(()),
        jnp.asarray([0.5, -1.0]),
        jnp.asarray([0.3, -1.2]),
    )
    tau = jnp.asarray(0.4)
    shifts = 0.4 * np.outer([0.3, -1.2], [0.5, -1.0])
    np.testing.assert_allclose(complexity(tau), 3 * np.mean(np.expm1(-shifts) + shifts), rtol=1e-12)
    slope = jax.grad(complexity)(tau)
    log_slope = complexity.log_abs_det_jacobian(tau, complexity(tau))
    np.testing.assert_allclose(np.exp(log_slope), slope, rtol=1e-10)


def test_unknown_families_are_named():
    with pytest.raises(ValueError, match="Beta.*register_divergence"):
        predcp.kl(dist.Beta(1.0, 1.0), dist.Beta(2.0, 1.0))
    with pytest.raises(ValueError, match="squared_hellinger.*Poisson"):
        predcp.squared_hellinger(dist.Poisson(1.0), dist.Poisson(2.0))
    with pytest.raises(ValueError, match="Normal and Poisson|one family"):
        predcp.kl(dist.Normal(0.0, 1.0), dist.Poisson(2.0))
