"""What a user's type checker sees; nothing here is run."""

from typing import assert_type

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from surgery import surgery

import predcp

x = jnp.ones((40, 3))


def likelihood(beta: jax.Array, x: jax.Array) -> dist.Distribution:
    return dist.Bernoulli(logits=x @ beta)


noise = predcp.normal_noise(jax.random.key(0), 16, (3,))
assert_type(noise, jax.Array)
complexity = predcp.PredictiveComplexity(
    likelihood, lambda tau, xi: tau * xi, jnp.zeros(3), x, noise
)
prior = predcp.ComplexityPrior(predcp.Exponential(mean=0.3), complexity)
assert_type(prior.log_prob(jnp.ones(2)), jax.Array)
assert_type(prior.icdf(0.5), jax.Array)
assert_type(prior.tabulated(), predcp.ComplexityPrior)
assert_type(prior.to_stan("tau_prior"), str)
stated = predcp.ComplexityPrior.from_tail(predcp.HalfCauchy, complexity, 0.3, 0.05)
assert_type(stated, predcp.ComplexityPrior)
found = predcp.audit(surgery, jnp.ones(4), jnp.ones(4))
assert_type(found, predcp.Audit)
assert_type(found.words, str)
assert_type(found["sigma"].kappa, tuple[float, ...])
made = predcp.complexity_of(surgery, "sigma", jnp.ones(4), jnp.ones(4), noise_draws=8)
assert_type(made, predcp.ProgramComplexity)
better = predcp.with_complexity(surgery, {"sigma": predcp.tail(odds_ratio=2.0, probability=0.05)})
better(jnp.ones(4), deaths=jnp.ones(4))
model = predcp.linear.LogisticRegression(prior="predcp", inference="laplace")
assert_type(model, predcp.linear.LogisticRegression)
report = predcp.diagnose(prior)
assert_type(str(report), str)

# Every other kind of thing that users make, with the names that they have.
for pi in (
    predcp.LogCauchy(scale=1.0, loc=-2.0),
    predcp.Gamma(shape=0.4, scale=1.5),
    predcp.GammaExponential(weight=0.3),
):
    assert_type(predcp.ComplexityPrior(pi, predcp.LinearEvidence(x)), predcp.ComplexityPrior)
assert_type(prior.to_inla("log precision"), str)
assert_type(prior.survival(1.0), jax.Array)
assert_type(prior.sample(jax.random.key(0), (3,)), jax.Array)
assert_type(prior.complexity(jnp.ones(())), jax.Array)
assert_type(predcp.kl(dist.Normal(0.0, 1.0), dist.Normal(1.0, 1.0)), jax.Array)
assert_type(predcp.tail_probability(prior, 1.0), jax.Array)
depth = predcp.DepthComplexity(jnp.ones((6, 4)), jnp.ones((2, 3, 4, 4)), jnp.ones((4, 1)))
assert_type(predcp.ComplexityPrior(predcp.HalfCauchy(0.4), depth).event_shape, tuple[int, ...])
regression = predcp.linear.LinearRegression(prior="predcp").fit([[0.0], [1.0]], [0.0, 1.0])
assert_type(regression, predcp.linear.LinearRegression)
words: str = found["sigma"].words
verdict: str = report.verdict
