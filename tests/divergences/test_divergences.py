"""Divergences against their definitions in fifty digits, near equality and at saturation."""

import inspect

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.special import i0e, i1e
from numpyro.distributions.kl import kl_divergence
from tests.oracle import relative_error

import predcp
from predcp._divergences import _divergence
from predcp._divergences._refusals import reason

DIVERGENCES = {
    "kl": (predcp.kl, lambda p, q: sum(a * mp.log(a / b) for a, b in zip(p, q) if a)),
    "reverse_kl": (predcp.reverse_kl, lambda p, q: sum(b * mp.log(b / a) for a, b in zip(p, q))),
    "squared_hellinger": (
        predcp.squared_hellinger,
        lambda p, q: sum((mp.sqrt(a) - mp.sqrt(b)) ** 2 for a, b in zip(p, q)) / 2,
    ),
    "jensen_shannon": (
        predcp.jensen_shannon,
        lambda p, q: (
            sum(a * mp.log(2 * a / (a + b)) + b * mp.log(2 * b / (a + b)) for a, b in zip(p, q)) / 2
        ),
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
            lambda y: (
                mp.exp(log_density(y, loc, width))
                * (log_density(y, loc, width) - log_density(y, mp.mpf(0), mp.mpf(1)))
            ),
            [-mp.inf, -10, -3, 0, shift + 0.5, 3, 10, mp.inf],
        )
    assert relative_error(got, expected) < 1e-10


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


@pytest.fixture
def own_registry(monkeypatch):
    """A registry to write in that is gone after the test."""
    monkeypatch.setattr(_divergence, "_READERS", dict(_divergence._READERS))
    monkeypatch.setattr(predcp.kl, "_rules", dict(predcp.kl._rules))


def test_a_user_may_register_a_divergence(own_registry):
    def coordinates(circular):
        loc, concentration = jnp.broadcast_arrays(circular.loc, circular.concentration)
        return {"loc": loc, "concentration": concentration}

    @predcp.register_divergence(predcp.kl, dist.VonMises, coordinates)
    def von_mises_kl(reference, displacement):
        kappa = reference["concentration"]
        return kappa * (i1e(kappa) / i0e(kappa)) * 2.0 * jnp.sin(displacement["loc"] / 2.0) ** 2

    p, q = dist.VonMises(0.4, 2.0), dist.VonMises(-0.1, 2.0)
    y = np.linspace(-np.pi, np.pi, 4001)
    log_p, log_q = p.log_prob(y), q.log_prob(y)
    np.testing.assert_allclose(
        predcp.kl(p, q), np.trapezoid(np.exp(log_p) * (log_p - log_q), y), rtol=1e-9
    )
    complexity = predcp.PredictiveComplexity(
        lambda theta, x: dist.VonMises(x * theta, 2.0),
        lambda tau, xi: tau * xi,
        jnp.zeros(()),
        jnp.asarray([0.5, -1.0]),
        jnp.asarray([0.3, -1.2]),
    )
    tau = jnp.asarray(0.4)
    shifts = 0.4 * np.outer([0.3, -1.2], [0.5, -1.0])
    factor = 2.0 * i1e(2.0) / i0e(2.0)
    np.testing.assert_allclose(complexity(tau), factor * np.mean(1 - np.cos(shifts)), rtol=1e-12)
    slope = jax.grad(complexity)(tau)
    log_slope = complexity.log_abs_det_jacobian(tau, complexity(tau))
    np.testing.assert_allclose(np.exp(log_slope), slope, rtol=1e-10)


def test_unknown_families_are_named():
    with pytest.raises(ValueError, match="VonMises.*register_divergence"):
        predcp.kl(dist.VonMises(1.0, 1.0), dist.VonMises(2.0, 1.0))
    with pytest.raises(ValueError, match="Uniform observations: its support moves"):
        predcp.kl(dist.Uniform(0.0, 1.0), dist.Uniform(0.0, 2.0))
    with pytest.raises(ValueError, match="squared_hellinger.*Poisson"):
        predcp.squared_hellinger(dist.Poisson(1.0), dist.Poisson(2.0))
    with pytest.raises(ValueError, match="Normal and Poisson|one family"):
        predcp.kl(dist.Normal(0.0, 1.0), dist.Poisson(2.0))


def test_every_numpyro_distribution_is_accepted_or_refused_with_its_reason(capsys):
    wrappers = {"Distribution", "ExpandedDistribution", "Independent", "MaskedDistribution"}
    accepted, refused = [], {}
    for name in dist.__all__:
        made = getattr(dist, name)
        if not (inspect.isclass(made) and issubclass(made, dist.Distribution)) or name in wrappers:
            continue
        if any(base in _divergence._READERS for base in made.__mro__):
            accepted.append(name)
        else:
            refused.setdefault(reason(made), []).append(name)
    with capsys.disabled():
        print(f"\n{len(accepted)} NumPyro distributions have divergences")
        for text, names in refused.items():
            print(f"{len(names)} are refused: {text}: {', '.join(names)}")
    assert len(accepted) >= 36
    assert all(text.strip() for text in refused)


def test_what_a_rule_holds_fixed_may_not_move():
    with pytest.raises(ValueError, match="Weibull.*same concentration"):
        predcp.kl(dist.Weibull(1.0, 2.0), dist.Weibull(1.0, 3.0))
    with pytest.raises(ValueError, match="StudentT.*same df"):
        predcp.PredictiveComplexity(
            lambda theta, _: dist.StudentT(4.0 + theta**2, theta, 1.0),
            lambda tau, xi: tau * xi,
            0.0,
            None,
            jnp.ones(2),
        )


def gamma_kl(a, b, c, d):
    """KL of Gamma(a, b) from Gamma(c, d)."""
    return (
        (a - c) * mp.digamma(a) - mp.loggamma(a) + mp.loggamma(c)
        + c * mp.log(b / d) + a * (d - b) / b
    )  # fmt: skip


def dirichlet_kl(a, b):
    lift = [mp.digamma(one) - mp.digamma(sum(a)) for one in a]
    return (
        mp.loggamma(sum(a)) - sum(map(mp.loggamma, a))
        - mp.loggamma(sum(b)) + sum(map(mp.loggamma, b))
        + sum((x - y) * one for x, y, one in zip(a, b, lift))
    )  # fmt: skip


def laplace_kl(loc, scale, loc_0, scale_0):
    gap = abs(loc - loc_0)
    return mp.log(scale_0 / scale) + scale / scale_0 * mp.exp(-gap / scale) + gap / scale_0 - 1


def negative_binomial_kl(mean, concentration, mean_0, _):
    x, x_0 = mean / concentration, mean_0 / concentration
    return concentration * (x * mp.log(x / x_0) - (1 + x) * mp.log((1 + x) / (1 + x_0)))


def exact(values):
    return [mp.mpf(float(value)) for value in values]


# The family, its parameters, the directions they move in (in logs where positive), and KL.
FORMULAS = {
    "gamma": (dist.Gamma, (2.5, 1.25), (0.7, -0.4), gamma_kl),
    "gamma-rate": (dist.Gamma, (2.5, 1.25), (0.0, 1.0), gamma_kl),
    "gamma-tiny": (dist.Gamma, (0.05, 3.0), (1.0, 0.5), gamma_kl),
    "negative-binomial": (dist.NegativeBinomial2, (2.0, 1.5), (1.0, 0.0), negative_binomial_kl),
    "laplace": (dist.Laplace, (0.3, 1.0), (1.0, -0.5), laplace_kl),
    "beta": (
        dist.Beta,
        (0.6, 3.0),
        (1.0, -0.3),
        lambda a, b, c, d: dirichlet_kl([a, b], [c, d]),
    ),
}


@pytest.mark.parametrize("size", [1e-7, 1e-3, 0.1, 0.3, 2.0, -3.0])
@pytest.mark.parametrize("name", FORMULAS)
def test_closed_forms_match_fifty_digits(name, size):
    family, parameters, direction, formula = FORMULAS[name]
    moved = [
        value + size * move
        if family is dist.Laplace and place == 0
        else value * np.exp(size * move)
        for place, (value, move) in enumerate(zip(parameters, direction))
    ]
    p, q = family(*map(jnp.asarray, moved)), family(*map(jnp.asarray, parameters))
    # The displacement itself is known to rounding over its size.
    tolerance = 2e-13 + 2e-15 / abs(size)
    forward = formula(*exact(moved), *exact(parameters))
    assert relative_error(predcp.kl(p, q), forward) < tolerance
    backward = formula(*exact(parameters), *exact(moved))
    assert relative_error(predcp.reverse_kl(p, q), backward) < tolerance


@pytest.mark.parametrize(
    "p,q",
    [
        (dist.Gamma(3.0, 2.0), dist.Gamma(3.0, 1.0)),
        (dist.Exponential(2.0), dist.Exponential(1.0)),
        (dist.InverseGamma(9.0, 30.0), dist.InverseGamma(9.0, 40.0)),
        (dist.Weibull(2.0, 2.5), dist.Weibull(1.5, 2.5)),
        (dist.Gumbel(20.0, 1.5), dist.Gumbel(19.0, 1.5)),
        (dist.LogNormal(0.3, 0.5), dist.LogNormal(0.1, 0.6)),
        (dist.HalfNormal(1.0), dist.HalfNormal(2.0)),
    ],
    ids=lambda made: type(made).__name__,
)
def test_transformed_families_match_integrals(p, q):
    y = np.linspace(1e-9, 120.0, 1_000_001)
    log_p, log_q = np.asarray(p.log_prob(y)), np.asarray(q.log_prob(y))
    density_p, density_q = np.exp(log_p), np.exp(log_q)
    expected = {
        predcp.kl: density_p * (log_p - log_q),
        predcp.reverse_kl: density_q * (log_q - log_p),
        predcp.squared_hellinger: (np.sqrt(density_p) - np.sqrt(density_q)) ** 2 / 2,
    }
    for divergence, integrand in expected.items():
        whole = np.trapezoid(np.where(np.isfinite(integrand), integrand, 0.0), y)
        np.testing.assert_allclose(divergence(p, q), whole, rtol=2e-4, atol=1e-7)


@pytest.mark.parametrize("p,q", [
    (dist.NegativeBinomial2(3.0, 1.5), dist.NegativeBinomial2(2.0, 1.5)),
    (dist.NegativeBinomialProbs(2.0, 0.4), dist.NegativeBinomialProbs(2.0, 0.6)),
    (dist.NegativeBinomialLogits(2.0, 0.4), dist.NegativeBinomialLogits(2.0, -0.6)),
    (dist.Geometric(0.3), dist.Geometric(0.5)),
])  # fmt: skip
def test_counts_match_sums(p, q):
    counts = np.arange(800.0)
    log_p, log_q = np.asarray(p.log_prob(counts)), np.asarray(q.log_prob(counts))
    # NumPyro's log probabilities of large counts are good to a few digits less than rounding.
    np.testing.assert_allclose(predcp.kl(p, q), np.sum(np.exp(log_p) * (log_p - log_q)), rtol=1e-5)
    reverse = np.sum(np.exp(log_q) * (log_q - log_p))
    np.testing.assert_allclose(predcp.reverse_kl(p, q), reverse, rtol=1e-5)


@pytest.mark.parametrize(
    "p,q",
    [
        (dist.ZeroInflatedPoisson(0.3, 2.0), dist.ZeroInflatedPoisson(0.5, 1.0)),
        (dist.ZeroInflatedPoisson(0.3, 0.02), dist.ZeroInflatedPoisson(0.6, 0.01)),
        (dist.ZeroInflatedPoisson(0.2, 30.0), dist.ZeroInflatedPoisson(0.4, 20.0)),
        (dist.HurdlePoisson(0.3, 0.3), dist.HurdlePoisson(0.3, 0.25)),
        (dist.HurdlePoisson(0.3, 2.0), dist.HurdlePoisson(0.5, 0.5)),
    ],
)
def test_counts_behind_a_hurdle_match_sums(p, q):
    counts = np.arange(200.0)
    log_p, log_q = np.asarray(p.log_prob(counts)), np.asarray(q.log_prob(counts))
    expected = np.sum(np.exp(log_p) * (log_p - log_q))
    np.testing.assert_allclose(predcp.kl(p, q), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "p,q",
    [
        (dist.HurdleGamma(0.3, 2.0, 1.0), dist.HurdleGamma(0.4, 3.0, 2.0)),
        (dist.HurdleLogNormal(0.3, 0.2, 0.5), dist.HurdleLogNormal(0.4, 0.1, 0.6)),
    ],
)
def test_amounts_behind_a_hurdle_match_integrals(p, q):
    y = np.linspace(1e-9, 60.0, 600_001)
    log_p, log_q = np.asarray(p.log_prob(y)), np.asarray(q.log_prob(y))
    zero_p, zero_q = p.log_prob(0.0), q.log_prob(0.0)
    expected = np.trapezoid(np.exp(log_p) * (log_p - log_q), y)
    expected += np.exp(zero_p) * (zero_p - zero_q)
    np.testing.assert_allclose(predcp.kl(p, q), expected, rtol=1e-6)


def test_multivariate_normals_with_one_covariance():
    root = jnp.asarray([[1.0, 0.0], [0.6, 0.8]])
    p, q = (
        dist.MultivariateNormal(jnp.asarray(loc), scale_tril=root)
        for loc in ([1.0, 2.0], [0.0, 0.5])
    )
    np.testing.assert_allclose(predcp.kl(p, q), kl_divergence(p, q), rtol=1e-13)
    np.testing.assert_allclose(
        predcp.squared_hellinger(p, q), -np.expm1(-kl_divergence(p, q) / 4.0), rtol=1e-13
    )
