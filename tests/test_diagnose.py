"""The diagnosis: accepted, truncated, warned about, refused, each with its reason."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import predcp
from tests.catalogue import DESIGN, HIDDEN, NOISE, OUTPUT, WEIGHTS, coin, scaled
from tests.clock import slowness

PI = predcp.LogCauchy(scale=1.0)


def diagnose(complexity, **options):
    return predcp.diagnose(predcp.ComplexityPrior(PI, complexity, **options))


def test_evidence_is_accepted_with_mass_one():
    found = diagnose(predcp.LinearEvidence(DESIGN))
    assert found.verdict == "accept" and found.supremum == np.inf
    np.testing.assert_allclose(found.mass, 1.0, atol=1e-8)
    assert "without bound" in str(found)


def test_a_coin_is_truncated_and_its_printed_form_is_not_proper():
    complexity = predcp.PredictiveComplexity(coin, scaled, jnp.zeros(3), DESIGN, NOISE)
    found = diagnose(complexity)
    assert found.verdict == "truncate"
    np.testing.assert_allclose(found.mass, 1.0, atol=1e-7)
    np.testing.assert_allclose(found.supremum, np.log(2), rtol=1e-12)
    assert "an average over trials" in str(found)
    assert 0.0 < found.entries[0].monte_carlo_error < 1.0
    assert found.entries[0].flat_above < 1e6
    printed = diagnose(complexity, truncate=False)
    assert printed.verdict == "warn"
    np.testing.assert_allclose(printed.mass, 0.388, atol=5e-4)


def test_depth_is_accepted_and_batch_normalisation_after_the_weights_refused():
    assert diagnose(predcp.DepthComplexity(HIDDEN, WEIGHTS, OUTPUT)).verdict == "accept"

    def after(inner):
        return jax.nn.relu((inner - inner.mean(0)) / jnp.sqrt(inner.var(0)))

    found = diagnose(predcp.DepthComplexity(HIDDEN, WEIGHTS, OUTPUT, activation=after))
    assert found.verdict == "refuse" and "normalise before the weights" in found.reasons[0]


def test_the_literal_plain_network_is_refused():
    complexity = predcp.DepthComplexity(
        HIDDEN, WEIGHTS, OUTPUT, residual=False, reference="short-circuit"
    )
    found = diagnose(complexity)
    assert found.verdict == "refuse" and "not 0, as tau goes to 0" in found.reasons[0]


def test_a_model_that_levels_off_is_refused_until_declared_bounded():
    def likelihood(theta, x):
        return dist.Normal(jnp.tanh(x @ theta), 1.0)

    arguments = (likelihood, scaled, jnp.zeros(3), DESIGN, NOISE)
    found = diagnose(predcp.PredictiveComplexity(*arguments))
    assert found.verdict == "refuse" and "bounded=True" in found.reasons[0]
    assert diagnose(predcp.PredictiveComplexity(*arguments, bounded=True)).verdict == "truncate"


def test_a_real_dip_is_refused_and_one_within_noise_warned_about():
    # cos(theta) brings the location back towards the reference: a fall in every draw.
    def waving(theta, x):
        return dist.Normal(theta + 1.5 * jnp.sin(theta), 1.0)

    steady = jnp.linspace(1.0, 1.02, 50)
    found = diagnose(
        predcp.PredictiveComplexity(waving, lambda tau, xi: tau * xi, 0.0, None, steady)
    )
    assert found.verdict == "refuse" and "beyond the Monte Carlo error" in found.reasons[0]
    assert found.entries[0].dip > 0.01
    mixed = predcp.PredictiveComplexity(
        waving, lambda tau, xi: tau * xi, 0.0, None, jnp.asarray([1.0, 0.02])
    )
    found = diagnose(mixed)
    assert found.verdict == "warn" and "use more" in found.reasons[0]


def test_few_evaluations_serve():
    asked = []

    class Counted(predcp.ScalarComplexity):
        unit = "standard deviation"

        def bind(self):
            def evaluate(log_tau):
                jax.debug.callback(lambda u: asked.append(None), log_tau)
                return 2.0 * log_tau - 0.3, jnp.log(2.0)

            return evaluate

    found = diagnose(Counted())
    jax.effects_barrier()
    assert found.verdict == "accept" and len(asked) <= 1200
    np.testing.assert_allclose(found.mass, 1.0, atol=1e-8)


@pytest.mark.parametrize("scale", [0.02, 0.3, 20.0])
def test_the_mass_is_found_for_narrow_and_wide_pi(scale):
    pi = predcp.LogCauchy(scale=scale, loc=3.0)
    found = predcp.diagnose(predcp.ComplexityPrior(pi, predcp.LinearEvidence(DESIGN)))
    np.testing.assert_allclose(found.mass, 1.0, atol=2e-6)


def test_a_thousand_rows_take_seconds():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(1000, 5)))
    noise = predcp.normal_noise(jax.random.key(0), 10, (5,))
    complexity = predcp.PredictiveComplexity(coin, scaled, jnp.zeros(5), x, noise)
    start = time.perf_counter()
    assert diagnose(complexity).verdict == "truncate"
    # The bar is 15 s on an idle machine; other programs may run beside the tests.
    assert time.perf_counter() - start < 60.0 * slowness()


def test_a_wrong_slope_is_refused():
    class Wrong(predcp.ScalarComplexity):
        unit = "variance"

        def bind(self):
            return lambda log_tau: (log_tau, jnp.log(1.5))

    found = diagnose(Wrong())
    assert found.verdict == "refuse" and "has mass 1.5 instead of 1" in found.reasons[0]


def test_batches_and_strangers_are_refused_by_name():
    batch = predcp.ComplexityPrior(PI, predcp.LinearEvidence(jnp.ones((2, 3, 1))))
    with pytest.raises(ValueError, match="must not be a batch"):
        predcp.diagnose(batch)
    with pytest.raises(ValueError, match="must be a ComplexityPrior"):
        predcp.diagnose(dist.HalfCauchy(1.0))
