"""Predictors of observations: the numbers to which effects are added, read off by family.

A divergence may describe a family by other numbers: an ordinal response by the log probabilities of
its classes, say. A size of an effect, such as an odds ratio, is about the predictor alone.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions.discrete import (
    BernoulliLogits,
    BernoulliProbs,
    BinomialLogits,
    BinomialProbs,
    GeometricLogits,
    GeometricProbs,
    ZeroInflatedProbs,
)
from numpyro.distributions.transforms import ExpTransform

from predcp._divergences import members
from predcp.program._noise import unwrapped

# Log of the mean, or of a scale that is a multiple of it; log odds of the mean; location.
LOG_MEAN, LOG_ODDS, LOCATION = "log_mean", "log_odds", "location"
# Log of the standard deviation, or of the scale, around the location.
LOG_NOISE = "log_noise"

Predictors = dict[str, Array]
_READERS: dict[type, Callable[[Any], Predictors]] = {}
# Distributions whose predictor is that of the one inside: gated, censored and truncated ones. Older
# releases of NumPyro do not have them all.
_NAMES = (
    "LeftCensoredDistribution", "RightCensoredDistribution", "IntervalCensoredDistribution",
    "LeftTruncatedDistribution", "RightTruncatedDistribution", "TwoSidedTruncatedDistribution",
    "HurdleProbs",
)  # fmt: skip
_AROUND = (ZeroInflatedProbs, *(getattr(dist, name) for name in _NAMES if hasattr(dist, name)))
_NORMALS = (dist.MultivariateNormal, dist.LowRankMultivariateNormal)


def predictors_of(distribution: Any) -> Predictors:
    """The predictors of an observation by kind, an array for each; none for an unknown family."""
    inner = unwrapped(distribution)
    found = predictors_of(inner.base_dist) if isinstance(inner, _AROUND) else _predictors(inner)
    if inner is distribution:
        return found
    # `expand` keeps one value for many points.
    return {name: jnp.broadcast_to(each, distribution.shape()) for name, each in found.items()}


def _predictors(made: Any) -> Predictors:
    reader = next((_READERS[base] for base in type(made).__mro__ if base in _READERS), None)
    if reader is not None:
        return reader(made)
    if isinstance(made, dist.TransformedDistribution):
        if len(made.transforms) != 1 or not isinstance(made.transforms[0], ExpTransform):
            return {}
        found = predictors_of(made.base_dist)
        return {**found, LOG_MEAN: found[LOCATION]} if LOCATION in found else {}
    if {"loc", "scale"} <= set(made.arg_constraints) and not made.event_dim:
        return _located(made.loc, made.scale)
    return {}


def _located(location: Any, noise: Any) -> Predictors:
    location, log_noise = jnp.broadcast_arrays(jnp.asarray(location), jnp.log(noise))
    return {LOCATION: location, LOG_NOISE: log_noise}


def _reads(*classes: type) -> Callable[[Callable[[Any], Predictors]], Any]:
    """Declare a function that reads the predictors of these classes."""

    def record(reader: Callable[[Any], Predictors]) -> Callable[[Any], Predictors]:
        _READERS.update(dict.fromkeys(classes, reader))
        return reader

    return record


def _coordinate(made: Any, name: str) -> Array:
    (member,) = members(made)
    return member.coordinates[name]


@_reads(BernoulliLogits, BernoulliProbs, BinomialLogits, BinomialProbs)
def _of_coins(made: Any) -> Predictors:
    return {LOG_ODDS: _coordinate(made, "logits")}


@_reads(dist.Beta, dist.BetaBinomial)
def _of_shares(made: Any) -> Predictors:
    return {LOG_ODDS: jnp.log(made.concentration1) - jnp.log(made.concentration0)}


@_reads(dist.OrderedLogistic)
def _of_ordered(made: Any) -> Predictors:
    return {LOG_ODDS: jnp.asarray(made.predictor)}


@_reads(dist.Poisson)
def _of_counts(made: Any) -> Predictors:
    return {LOG_MEAN: _coordinate(made, "log_rate")}


@_reads(dist.GammaPoisson, GeometricLogits, GeometricProbs)
def _of_overdispersed_counts(made: Any) -> Predictors:
    return {LOG_MEAN: _coordinate(made, "log_mean")}


@_reads(dist.Gamma)
def _of_gamma(made: Any) -> Predictors:
    return {LOG_MEAN: jnp.log(made.concentration) - jnp.log(made.rate)}


@_reads(dist.Exponential)
def _of_exponential(made: Any) -> Predictors:
    return {LOG_MEAN: -jnp.log(made.rate)}


@_reads(dist.InverseGamma)
def _of_inverse_gamma(made: Any) -> Predictors:
    return {LOG_MEAN: jnp.log(made.rate)}


@_reads(dist.Weibull)
def _of_weibull(made: Any) -> Predictors:
    return {LOG_MEAN: jnp.log(made.scale)}


@_reads(*_NORMALS)
def _of_vectors(made: Any) -> Predictors:
    return _located(made.loc, jnp.sqrt(made.variance))
