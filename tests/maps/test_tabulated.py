"""A tabulated prior is the prior: density, gradient, quantiles, ends, precision, batches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.catalogue import DESIGN, SCALAR_MAPS, VECTOR_MAPS

import predcp

PRIORS = {
    "log-cauchy": predcp.LogCauchy(scale=1.0),
    "exponential": predcp.Exponential(mean=0.5),
}


@pytest.mark.parametrize("name,pi", [
    ("linear", "log-cauchy"), ("linear", "exponential"), ("coin", "exponential"),
    ("poisson", "log-cauchy"), ("penalised", "exponential"),
    pytest.param("hellinger", "log-cauchy", marks=pytest.mark.long),
    pytest.param("logistic", "exponential", marks=pytest.mark.long),
])  # fmt: skip
def test_the_table_is_the_prior(name, pi):
    prior = predcp.ComplexityPrior(PRIORS[pi], SCALAR_MAPS[name]())
    quick = prior.tabulated()
    assert isinstance(quick.complexity, predcp.TabulatedComplexity)
    assert quick.complexity.unit == prior.complexity.unit
    assert quick.complexity.bounded == prior.complexity.bounded
    # Not the points that were checked when the table was made.
    log_tau = jnp.asarray(np.random.default_rng(3).uniform(-60.0, 25.0, 4000))
    exact, got = (each.log_scale().log_prob(log_tau) for each in (prior, quick))
    counted = np.asarray(exact > jnp.max(exact) - 100.0)
    np.testing.assert_allclose(got[counted], exact[counted], rtol=0, atol=1e-8)
    # NUTS takes steps along gradients.
    slope = jax.jit(jax.vmap(jax.grad(lambda u, prior: prior.log_scale().log_prob(u)), (0, None)))
    # Farther up the map's own slope of an exponential rate has fewer digits than the table's.
    counted = counted & np.asarray(log_tau < 12.0)
    exact, got = slope(log_tau, prior), slope(log_tau, quick)
    # Where kappa itself overflows, an exponential has no density left: the slope is -inf, never NaN.
    wide = jnp.linspace(-600.0, 600.0, 4000)
    none_left = np.asarray(quick.log_scale().log_prob(wide)) < -1e300
    assert np.all(np.isfinite(slope(wide, quick)) | (none_left & np.isneginf(slope(wide, quick))))
    np.testing.assert_allclose(got[counted], exact[counted], rtol=1e-6, atol=1e-6)
    q = jnp.asarray([0.05, 0.5, 0.9])
    np.testing.assert_allclose(quick.icdf(q), prior.icdf(q), rtol=1e-9)
    np.testing.assert_allclose(quick.cdf(quick.icdf(q)), q, rtol=1e-10)
    np.testing.assert_allclose(quick.complexity.supremum, prior.complexity.supremum, rtol=1e-14)
    grid = jnp.linspace(-40.0, 20.0, 5001)
    rises = np.diff(quick.complexity.log_value_and_elasticity(grid)[0])
    assert np.all(rises >= -1e-12)
    # Power laws continue without end.
    far = jnp.asarray([-1e6, -500.0])
    np.testing.assert_allclose(
        quick.complexity.log_value_and_elasticity(far),
        prior.complexity.log_value_and_elasticity(far),
        rtol=1e-9,
        atol=1e-9,
    )


def test_a_table_is_a_pytree_and_a_new_one_is_not_traced_again():
    traces = []

    @jax.jit
    def density(prior, log_tau):
        traces.append(None)
        return prior.log_scale().log_prob(log_tau)

    for noise in (1.0, 3.0):
        prior = predcp.ComplexityPrior(
            predcp.LogCauchy(scale=1.0), predcp.LinearEvidence(DESIGN, noise)
        )
        quick = prior.tabulated()
        np.testing.assert_allclose(
            density(quick, 0.3), prior.log_scale().log_prob(0.3), rtol=0, atol=1e-8
        )
    # Equal shapes of the two tables: a noise shifts log tau.
    assert len(traces) == 1


def test_a_table_is_made_inside_a_model_that_is_traced():
    prior = predcp.ComplexityPrior(PRIORS["log-cauchy"], SCALAR_MAPS["linear"]())
    wanted = prior.log_scale().log_prob(0.3)
    density = jax.jit(lambda log_tau: prior.tabulated().log_scale().log_prob(log_tau))
    np.testing.assert_allclose(density(0.3), wanted, atol=1e-8)


def test_batches_and_single_precision():
    designs = jnp.stack([DESIGN, 10.0 * DESIGN])
    prior = predcp.ComplexityPrior(predcp.Exponential(mean=0.5), predcp.LinearEvidence(designs))
    quick = prior.tabulated()
    log_tau = jnp.linspace(-20.0, 5.0, 400)[:, None]
    exact, got = (each.log_scale().log_prob(log_tau) for each in (prior, quick))
    # Log densities go down to -300,000 here; 1e-8 is promised within 100 of the maximum.
    np.testing.assert_allclose(got, exact, rtol=1e-10, atol=1e-8)
    counted = np.asarray(exact > exact.max(0) - 100.0)
    np.testing.assert_allclose(got[counted], exact[counted], rtol=0, atol=1e-8)
    assert quick.sample(jax.random.key(0), (3,)).shape == (3, 2)
    single = predcp.ComplexityPrior(
        predcp.Exponential(mean=jnp.float32(0.5)),
        predcp.LinearEvidence(DESIGN.astype(jnp.float32), jnp.float32(1.0)),
    )
    quick = single.tabulated()
    points = jnp.linspace(-20.0, 2.0, 400, dtype=jnp.float32)
    got = quick.log_scale().log_prob(points)
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, single.log_scale().log_prob(points), rtol=1e-5, atol=2e-4)


def test_what_cannot_be_tabulated_is_refused():
    pi = predcp.LogCauchy(scale=1.0)
    with pytest.raises(ValueError, match="must be a map of one scale, got ModularComplexity of 2"):
        predcp.ComplexityPrior(pi, VECTOR_MAPS["modular"]()).tabulated()
    with pytest.raises(ValueError, match="complexity must not be traced"):
        jax.jit(lambda noise: predcp.TabulatedComplexity(predcp.LinearEvidence(DESIGN, noise)).low)(
            1.0
        )

    class Rough(predcp.ScalarComplexity):
        unit = "variance"

        def bind(self):
            # Slopes of 1 and 2 in turn.
            return lambda u: (
                1.5 * u + 0.5 * jnp.abs(u % 2.0 - 1.0),
                jnp.log(jnp.where(u % 2.0 < 1.0, 1.0, 2.0)),
            )

    with pytest.raises(ValueError, match="not smooth enough"):
        predcp.TabulatedComplexity(Rough())
