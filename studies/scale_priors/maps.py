"""Predictive complexity of the scales: the door's maps for one group, added up over rows."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import logsumexp
from jaxtyping import Array

import predcp
from studies.scale_priors.interpolated import Curve, Surface, on

DRAWS = 1024
LOG_TAU = np.linspace(np.log(1e-4), np.log(1e2), 400)
LOGITS = np.linspace(-15.0, 15.0, 241)


def normal_group(y: Any = 0.0) -> None:
    """One outcome of one group, in units of the noise."""
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    u = numpyro.sample("u", dist.Normal(0.0, tau))
    numpyro.sample("y", dist.Normal(u, 1.0), obs=y)


def poisson_group(y: Any = 0.0) -> None:
    """One count of one group, at rate 1."""
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    u = numpyro.sample("u", dist.Normal(0.0, tau))
    numpyro.sample("y", dist.Poisson(jnp.exp(u)), obs=y)


def binomial_group(y: Any = 0.0) -> None:
    """One trial of one group."""
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    middle = numpyro.sample("middle", dist.Normal(0.0, 3.0))
    u = numpyro.sample("u", dist.Normal(0.0, tau))
    numpyro.sample("y", dist.Bernoulli(logits=middle + u), obs=y)


@cache
def normal_constant() -> float:
    """Log divergence of one outcome where scale and noise are equal; it goes with their square."""
    complexity = predcp.complexity_of(normal_group, "tau", noise_draws=DRAWS)
    return float(np.log(complexity(1.0)))


@cache
def poisson_curve() -> Curve:
    """Log divergence at rate 1 against log tau; it goes with the rate."""
    complexity = predcp.complexity_of(poisson_group, "tau", noise_draws=DRAWS)
    return on(LOG_TAU, lambda log_tau: complexity.log_value_and_elasticity(log_tau)[0])


@cache
def trial_surface() -> tuple[Surface, Curve]:
    """Log divergence of one trial against its logit and log tau, and log supremum against its logit."""

    @jax.jit
    def at(logit: Array) -> tuple[Array, Array]:
        moved = predcp.complexity_of(
            binomial_group, "tau", rest={"middle": logit}, noise_draws=DRAWS
        )
        log_kappa = moved.log_value_and_elasticity(jnp.asarray(LOG_TAU))[0]
        return log_kappa, moved.log_supremum(jnp.zeros(()))

    values, supremum = (np.stack(each) for each in zip(*(map(np.asarray, at(a)) for a in LOGITS)))
    return Surface(LOGITS, LOG_TAU, values), Curve(LOGITS, supremum)


def log_mean(log_values: Array, weights: Any) -> Array:
    """Log of the weighted mean over the last axis."""
    return logsumexp(log_values, -1, b=weights) - jnp.log(jnp.sum(weights))
