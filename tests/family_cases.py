"""Every registered family of observations, each parameterisation of it that a model may move.

A case is a function of the linear predictor `eta`, of shape (points,), to a NumPyro distribution. The
first case of some families runs by default, the others with `make test-long`.
"""

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.stats import norm

from predcp._divergences._beta_binomial import DirichletMultinomial
from predcp._divergences._mixture import mixture

softplus, sigmoid = jax.nn.softplus, jax.nn.sigmoid


def like(eta, value):
    return jnp.full_like(eta, value)


def classes(eta):
    return jnp.stack([eta, -eta, jnp.full_like(eta, 0.3)], axis=-1)


def cutpoints(eta):
    return jnp.asarray([-1.0, 0.5, 1.0], eta.dtype)


def root(eta):
    return jnp.asarray([[1.0, 0.0, 0.0], [0.5, 0.7, 0.0], [-0.3, 0.2, 1.5]], eta.dtype)


CASES = {
    dist.Normal: {
        "both": lambda eta: dist.Normal(eta, jnp.exp(eta - 0.2)),
        "loc": lambda eta: dist.Normal(eta, like(eta, 0.7)),
        "scale-exp": lambda eta: dist.Normal(like(eta, 0.3), jnp.exp(eta)),
        "scale-softplus": lambda eta: dist.Normal(like(eta, 0.3), softplus(eta)),
        "both-softplus": lambda eta: dist.Normal(eta, softplus(eta - 0.2)),
        "log-normal": lambda eta: dist.LogNormal(eta, like(eta, 0.7)),
        "half-normal": lambda eta: dist.HalfNormal(jnp.exp(eta)),
    },
    dist.StudentT: {
        "loc": lambda eta: dist.StudentT(like(eta, 4.0), eta, like(eta, 0.7)),
        "scale": lambda eta: dist.StudentT(like(eta, 4.0), like(eta, 0.0), jnp.exp(eta)),
        "both": lambda eta: dist.StudentT(like(eta, 1.0), eta, jnp.exp(eta)),
        "cauchy": lambda eta: dist.Cauchy(eta, like(eta, 0.7)),
        "half-cauchy": lambda eta: dist.HalfCauchy(jnp.exp(eta)),
        "both-softplus": lambda eta: dist.StudentT(like(eta, 30.0), eta, softplus(eta)),
    },
    dist.Poisson: {
        "softplus": lambda eta: dist.Poisson(softplus(eta)),
        "exp": lambda eta: dist.Poisson(jnp.exp(eta + 0.1)),
        "log1p-exp": lambda eta: dist.Poisson(jnp.log1p(jnp.exp(eta))),
        "log1p": lambda eta: dist.Poisson(1.0 + jnp.log1p(eta**2)),
        "identity": lambda eta: dist.Poisson(1.0 + eta**2),
    },
    dist.Bernoulli: {
        "probs": lambda eta: dist.Bernoulli(probs=sigmoid(eta)),
        "logits": lambda eta: dist.Bernoulli(logits=eta + 0.3),
        "complementary-log-log": lambda eta: dist.Bernoulli(probs=1.0 - jnp.exp(-jnp.exp(eta))),
        "expm1": lambda eta: dist.Bernoulli(probs=-jnp.expm1(-0.5 * jnp.exp(eta))),
        "log-log": lambda eta: dist.Bernoulli(probs=jnp.exp(-jnp.exp(-eta))),
        "probit": lambda eta: dist.Bernoulli(probs=norm.cdf(eta)),
        "erf": lambda eta: dist.Bernoulli(probs=0.5 * (1.0 + jax.scipy.special.erf(eta))),
    },
    dist.Binomial: {
        "logits": lambda eta: dist.Binomial(5, logits=eta),
        "probs": lambda eta: dist.Binomial(5, probs=sigmoid(eta)),
    },
    dist.OrderedLogistic: {
        "predictor": lambda eta: dist.OrderedLogistic(eta, cutpoints(eta)),
        "cutpoints": lambda eta: dist.OrderedLogistic(
            like(eta, 0.3), jnp.stack([like(eta, -0.5), softplus(eta)], -1)
        ),
    },
    dist.Categorical: {
        "logits": lambda eta: dist.Categorical(logits=classes(eta)),
        "probs": lambda eta: dist.Categorical(probs=jax.nn.softmax(classes(eta))),
        "beta-binomial": lambda eta: dist.BetaBinomial(jnp.exp(eta), like(eta, 2.0), 5),
        "beta-binomial-mean": lambda eta: dist.BetaBinomial(
            3.0 * sigmoid(eta), 3.0 * sigmoid(-eta), 5
        ),
    },
    DirichletMultinomial: {
        "concentrations": lambda eta: dist.DirichletMultinomial(jnp.exp(classes(eta)), 4),
        "probabilities": lambda eta: dist.DirichletMultinomial(
            3.0 * jax.nn.softmax(classes(eta)), 4
        ),
    },
    mixture(dist.Normal, 0): {
        "locations": lambda eta: dist.MixtureSameFamily(
            dist.Categorical(logits=jnp.zeros((*eta.shape, 3), eta.dtype)),
            dist.Normal(classes(eta), 0.7),
        ),
        "weights": lambda eta: dist.MixtureSameFamily(
            dist.Categorical(logits=classes(eta)), dist.Normal(classes(0.3 * eta), 0.7)
        ),
    },
    dist.Multinomial: {
        "logits": lambda eta: dist.Multinomial(6, logits=classes(eta)),
        "probs": lambda eta: dist.Multinomial(6, probs=jax.nn.softmax(classes(eta))),
    },
    dist.GammaPoisson: {
        "mean-softplus": lambda eta: dist.NegativeBinomial2(softplus(eta), like(eta, 1.5)),
        "mean-exp": lambda eta: dist.NegativeBinomial2(jnp.exp(eta + 0.2), like(eta, 1.5)),
        "logits": lambda eta: dist.NegativeBinomialLogits(like(eta, 4.0), eta),
        "probs": lambda eta: dist.NegativeBinomialProbs(like(eta, 4.0), sigmoid(eta)),
        "rate": lambda eta: dist.GammaPoisson(like(eta, 2.0), jnp.exp(eta)),
        "concentration": lambda eta: dist.NegativeBinomial2(like(eta, 2.0), jnp.exp(eta)),
        "mean-and-concentration": lambda eta: dist.NegativeBinomial2(jnp.exp(eta), softplus(eta)),
        "geometric-logits": lambda eta: dist.Geometric(logits=eta),
        "geometric-probs": lambda eta: dist.Geometric(probs=sigmoid(eta)),
    },
    dist.Gamma: {
        "mean": lambda eta: dist.Gamma(like(eta, 2.0), 2.0 / softplus(eta)),
        "rate": lambda eta: dist.Gamma(like(eta, 0.3), jnp.exp(eta)),
        "concentration": lambda eta: dist.Gamma(jnp.exp(eta), like(eta, 1.5)),
        "both": lambda eta: dist.Gamma(jnp.exp(eta), softplus(eta)),
        "exponential": lambda eta: dist.Exponential(jnp.exp(eta)),
        "inverse": lambda eta: dist.InverseGamma(like(eta, 3.0), softplus(eta)),
    },
    dist.Weibull: {
        "scale": lambda eta: dist.Weibull(jnp.exp(eta), like(eta, 1.7)),
        "scale-softplus": lambda eta: dist.Weibull(softplus(eta), like(eta, 0.6)),
        "concentration": lambda eta: dist.Weibull(like(eta, 1.2), 0.5 + softplus(eta)),
    },
    dist.Gumbel: {"loc": lambda eta: dist.Gumbel(eta, like(eta, 0.8))},
    dist.Pareto: {"alpha": lambda eta: dist.Pareto(like(eta, 1.5), jnp.exp(eta))},
    dist.Kumaraswamy: {"outer": lambda eta: dist.Kumaraswamy(like(eta, 1.5), jnp.exp(eta))},
    dist.Levy: {"scale": lambda eta: dist.Levy(like(eta, 0.0), jnp.exp(eta))},
    dist.Laplace: {
        "both": lambda eta: dist.Laplace(eta, jnp.exp(eta)),
        "loc": lambda eta: dist.Laplace(eta, like(eta, 0.7)),
        "scale": lambda eta: dist.Laplace(like(eta, 0.0), softplus(eta)),
    },
    dist.Dirichlet: {
        "beta-mean": lambda eta: dist.BetaProportion(sigmoid(eta), like(eta, 5.0)),
        "beta": lambda eta: dist.Beta(jnp.exp(eta), like(eta, 2.0)),
        "concentrations": lambda eta: dist.Dirichlet(jnp.exp(classes(eta))),
    },
    dist.MultivariateNormal: {
        "cholesky": lambda eta: dist.MultivariateNormal(classes(eta), scale_tril=root(eta)),
        "low-rank": lambda eta: dist.LowRankMultivariateNormal(
            classes(eta), root(eta)[:, :1], jnp.asarray([0.5, 1.0, 2.0], eta.dtype)
        ),
        "covariance": lambda eta: dist.MultivariateNormal(
            classes(eta),
            scale_tril=root(eta) + eta[:, None, None] * jnp.eye(3, k=-1, dtype=eta.dtype),
        ),
        "covariance-squared": lambda eta: dist.MultivariateNormal(
            classes(eta),
            covariance_matrix=root(eta) @ root(eta).T
            + eta[:, None, None] ** 2 * jnp.eye(3, dtype=eta.dtype),
        ),
    },
}

# Older releases of NumPyro have no hurdles.
if hasattr(dist, "HurdlePoisson"):
    from predcp._divergences._hurdle import hurdle, zero_inflated

    CASES |= {
        hurdle(dist.Poisson): {
            "both": lambda eta: dist.HurdlePoisson(sigmoid(eta), jnp.exp(eta)),
            "both-apart": lambda eta: dist.HurdlePoisson(sigmoid(eta + 0.3), jnp.exp(eta + 0.7)),
            "half": lambda eta: dist.HurdlePoisson(sigmoid(0.5 * eta), jnp.exp(eta)),
            "rate": lambda eta: dist.HurdlePoisson(like(eta, 0.3), jnp.exp(eta)),
        },
        zero_inflated(dist.Poisson): {
            "both": lambda eta: dist.ZeroInflatedDistribution(
                dist.Poisson(jnp.exp(eta)), gate_logits=eta
            ),
            "rate": lambda eta: dist.ZeroInflatedPoisson(like(eta, 0.3), softplus(eta)),
            "gate": lambda eta: dist.ZeroInflatedPoisson(sigmoid(eta), like(eta, 2.0)),
            "both-probs": lambda eta: dist.ZeroInflatedPoisson(sigmoid(eta), jnp.exp(eta + 0.3)),
            "same": lambda eta: dist.ZeroInflatedPoisson(sigmoid(-eta), jnp.exp(eta)),
            "half": lambda eta: dist.ZeroInflatedDistribution(
                dist.Poisson(jnp.exp(eta)), gate_logits=0.5 * eta
            ),
        },
        zero_inflated(dist.GammaPoisson): {
            "mean": lambda eta: dist.ZeroInflatedNegativeBinomial2(
                softplus(eta), like(eta, 1.5), gate=like(eta, 0.3)
            ),
            "both": lambda eta: dist.ZeroInflatedNegativeBinomial2(
                jnp.exp(eta), like(eta, 1.5), gate=sigmoid(-eta)
            ),
        },
        hurdle(dist.GammaPoisson): {
            "both": lambda eta: dist.HurdleNegativeBinomial2(
                sigmoid(-eta), jnp.exp(eta), like(eta, 1.5)
            ),
            "gate": lambda eta: dist.HurdleDistribution(
                dist.NegativeBinomial2(like(eta, 2.0), like(eta, 1.5)), gate_logits=eta
            ),
        },
        hurdle(dist.Gamma): {
            "both": lambda eta: dist.HurdleGamma(sigmoid(eta), like(eta, 2.0), jnp.exp(eta)),
            "both-opposite": lambda eta: dist.HurdleGamma(
                sigmoid(-eta), like(eta, 2.0), jnp.exp(eta)
            ),
            "logits": lambda eta: dist.HurdleDistribution(
                dist.Gamma(like(eta, 2.0), jnp.exp(eta)), gate_logits=eta
            ),
        },
        hurdle(dist.Normal): {
            "both": lambda eta: dist.HurdleLogNormal(sigmoid(eta), eta, like(eta, 0.7)),
            "scale": lambda eta: dist.HurdleLogNormal(sigmoid(2.0 * eta), eta, jnp.exp(eta)),
        },
    }
