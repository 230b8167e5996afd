"""Divergences against their definitions in fifty digits, near equality and at saturation."""

import inspect
import math
from importlib.util import find_spec

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats
from jax.scipy.special import i0e, i1e
from numpyro.distributions.kl import kl_divergence

import predcp
from predcp._divergences import _divergence, _quadrature
from predcp._divergences._refusals import is_refused, reason

DIVERGENCES = {
    "kl": predcp.kl,
    "reverse_kl": predcp.reverse_kl,
    "squared_hellinger": predcp.squared_hellinger,
    "jensen_shannon": predcp.jensen_shannon,
}


def test_normal_divergences_match_integrals():
    shifts, scales = jnp.asarray([0.0, 1.2, -0.7, 4.0]), jnp.asarray([1.3, 1.0, 0.6, 2.0])
    y = np.linspace(-40, 40, 400_001)

    @jax.jit
    def program():
        p, q = dist.Normal(shifts, scales), dist.Normal(0.0, 1.0)
        logs = p.log_prob(jnp.asarray(y)[:, None]), q.log_prob(jnp.asarray(y)[:, None])
        return logs, {name: divergence(p, q) for name, divergence in DIVERGENCES.items()}

    (log_p, log_q), got = program()
    p, q = np.exp(log_p), np.exp(log_q)
    log_m = np.logaddexp(log_p, log_q) - np.log(2)
    integrands = {
        "kl": p * (log_p - log_q),
        "reverse_kl": q * (log_q - log_p),
        "squared_hellinger": (np.sqrt(p) - np.sqrt(q)) ** 2 / 2,
        "jensen_shannon": (p * (log_p - log_m) + q * (log_q - log_m)) / 2,
    }
    for name, integrand in integrands.items():
        expected = np.trapezoid(integrand, y, axis=0)
        np.testing.assert_allclose(got[name], expected, rtol=1e-9, err_msg=name)


def test_normal_kl_agrees_with_numpyro():
    p, q = dist.Normal(0.3, 2.0), dist.Normal(-1.0, 1.5)
    np.testing.assert_allclose(predcp.kl(p, q), kl_divergence(p, q), rtol=1e-14)


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
    slope = jax.jit(jax.grad(complexity))(tau)
    log_slope = complexity.log_abs_det_jacobian(tau, complexity(tau))
    np.testing.assert_allclose(np.exp(log_slope), slope, rtol=1e-10)


def test_unknown_families_are_named():
    with pytest.raises(ValueError, match="BetaNegativeBinomial.*register_quadrature"):
        predcp.kl(
            dist.BetaNegativeBinomial(1.0, 1.0, 1.0), dist.BetaNegativeBinomial(2.0, 1.0, 1.0)
        )
    with pytest.raises(ValueError, match="Uniform observations: its support moves"):
        predcp.kl(dist.Uniform(0.0, 1.0), dist.Uniform(0.0, 2.0))
    with pytest.raises(ValueError, match="jensen_shannon.*Poisson"):
        predcp.jensen_shannon(dist.Poisson(1.0), dist.Poisson(2.0))
    with pytest.raises(ValueError, match="Normal and Poisson|one family"):
        predcp.kl(dist.Normal(0.0, 1.0), dist.Poisson(2.0))


def test_every_numpyro_distribution_is_accepted_integrated_or_refused(capsys):
    # The base class, and what stands for any distribution that fits one place of it.
    wrappers = {"Distribution"}
    found: dict[str, list[str]] = {}
    for name in dist.__all__:
        made = getattr(dist, name)
        if not (inspect.isclass(made) and issubclass(made, dist.Distribution)) or name in wrappers:
            continue
        read = issubclass(made, _divergence._WRAPPERS)
        read = read or any(base in _divergence._READERS for base in made.__mro__)
        read = read and not is_refused(made)
        rule = predcp.kl._rules.get(made)
        if issubclass(made, _quadrature.TRUNCATED) or (
            rule is not None and rule.coarse is not None
        ):
            kind = "integrated, with an error that diagnose reports"
        else:
            kind = "accepted" if read else f"refused: {reason(made)}"
        found.setdefault(kind, []).append(name)
    with capsys.disabled():
        print()
        for kind, names in sorted(found.items()):
            print(f"{len(names)} NumPyro distributions are {kind}: {', '.join(names)}")
    assert len(found["accepted"]) >= 60
    assert len(found["integrated, with an error that diagnose reports"]) >= 15
    assert all(kind.strip(" :") != "refused" for kind in found)


def test_a_random_walk_is_its_steps_and_a_power_law_a_pareto():
    walks = [dist.GaussianRandomWalk(jnp.asarray([scale, 1.0]), 5) for scale in (1.7, 0.6)]
    roots = [scale * np.tril(np.ones((5, 5))) for scale in (1.7, 0.6)]
    vectors = [dist.MultivariateNormal(jnp.zeros(5), scale_tril=jnp.asarray(r)) for r in roots]
    for divergence in (predcp.kl, predcp.reverse_kl):
        expected = [divergence(*vectors), 0.0]
        np.testing.assert_allclose(divergence(*walks), expected, rtol=1e-12)
    laws = [dist.LowerTruncatedPowerLaw(-1.0 - alpha, 2.0) for alpha in (1.5, 4.0)]
    paretos = [dist.Pareto(2.0, alpha) for alpha in (1.5, 4.0)]
    np.testing.assert_allclose(predcp.kl(*laws), predcp.kl(*paretos), rtol=1e-14)


def test_what_a_rule_holds_fixed_may_not_move():
    with pytest.raises(ValueError, match="Gumbel.*same scale"):
        predcp.kl(dist.Gumbel(1.0, 2.0), dist.Gumbel(1.0, 3.0))
    with pytest.raises(ValueError, match="StudentT.*same df"):
        predcp.PredictiveComplexity(
            lambda theta, _: dist.StudentT(4.0 + theta**2, theta, 1.0),
            lambda tau, xi: tau * xi,
            0.0,
            None,
            jnp.ones(2),
        )


@pytest.mark.skipif(find_spec("tensorflow_probability") is not None, reason="it has the quantiles")
def test_a_truncated_distribution_whose_quantiles_need_another_library():
    truncated = dist.LeftTruncatedDistribution(dist.StudentT(4.0, 0.0, 1.0), low=-1.0)
    with pytest.raises(ValueError, match="truncated StudentT.*tensorflow_probability"):
        predcp.kl(truncated, truncated)


def test_what_a_rule_holds_fixed_may_not_move_inside_of_jit():
    start = jnp.asarray([4.0, 1.7])

    @jax.jit
    def found(numbers):
        # A number that is computed in two ways is the same.
        again = jnp.exp(jnp.log(numbers))
        heavy = dist.StudentT(again, 1.0, 1.0), dist.StudentT(start, 0.0, 1.0)
        lasting = dist.Weibull(1.5, again), dist.Weibull(1.0, start)
        return predcp.reverse_kl(*heavy), predcp.squared_hellinger(*lasting)

    same = (
        predcp.reverse_kl(dist.StudentT(1.7, 1.0, 1.0), dist.StudentT(1.7, 0.0, 1.0)),
        predcp.squared_hellinger(dist.Weibull(1.5, 1.7), dist.Weibull(1.0, 1.7)),
    )
    for got, known in zip(found(jnp.asarray([0.7, 1.7])), same):
        assert np.isnan(got[0])
        np.testing.assert_allclose(got[1], known, rtol=1e-6)


def test_a_traced_map_refuses_what_its_rule_holds_fixed():
    @jax.jit
    def kappa(x):
        return predcp.PredictiveComplexity(
            lambda theta, x: dist.Gumbel(0.0, jnp.exp(x * theta)),
            lambda tau, xi: tau * xi,
            0.0,
            x,
            jnp.ones(2),
        )(1.0)

    with pytest.raises(ValueError, match="needs the same scale .*depends on the scale"):
        kappa(jnp.ones(3))


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
    names = ("kl", "reverse_kl", "squared_hellinger")

    @jax.jit
    def program(p, q):
        return (p.log_prob(y), q.log_prob(y)), [DIVERGENCES[name](p, q) for name in names]

    logs, got = program(p, q)
    log_p, log_q = map(np.asarray, logs)
    density_p, density_q = np.exp(log_p), np.exp(log_q)
    integrands = (
        density_p * (log_p - log_q),
        density_q * (log_q - log_p),
        (np.sqrt(density_p) - np.sqrt(density_q)) ** 2 / 2,
    )
    for name, value, integrand in zip(names, got, integrands):
        whole = np.trapezoid(np.where(np.isfinite(integrand), integrand, 0.0), y)
        np.testing.assert_allclose(value, whole, rtol=2e-4, atol=1e-7, err_msg=name)


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
    "name,model,reference",
    [
        ("HurdleGamma", (0.3, 2.0, 1.0), (0.4, 3.0, 2.0)),
        ("HurdleLogNormal", (0.3, 0.2, 0.5), (0.4, 0.1, 0.6)),
    ],
)
@pytest.mark.skipif(not hasattr(dist, "HurdlePoisson"), reason="this NumPyro has no hurdles")
def test_amounts_behind_a_hurdle_match_integrals(name, model, reference):
    p, q = (getattr(dist, name)(*parameters) for parameters in (model, reference))
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


@pytest.mark.parametrize("size", [1e-6, 0.3, 3.0])
def test_multivariate_normals_whose_covariance_moves(size):
    root = jnp.asarray([[1.0, 0.0, 0.0], [0.5, 0.7, 0.0], [-0.3, 0.2, 1.5]])
    move = jnp.asarray([[0.4, 0.0, 0.0], [0.3, 0.9, 0.0], [-0.7, 0.6, 0.5]])
    p = dist.MultivariateNormal(size * jnp.asarray([1.0, 2.0, 0.0]), scale_tril=root + size * move)
    q = dist.MultivariateNormal(jnp.zeros(3), scale_tril=root)
    # NumPyro's formula cancels near equality, where KL is a quadratic form.
    tolerance = 1e-13 if size > 0.1 else 1e-3
    np.testing.assert_allclose(jax.jit(predcp.kl)(p, q), kl_divergence(p, q), rtol=tolerance)


def test_a_concentration_that_moves_alone():
    """KL has a limit where counts come to be Poisson or 0; reverse KL grows with the log at 0."""
    mean = 3.0

    def both(log_n):
        p, q = dist.NegativeBinomial2(mean, jnp.exp(log_n)), dist.NegativeBinomial2(mean, 1.0)
        return predcp.kl(p, q), predcp.reverse_kl(p, q)

    found, back = jax.jit(jax.vmap(both))(jnp.asarray([-61.0, -60.0, 60.0]))
    rare = math.log(1.0 + mean) + mean * math.log((1.0 + mean) / mean)
    y = np.arange(200)
    poisson = scipy.stats.poisson(mean)
    likely = poisson.logpmf(y) - scipy.stats.nbinom(1.0, 1.0 / (1.0 + mean)).logpmf(y)
    np.testing.assert_allclose(found, [rare, rare, poisson.pmf(y) @ likely], rtol=1e-9)
    np.testing.assert_allclose(back[0] - back[1], mean / (1.0 + mean), rtol=1e-9)
    single = predcp.kl.rule(dist.GammaPoisson, {"log_concentration"})
    start = {name: jnp.ones((), jnp.float32) for name in ("logits", "log_concentration")}
    terms = jax.eval_shape(
        single.value, start | {"log_mean": 2.0 * start["logits"]}, start | {"log_mean": start["logits"]},
        jnp.zeros((), jnp.float32),
    )  # fmt: skip
    assert {leaf.dtype for leaf in jax.tree.leaves(terms)} == {jnp.dtype("float32")}

    def bounded(divergence, likelihood):
        x, noise = jnp.ones((1, 1)), jnp.asarray([[1.0], [-1.0]])
        return predcp.PredictiveComplexity(
            lambda theta, x: likelihood(x @ theta), lambda tau, xi: tau * xi, jnp.zeros(1), x, noise,
            divergence=divergence,
        ).bounded  # fmt: skip

    alone = lambda eta: dist.NegativeBinomial2(mean, jnp.exp(eta))  # noqa: E731
    assert bounded(predcp.kl, alone) and not bounded(predcp.reverse_kl, alone)
    assert not bounded(predcp.kl, lambda eta: dist.NegativeBinomial2(jnp.exp(eta), jnp.exp(eta)))


def test_a_gate_that_moves_alone_keeps_its_elasticity_where_it_saturates():
    """q (1 - open) is below the smallest number of single precision; its log is not."""
    complexity = predcp.PredictiveComplexity(
        lambda theta, x: dist.ZeroInflatedPoisson(jax.nn.sigmoid(theta * x), 2.0 * jnp.ones(1)),
        lambda tau, xi: tau * xi,
        jnp.zeros((), jnp.float32),
        jnp.ones(1, jnp.float32),
        jnp.ones(1, jnp.float32),
    )
    for eta in (200.0, 1e6):
        log_kappa, log_elasticity = complexity.log_value_and_elasticity(jnp.float32(np.log(eta)))
        # The log of q, the probability of a count that is not zero, and its log odds, which differ by q.
        log_q, log_q0 = np.log1p(-np.exp(-2.0)) - eta, np.log1p(-np.exp(-2.0)) - np.log(2.0)
        start = log_q0 - np.log1p(-np.exp(log_q0))
        np.testing.assert_allclose(np.exp(log_kappa), -np.log1p(-np.exp(log_q0)), rtol=1e-5)
        expected = np.log(eta * (start - log_q)) + log_q - float(log_kappa)
        np.testing.assert_allclose(log_elasticity, expected, rtol=1e-5)
