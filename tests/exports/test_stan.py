"""Priors as Stan functions: the numbers in the text, and the posteriors that Stan finds with them."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import predcp

PIS = {
    "log-cauchy": predcp.LogCauchy(scale=0.7, loc=-1.0),
    "half-cauchy": predcp.HalfCauchy(0.4),
    "exponential": predcp.Exponential(mean=0.3),
    "gamma": predcp.Gamma(shape=0.4, scale=1.5),
    "mixture": predcp.GammaExponential(weight=0.3),
}
DESIGN = jnp.asarray(np.random.default_rng(0).normal(size=(12, 2)))
# Stan's functions that the text calls.
STAN = {
    "cauchy_lpdf": stats.cauchy.logpdf,
    "cauchy_cdf": stats.cauchy.cdf,
    "log_sum_exp": np.logaddexp,
    "log_mix": lambda w, a, b: np.logaddexp(np.log(w) + a, np.log1p(-w) + b),
    "pi": lambda: math.pi,
    "lgamma": special.gammaln,
    "gamma_p": special.gammainc,
    "fmin": np.minimum,
    **{name: getattr(np, name) for name in ("log", "exp", "expm1")},
    "atan": np.arctan,
}


def coin(theta, x):
    return dist.Bernoulli(logits=x @ theta)


def coin_map():
    noise = predcp.normal_noise(jax.random.key(0), 8, (2,))
    return predcp.PredictiveComplexity(
        coin, lambda tau, xi: tau * xi, jnp.zeros(2), DESIGN, noise, unit="standard deviation"
    )


class Read:
    """The functions of a text, evaluated in Python as Stan would evaluate them."""

    def __init__(self, text: str):
        rows = re.findall(r"^      \[(.*)\],?$", text, re.MULTILINE)
        self.table = np.array([[float(number) for number in row.split(",")] for row in rows])
        low, width = re.search(r"\(log_tau - \((\S+)\)\) / (\S+);", text).groups()
        self.low, self.width = float(low), float(width)
        self.below = float(re.search(r"position < 0\) log_kappa \+= (\S+) ", text)[1])
        self.above = float(re.search(r"^      log_kappa \+= (\S+) \*", text, re.MULTILINE)[1])
        self.slope = float(re.search(r"^      log_elasticity \+= (\S+) \*", text, re.MULTILINE)[1])
        self.density = re.search(r"return (.*) \+ log_map\[2\] - \((.*)\);", text).groups()
        self.cdf = re.search(r"if \((.*) < q\) low", text)[1]
        self.log_mass = float(self.density[1])

    def map(self, log_tau):
        position = (log_tau - self.low) / self.width
        pieces, columns = self.table.shape
        inside = np.clip(position, 0, pieces)
        piece = np.minimum(np.floor(inside).astype(int), pieces - 1)
        x = 2 * (inside - piece) - 1
        powers = x[:, None] ** np.arange(columns // 2)
        log_kappa, log_elasticity = (
            np.sum(part[piece] * powers, 1) for part in np.split(self.table, 2, axis=1)
        )
        log_kappa += self.below * self.width * np.minimum(position, 0)
        over = self.width * np.maximum(position - pieces, 0)
        return log_kappa + self.above * over, log_elasticity + self.slope * over

    def evaluate(self, expression, y):
        return eval(expression.replace("|", ","), {**STAN, "y": y})

    def lpdf(self, log_tau):
        y, log_elasticity = self.map(log_tau)
        return self.evaluate(self.density[0], y) + log_elasticity - self.log_mass

    def cdf_at(self, log_tau):
        return self.evaluate(self.cdf, self.map(log_tau)[0]) / np.exp(self.log_mass)


@pytest.mark.parametrize("pi", PIS)
@pytest.mark.parametrize("bounded", [False, True])
def test_the_text_has_the_density_over_forty_decades(pi, bounded):
    complexity = coin_map() if bounded else predcp.LinearEvidence(DESIGN)
    prior = predcp.ComplexityPrior(PIS[pi], complexity).log_scale()
    read = Read(predcp.ComplexityPrior(PIS[pi], complexity).to_stan("tau_prior"))
    log_tau = np.linspace(-20.0, 20.0, 401) * math.log(10.0)
    wanted = np.asarray(prior.log_prob(jnp.asarray(log_tau)))
    counted = wanted > wanted.max() - 100.0
    assert counted.sum() > 100
    np.testing.assert_allclose(read.lpdf(log_tau)[counted], wanted[counted], rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        read.cdf_at(log_tau), prior.cdf(jnp.asarray(log_tau)), rtol=0, atol=1e-8
    )


def test_what_cannot_be_written_is_refused():
    linear = predcp.LinearEvidence(DESIGN)
    prior = predcp.ComplexityPrior(PIS["gamma"], linear)
    with pytest.raises(ValueError, match="name must be a name of Stan"):
        prior.to_stan("my prior")
    with pytest.raises(ValueError, match="pi must be LogCauchy, HalfCauchy"):
        predcp.ComplexityPrior(dist.LogNormal(0.0, 1.0), linear).to_stan()
    with pytest.raises(ValueError, match="of one prior, got a batch of shape"):
        predcp.ComplexityPrior(predcp.HalfCauchy(jnp.ones(3)), linear).to_stan()
    with pytest.raises(ValueError, match="one positive scale"):
        predcp.ComplexityPrior(PIS["gamma"], predcp.CoefficientEvidence(1.0)).to_stan()


GROUPS = np.repeat(np.arange(8), 5)
RANDOM = np.random.default_rng(1)
EFFECTS = 0.7 * RANDOM.normal(size=8)
FAMILIES = {
    # The outcomes, their distribution in NumPyro, and in Stan.
    "normal": (
        EFFECTS[GROUPS] + RANDOM.normal(size=40),
        lambda eta: dist.Normal(eta, 1.0),
        ("vector[40] y;", "normal(eta, 1)"),
    ),
    "poisson": (
        RANDOM.poisson(np.exp(EFFECTS[GROUPS])),
        lambda eta: dist.Poisson(jnp.exp(eta)),
        ("array[40] int y;", "poisson_log(eta)"),
    ),
    "bernoulli": (
        (RANDOM.uniform(size=40) < special.expit(2 * EFFECTS[GROUPS])).astype(int),
        lambda eta: dist.Bernoulli(logits=eta),
        ("array[40] int y;", "bernoulli_logit(eta)"),
    ),
}
PROGRAM = """
functions {{
{functions}
}}
data {{ array[40] int g; {data} }}
parameters {{ real log_tau; vector[8] z; }}
model {{
  // Local: PyStan cannot read an infinite value that is saved.
  vector[40] eta = exp(log_tau) * z[g];
  log_tau ~ tau_prior(); z ~ std_normal(); y ~ {family};
}}
generated quantities {{ real drawn = tau_prior_rng(); }}
"""


def effects_map(family):
    """Eight group effects of one scale, against none."""
    noise = predcp.normal_noise(jax.random.key(0), 64, (8,))
    return predcp.PredictiveComplexity(
        lambda theta, g: family(theta[g]),
        lambda tau, xi: tau * xi,
        jnp.zeros(8),
        jnp.arange(8),
        noise,
        unit="standard deviation",
    )


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_stan_finds_the_posterior_that_numpyro_finds(name):
    stan = pytest.importorskip("stan", reason="the extra `stan` is not installed")
    y, family, (data, likelihood) = FAMILIES[name]
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0, loc=-2.0), effects_map(family))

    def model():
        log_tau = numpyro.sample("log_tau", prior.tabulated().log_scale())
        z = numpyro.sample("z", dist.Normal().expand([8]).to_event(1))
        numpyro.sample("y", family(jnp.exp(log_tau) * z[GROUPS]), obs=jnp.asarray(y))

    kernel = numpyro.infer.NUTS(model, target_accept_prob=0.95)
    mcmc = numpyro.infer.MCMC(
        kernel, num_warmup=1000, num_samples=2000, num_chains=4, progress_bar=False
    )
    mcmc.run(jax.random.key(0))
    ours = np.asarray(mcmc.get_samples(group_by_chain=True)["log_tau"])
    text = PROGRAM.format(functions=prior.to_stan("tau_prior"), data=data, family=likelihood)
    program = stan.build(text, data={"g": (GROUPS + 1).tolist(), "y": y.tolist()}, random_seed=1)
    fit = program.sample(num_chains=4, num_warmup=1000, num_samples=2000, delta=0.95)
    theirs = fit["log_tau"].reshape(-1, 4).T
    for q in (0.1, 0.25, 0.5, 0.75, 0.9):
        # Forty batches of 200 draws: their spread is the Monte Carlo error of their mean.
        each = [np.quantile(chains.reshape(40, -1), q, axis=1) for chains in (ours, theirs)]
        error = math.hypot(*(np.std(values, ddof=1) / math.sqrt(40) for values in each))
        assert abs(each[0].mean() - each[1].mean()) < 3.0 * error, (q, error)
    # Draws of the prior: 8000 of them tell distributions apart that differ by 0.02 in probability.
    drawn = fit["drawn"].ravel()
    assert stats.kstest(drawn, lambda v: np.asarray(prior.log_scale().cdf(v))).pvalue > 1e-4
