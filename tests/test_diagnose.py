"""The diagnosis: accepted, truncated, warned about, refused, each with its reason."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import predcp
from tests.catalogue import DESIGN, HIDDEN, NOISE, OUTPUT, WEIGHTS, coin, scaled

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


def test_batches_and_strangers_are_refused_by_name():
    batch = predcp.ComplexityPrior(PI, predcp.LinearEvidence(jnp.ones((2, 3, 1))))
    with pytest.raises(ValueError, match="must not be a batch"):
        predcp.diagnose(batch)
    with pytest.raises(ValueError, match="must be a ComplexityPrior"):
        predcp.diagnose(dist.HalfCauchy(1.0))
