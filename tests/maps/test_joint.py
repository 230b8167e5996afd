"""Predictions that move together: exact for linear models, the Gaussian of the draws otherwise."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from tests.catalogue import DESIGN, PHI, coin, normal, poisson

import predcp

NOISE = predcp.normal_noise(jax.random.key(0), 16, (3,), method="antithetic")
TAUS = jnp.asarray([1e-12, 1e-5, 0.01, 0.4, 3.0, 1e3, 1e8])


def root(tau, xi):
    return jnp.sqrt(tau) * xi


def bent(tau, xi):
    """No power of tau, but linear in the noise."""
    return jnp.sqrt(tau + tau**2) * xi


def joint(likelihood=normal, parameters=root, noise=NOISE, **options):
    return predcp.JointComplexity(likelihood, parameters, jnp.zeros(3), DESIGN, noise, **options)


def test_a_linear_model_has_the_evidence_of_its_design():
    exact = predcp.LinearEvidence(DESIGN, 0.7)
    powers, passes = joint(), joint(parameters=bent)
    assert powers.power is not None and passes.power is None and powers.linear and passes.linear
    for log_ours, log_theirs in (
        (
            powers.log_value_and_elasticity(jnp.log(TAUS)),
            exact.log_value_and_elasticity(jnp.log(TAUS)),
        ),
        (
            passes.log_value_and_elasticity(jnp.log(TAUS))[:1],
            exact.log_value_and_elasticity(jnp.log(TAUS + TAUS**2))[:1],
        ),
    ):
        for ours, theirs in zip(log_ours, log_theirs):
            np.testing.assert_allclose(np.exp(ours), np.exp(theirs), rtol=1e-8)
    assert powers.unit == "variance"


def dense(means, variances, start):
    """The same divergence with full matrices."""
    centre = means.mean(0)
    moved = means - centre
    covariance = np.diag(variances.mean(0)) + moved.T @ moved / len(means)
    inverse = np.diag(1.0 / start["variance"])
    gap = centre - start["mean"]
    _, log_det = np.linalg.slogdet(inverse @ covariance)
    return 0.5 * (np.trace(inverse @ covariance) - len(gap) - log_det + gap @ inverse @ gap)


@pytest.mark.parametrize("likelihood", [poisson, coin])
def test_the_gaussian_of_the_draws(likelihood):
    complexity = joint(likelihood)
    assert not complexity.linear
    start = {name: np.asarray(leaf) for name, leaf in complexity._moments(jnp.zeros(3)).items()}
    for tau in (0.01, 0.3, 2.0):
        found = [likelihood(root(tau, xi), DESIGN) for xi in NOISE]
        means = np.stack([np.asarray(each.mean) for each in found])
        variances = np.stack([np.asarray(each.variance) for each in found])
        np.testing.assert_allclose(complexity(tau), dense(means, variances, start), rtol=1e-8)


def network(theta, x):
    return dist.Normal(x[:, :1] + jax.nn.relu(x @ theta["body"]) @ theta["head"], 0.7).to_event(1)


def branch(tau, xi):
    return {"body": PHI["body"], "head": jnp.sqrt(tau) * xi}


def test_a_residual_branch_is_a_power_and_a_deep_one_is_not():
    noise = predcp.normal_noise(jax.random.key(1), 8, (4, 2), method="antithetic")
    reference = {"body": PHI["body"], "head": jnp.zeros((4, 2))}
    head = predcp.JointComplexity(network, branch, reference, DESIGN, noise)
    assert head.linear and head.power is not None
    features = np.asarray(jax.nn.relu(DESIGN @ PHI["body"]))
    expected = 2.0 * predcp.LinearEvidence(features, 0.7)(0.6)
    np.testing.assert_allclose(head(0.6), expected, rtol=1e-8)


def test_the_point_wise_bound_exceeds_it_by_the_mutual_information():
    # Noise with exact first and second moments, so that both divergences are exact.
    points = np.sqrt(3.0) * jnp.concatenate([jnp.eye(3), -jnp.eye(3)])
    bound = predcp.PredictiveComplexity(normal, root, jnp.zeros(3), DESIGN, points)
    for tau in (0.01, 0.5, 5.0):
        covariance = np.eye(8) + tau * np.asarray(DESIGN @ DESIGN.T) / 0.49
        information = 0.5 * np.linalg.slogdet(covariance)[1]
        np.testing.assert_allclose(joint()(tau) + information, 8.0 * bound(tau), rtol=1e-10)


def test_diagnosis_of_bounded_and_unbounded_families():
    accepted = predcp.diagnose(predcp.ComplexityPrior(predcp.LogCauchy(), joint()))
    assert accepted.verdict == "accept"
    warned = predcp.diagnose(predcp.ComplexityPrior(predcp.Exponential(mean=0.3), joint(coin)))
    assert warned.verdict == "warn" and "without bound" in warned.reasons[-1]
    counts = predcp.diagnose(predcp.ComplexityPrior(predcp.LogCauchy(), joint(poisson)))
    assert counts.verdict == "accept"


def test_bad_input_is_refused_by_name():
    with pytest.raises(ValueError, match="reference must be parameters"):
        predcp.JointComplexity(normal, root, lambda xi: jnp.zeros(3), DESIGN, NOISE)
    with pytest.raises(ValueError, match="must be independent given theta, got MultivariateNormal"):
        joint(lambda beta, x: dist.MultivariateNormal(x @ beta, jnp.eye(8)))
