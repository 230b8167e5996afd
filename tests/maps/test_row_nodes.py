"""Rows whose predictor is normal are integrated by quadrature: against closed forms and mpmath."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import predcp

X = np.array([[1.0, 0.5], [-0.3, 2.0], [0.0, 0.0], [0.7, -1.1]])
SPREAD = np.linalg.norm(X, axis=1)
NOISE = predcp.normal_noise(jax.random.key(0), 4, (2,))


def linear(likelihood, nodes=32, dtype=jnp.float64):
    made = predcp.PredictiveComplexity(
        lambda theta, x: likelihood(x @ theta),
        lambda tau, xi: tau * xi,
        jnp.zeros(2, dtype),
        jnp.asarray(X, dtype),
        NOISE.astype(dtype),
    )
    return made.by_quadrature(nodes)


def poisson(rate, variances):
    """`E KL[Poisson(m e^h) || Poisson(m)]` for `h ~ N(0, w)`; by its series where it cancels."""
    w = np.asarray(variances)
    series = w / 2 + 3 * w**2 / 8 + 5 * w**3 / 48
    return rate * np.where(w < 1e-4, series, w * np.exp(w / 2) - np.expm1(w / 2))


def test_counts_of_any_base_rate_are_exact():
    made = linear(lambda eta: dist.Poisson(0.01 * jnp.exp(eta)))
    for tau in (1e-8, 1e-3, 0.1, 0.5, 1.0):
        np.testing.assert_allclose(
            made(tau), np.mean(poisson(0.01, tau**2 * SPREAD**2)), rtol=1e-10
        )


def test_normal_observations_need_two_nodes():
    made = linear(lambda eta: dist.Normal(eta, 0.5), nodes=2)
    np.testing.assert_allclose(made(0.3), np.mean(0.09 * SPREAD**2) / 0.5, rtol=1e-12)


# Nodes of a bounded divergence lie close to 0, where coins change if the scale is large.
@pytest.mark.parametrize(("tau", "error"), [(1e-6, 1e-9), (0.1, 1e-4), (1.0, 1e-4), (30.0, 3e-4)])
def test_coins_against_mpmath(tau, error):
    made = linear(lambda eta: dist.Bernoulli(logits=0.4 + eta))

    def kl(t, size):
        start = mp.mpf("0.4")
        here = start + size * t
        change = mp.log1p(mp.exp(here)) - mp.log1p(mp.exp(start))
        return size * t / (1 + mp.exp(-here)) - change

    with mp.workdps(40):
        parts = [
            mp.quad(lambda t, s=s: kl(t, s) * mp.npdf(t), [-12, -4, -1, -0.1, 0, 0.1, 1, 4, 12])
            for s in map(mp.mpf, tau * SPREAD)
        ]
        known = float(mp.fsum(parts) / len(parts))
    np.testing.assert_allclose(made(tau), known, rtol=error)


def test_the_elasticity_is_the_slope_and_the_gradient_is_finite():
    made = linear(lambda eta: dist.Poisson(0.1 * jnp.exp(eta)))
    _, log_elasticity = made.log_value_and_elasticity(jnp.log(0.4))
    above, below = (made.log_value_and_elasticity(jnp.log(0.4) + h)[0] for h in (1e-5, -1e-5))
    np.testing.assert_allclose(jnp.exp(log_elasticity), (above - below) / 2e-5, rtol=1e-7)

    def by_design(x):
        def likelihood(theta, x):
            return dist.Poisson(0.1 * jnp.exp(x @ theta))

        arguments = (likelihood, lambda tau, xi: tau * xi, jnp.zeros(2), x, NOISE)
        return predcp.PredictiveComplexity(*arguments).by_quadrature()(0.4)

    slope = jax.grad(by_design)(jnp.asarray(X))
    step = np.zeros_like(X)
    step[1, 1] = 1e-6
    change = by_design(jnp.asarray(X + step)) - by_design(jnp.asarray(X - step))
    np.testing.assert_allclose(slope[1, 1], change / 2e-6, rtol=1e-5)
    # The row that no effect reaches has no slope.
    assert np.all(np.isfinite(slope)) and np.all(slope[2] == 0.0)


def test_bounded_maps_reach_their_supremum():
    made = linear(lambda eta: dist.Bernoulli(logits=eta), nodes=7)
    np.testing.assert_allclose(made.supremum, 0.75 * np.log(2.0), rtol=1e-6)


def test_single_precision():
    rate, tau = jnp.float32(0.01), jnp.float32(0.5)
    made = linear(lambda eta: dist.Poisson(rate * jnp.exp(eta)), dtype=jnp.float32)
    assert made(tau).dtype == jnp.float32
    np.testing.assert_allclose(made(tau), np.mean(poisson(0.01, 0.25 * SPREAD**2)), rtol=1e-5)


@pytest.mark.parametrize(
    ("likelihood", "parameters", "reason"),
    [
        (lambda t, x: dist.Normal(x @ t, 1.0), lambda tau, xi: tau * jnp.abs(xi), "not linear"),
        (
            lambda t, x: dist.Normal(jnp.tanh(x @ t), 1.0),
            lambda tau, xi: tau * xi,
            "not move as a power",
        ),
        (lambda t, x: dist.Categorical(logits=t), lambda tau, xi: tau * xi, "several coordinates"),
    ],
)
def test_what_cannot_be_integrated_is_refused_or_keeps_its_draws(likelihood, parameters, reason):
    made = predcp.PredictiveComplexity(likelihood, parameters, jnp.zeros(2), jnp.asarray(X), NOISE)
    with pytest.raises(ValueError, match=reason):
        made.by_quadrature()
    assert made.by_quadrature(required=False) is made


GROUP = np.arange(40) % 8
SLOPE = np.linspace(-1.7, 1.7, 40)


def rare(y=None):
    """Counts at base rate .01 with two components."""
    groups = numpyro.sample("groups", dist.HalfNormal(1.0))
    slope = numpyro.sample("slope", dist.HalfNormal(1.0))
    with numpyro.plate("eight", 8):
        effect = numpyro.sample("effect", dist.Normal(0.0, groups))
    weight = numpyro.sample("weight", dist.Normal(0.0, 1.0))
    rate = 0.01 * jnp.exp(effect[GROUP] + slope * weight * SLOPE)
    numpyro.sample("y", dist.Poisson(rate), obs=y)


def test_the_promise_holds_through_the_door_for_rare_counts():
    """`P(kappa > u)` under the program's prior, at the scale where the exact divergence is u."""
    made = predcp.complexity_of(rare, "groups", jnp.ones(40), off=["slope"])
    low, high = 0.1, 5.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if poisson(0.01, middle**2) < 0.1 else (low, middle)
    pi = predcp.Exponential.from_tail(0.1, 0.1)
    np.testing.assert_allclose(1.0 - pi.cdf(made(low)), 0.1, atol=1e-4)
    draws = predcp.complexity_of(rare, "groups", jnp.ones(40), off=["slope"], method="sobol")
    assert 1.0 - pi.cdf(draws(low)) > 0.2


def test_all_components_of_rare_counts_together_are_exact():
    budget = predcp.Budget({"groups": 1.0, "slope": 1.0}, predcp.Exponential(mean=0.1))
    prior = predcp.budget_of(rare, budget, jnp.ones(40), total="together")
    for tau in ([0.5, 1e-3], [1.2, 0.4], [0.1, 1.1]):
        variances = tau[0] ** 2 + tau[1] ** 2 * SLOPE**2
        known = np.mean(poisson(0.01, variances))
        np.testing.assert_allclose(prior.complexity.together(jnp.asarray(tau)), known, rtol=1e-6)


def horseshoe(x, y=None):
    """Local scales change the size of each predictor."""
    tau = numpyro.sample("tau", dist.HalfCauchy(1.0))
    local = numpyro.sample("local", dist.HalfCauchy(1.0).expand([2]).to_event(1))
    level = numpyro.sample("level", dist.Normal(0.0, 0.5))
    beta = numpyro.sample("beta", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    numpyro.sample("y", dist.Poisson(jnp.exp(level + x @ (tau * local * beta))), obs=y)


def test_sizes_that_change_with_the_rest_follow_it():
    x, rest = jnp.asarray(X), {"local": jnp.asarray([0.5, 1.5]), "level": 0.3}
    made = predcp.complexity_of(horseshoe, "tau", x, jnp.ones(4), rest=rest, noise_draws=32)
    variances = 0.09 * np.sum((X * rest["local"]) ** 2, axis=1)
    np.testing.assert_allclose(made(0.3), np.mean(poisson(np.exp(0.3), variances)), rtol=1e-9)
    # Under a trace, as in a sampler.
    moved = jax.jit(
        lambda local: predcp.complexity_of(
            horseshoe, "tau", x, jnp.ones(4), rest={"local": local, "level": 0.3}, noise_draws=32
        )(0.3)
    )
    np.testing.assert_allclose(moved(rest["local"]), made(0.3), rtol=1e-12)


def test_sizes_that_stay_are_known_while_the_program_is_traced():
    args, key = (jnp.asarray(X), np.ones(4)), jax.random.key(0)

    def kappa(level):
        options = {"rest": {"level": level}, "noise_draws": 32, "key": key}
        made = predcp.complexity_of(rare_slopes, "tau", *args, **options)
        assert made.sizes is not None
        return made(0.3)

    known = np.mean(poisson(np.exp(0.3), 0.09 * SPREAD**2))
    np.testing.assert_allclose(jax.jit(kappa)(0.3), known, rtol=1e-9)
    np.testing.assert_allclose(jax.grad(kappa)(0.3), known, rtol=1e-9)


def rare_slopes(x, y=None):
    tau = numpyro.sample("tau", dist.HalfCauchy(1.0))
    level = numpyro.sample("level", dist.Normal(0.0, 0.5))
    beta = numpyro.sample("beta", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    numpyro.sample("y", dist.Poisson(jnp.exp(level + x @ (tau * beta))), obs=y)


def test_each_draw_of_the_rest_has_its_own_nodes():
    x = jnp.asarray(X)
    made = predcp.complexity_of(horseshoe, "tau", x, jnp.ones(4), noise_draws=16)
    drawn = made.noise["rest"]
    variances = 0.01 * np.einsum("nd,sd->sn", X**2, np.asarray(drawn["local"]) ** 2)
    rates = np.exp(np.asarray(drawn["level"]))[:, None]
    kept = np.all(variances < 2.0, axis=1)
    by_draw = np.exp(made.log_value_by_draw(jnp.log(0.1)))
    known = np.mean(poisson(rates, variances), axis=1)
    assert kept.sum() > 8
    np.testing.assert_allclose(by_draw[kept], known[kept], rtol=1e-6)
    np.testing.assert_allclose(made(0.1), by_draw.mean(), rtol=1e-12)
