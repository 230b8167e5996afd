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


def test_what_falls_or_levels_off_is_refused():
    for bend, reason in ((jnp.sin, "not a bijection"), (jnp.tanh, "levels off at 5.32")):
        made = joint(lambda beta, x, bend=bend: dist.Normal(bend(x @ beta), 0.7))
        found = predcp.diagnose(predcp.ComplexityPrior(predcp.Exponential(mean=0.3), made))
        assert found.verdict == "refuse" and reason in found.reasons[0]


def test_what_grows_beyond_floating_point_is_accepted():
    def rates(beta, x):
        return dist.Gamma(3.0, 3.0 * jnp.exp(-x @ beta))

    found = predcp.diagnose(predcp.ComplexityPrior(predcp.Exponential(mean=0.3), joint(rates)))
    assert found.verdict == "accept"


def test_a_network_whose_predictions_move_in_few_directions():
    """Its covariance has eigenvalues that are 0, whose rounding a large scale must not magnify."""
    shapes = {"body": (3, 4), "head": (4,)}
    made = predcp.JointComplexity(
        lambda theta, x: dist.Normal(jnp.tanh(x @ theta["body"]) @ theta["head"], 0.7),
        lambda tau, xi: jax.tree.map(lambda each: jnp.sqrt(tau) * each, xi),
        jax.tree.map(jnp.zeros, shapes, is_leaf=lambda leaf: isinstance(leaf, tuple)),
        DESIGN,
        predcp.normal_noise(jax.random.key(0), 16, shapes, method="antithetic"),
    )
    log_kappa, log_elasticity = made.log_value_and_elasticity(jnp.asarray([30.0, 80.0]))
    # The hidden units have saturated, and the head is linear in the noise.
    np.testing.assert_allclose(log_elasticity, 0.0, atol=1e-10)
    np.testing.assert_allclose(log_kappa[1] - log_kappa[0], 50.0, rtol=1e-10)
    found = predcp.diagnose(predcp.ComplexityPrior(predcp.Exponential(mean=0.3), made))
    assert found.verdict == "accept"


def test_masked_observations_are_left_out():
    kept = np.arange(8) < 4
    masks = {
        "inside": lambda b, x: dist.Normal(x @ b, 0.7).mask(kept).to_event(1),
        "outside": lambda b, x: dist.Normal(x @ b, 0.7).mask(kept),
    }
    expected = predcp.LinearEvidence(DESIGN[kept], 0.7)(0.3)
    for likelihood in masks.values():
        np.testing.assert_allclose(joint(likelihood)(0.3), expected, rtol=1e-10)


def test_noise_that_is_not_standard_normal_is_used_as_it_is():
    wide = joint(noise=3.0 * NOISE)
    assert joint().linear and not wide.linear
    means = np.asarray(root(0.4, 3.0 * NOISE) @ DESIGN.T)
    ones = {"mean": np.zeros(8), "variance": np.full(8, 0.49)}
    expected = dense(means, np.full((16, 8), 0.49), ones)
    np.testing.assert_allclose(wide(0.4), expected, rtol=1e-8)
    random = np.random.default_rng(0).normal(size=(64, 3))
    same = random[:, :1] * np.ones(3)
    assert not joint(noise=np.abs(random)).linear and not joint(noise=same).linear


def test_bad_input_is_refused_by_name():
    with pytest.raises(
        ValueError, match="CategoricalLogits observations have no finite mean.*Predictive"
    ):
        joint(lambda beta, x: dist.Categorical(logits=x[:, :2] * beta[:2]))
    with pytest.raises(ValueError, match="reference must be parameters"):
        predcp.JointComplexity(normal, root, lambda xi: jnp.zeros(3), DESIGN, NOISE)
    with pytest.raises(ValueError, match="must be independent given theta, got MultivariateNormal"):
        joint(lambda beta, x: dist.MultivariateNormal(x @ beta, jnp.eye(8)))
