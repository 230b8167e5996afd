"""Priors as Stan functions: the numbers in the text, and the posteriors that Stan finds with them."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import special, stats
from tests.exports import posteriors

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
        rows = re.findall(r"return \[(-?\d.*)\];$", text, re.MULTILINE)
        self.table = np.array([[float(number) for number in row.split(",")] for row in rows])
        low, width = re.search(r"\(log_tau - \((\S+)\)\) / (\S+);", text).groups()
        self.low, self.width = float(low), float(width)
        self.below = float(re.search(r"position < 0\) log_map\[1\] \+= (\S+) ", text)[1])
        self.tail = re.search(r"^      log_map\[1\] \+= (.*);", text, re.MULTILINE)[1]
        self.rise = re.search(r"^      log_map\[2\] \+= (.*);", text, re.MULTILINE)[1]
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
        beyond = self.width * np.maximum(position - pieces, 0)
        log_kappa += self.evaluate(self.tail, beyond=beyond)
        return log_kappa, log_elasticity + self.evaluate(self.rise, beyond=beyond)

    def evaluate(self, expression, **values):
        return eval(expression.replace("|", ","), {**STAN, **values})

    def lpdf(self, log_tau):
        y, log_elasticity = self.map(log_tau)
        return self.evaluate(self.density[0], y=y) + log_elasticity - self.log_mass

    def cdf_at(self, log_tau):
        return self.evaluate(self.cdf, y=self.map(log_tau)[0]) / np.exp(self.log_mass)


NOISE = np.random.default_rng(4).normal(size=(16, 8))


def effects(family, noise=NOISE):
    """The map of eight effects with 16 draws of noise."""
    return predcp.PredictiveComplexity(
        lambda theta, g: family(theta[g]),
        lambda tau, xi: tau * xi,
        jnp.zeros(8),
        jnp.arange(8),
        jnp.asarray(noise),
        unit="standard deviation",
    )


def counts_map():
    return effects(lambda eta: dist.Poisson(jnp.exp(eta)))


MAPS = {
    "unbounded": lambda: predcp.LinearEvidence(DESIGN),
    "bounded": coin_map,
    "exponential": counts_map,
}


@pytest.mark.parametrize("pi", PIS)
@pytest.mark.parametrize("name", MAPS)
def test_the_text_has_the_density_over_forty_decades(pi, name):
    stated = predcp.ComplexityPrior(PIS[pi], MAPS[name]())
    prior = stated.log_scale()
    read = Read(stated.to_stan("tau"))
    log_tau = np.linspace(-20.0, 20.0, 401) * math.log(10.0)
    wanted = np.asarray(prior.log_prob(jnp.asarray(log_tau)))
    counted = wanted > wanted.max() - 100.0
    assert counted.sum() > 100
    np.testing.assert_allclose(read.lpdf(log_tau)[counted], wanted[counted], rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        read.cdf_at(log_tau), prior.cdf(jnp.asarray(log_tau)), rtol=0, atol=1e-8
    )


def test_the_text_is_as_short_as_the_prior_needs():
    normal = effects(lambda eta: dist.Normal(eta, 1.0))
    normal = predcp.ComplexityPrior(PIS["half-cauchy"], normal)
    assert len(Read(normal.to_stan()).table) == 1
    counts = predcp.ComplexityPrior(PIS["half-cauchy"], counts_map()).to_stan()
    assert len(Read(counts).table) < 80 and len(counts) < 40_000


@pytest.mark.parametrize("family", [
    lambda eta: dist.Poisson(jnp.exp(eta)), lambda eta: dist.Bernoulli(logits=eta),
], ids=["counts", "coins"])  # fmt: skip
def test_rounding_noise_of_single_precision_makes_no_pieces(family):
    noise = NOISE.astype(np.float32)
    with jax.enable_x64(False):
        read = Read(
            predcp.ComplexityPrior(predcp.HalfCauchy(0.4), effects(family, noise)).to_stan()
        )
    assert len(read.table) <= 128
    log_tau = np.linspace(-10.0, 2.0, 60)
    exact = predcp.ComplexityPrior(predcp.HalfCauchy(0.4), effects(family, noise.astype(float)))
    wanted = np.asarray(exact.log_scale().log_prob(jnp.asarray(log_tau)))
    counted = wanted > wanted.max() - 15.0
    np.testing.assert_allclose(read.lpdf(log_tau)[counted], wanted[counted], rtol=0, atol=4e-4)


def test_the_text_says_how_accurate_it_is():
    prior = predcp.ComplexityPrior(PIS["half-cauchy"], predcp.LinearEvidence(DESIGN))
    assert "right to 1e-8.\n" in prior.to_stan()
    with jax.enable_x64(False):
        single = predcp.LinearEvidence(np.asarray(DESIGN, np.float32))
        text = predcp.ComplexityPrior(predcp.HalfCauchy(0.4), single).to_stan()
    assert "right to 2e-4 (to 1e-8 in double precision" in text


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


@pytest.mark.long
@pytest.mark.parametrize("name", posteriors.EXAMPLES)
def test_stan_finds_the_posterior_that_numpyro_finds(name):
    pytest.importorskip("httpstan", reason="the extra `stan` is not installed")
    example = posteriors.EXAMPLES[name]
    found, drawn = posteriors.in_stan(example)
    apart = posteriors.differences(found, posteriors.in_numpyro(example))
    assert np.max(np.abs(apart)) < posteriors.farthest_of(apart.size), apart
    # Draws of the prior: 8000 of them tell distributions apart that differ by 0.02 in probability.
    prior = posteriors.prior_of(example).log_scale()
    assert stats.kstest(drawn, lambda v: np.asarray(prior.cdf(v))).pvalue > 1e-4
