"""Our side of the comparison with Stan: problems, densities and samplers.

A module of its own, and not the program that is run: chains in other processes import it.
"""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpyro.infer.util import log_density

import predcp
from benchmarks.stan_programs import Run
from predcp.data import Standardiser, load_split
from predcp.linear import (
    ECP,
    CoefficientPrior,
    Gibbs,
    Horseshoe,
    LogisticPredictive,
    Nuts,
    ScaleFunction,
    Target,
    logistic_regression,
)
from predcp.linear._inference import Inference

DRAWS = {"breast": 10, "colon": 10, "allaml": 1}


@dataclass(frozen=True)
class Settings:
    """Of a NUTS run, for both sides."""

    chains: int = 4
    warmup: int = 1000
    draws: int = 1000
    target_acceptance: float = 0.8
    depth: int = 10
    seed: int = 1


def _shared(settings: Settings) -> dict[str, Any]:
    return {
        "chains": settings.chains,
        "warmup": settings.warmup,
        "draws": settings.draws,
        "seed": settings.seed,
        # One chain per core, as Stan has, however short the run.
        "layout": "processes",
    }


SAMPLERS: dict[str, Callable[[Settings], Inference]] = {
    # Tunes nothing: its own warm-up, which only forgets the start.
    "gibbs": lambda s: Gibbs(**{**_shared(s), "warmup": min(Gibbs.warmup, s.warmup)}),
    "nuts": lambda s: Nuts(**_shared(s), target_acceptance=s.target_acceptance, max_depth=s.depth),
}


def problem(name: str, draws: int, split: int = 0) -> dict[str, Any]:
    """The training rows of a split, standardised by their own statistics, and the noise."""
    train = load_split(name, split).train
    x = Standardiser.fit(train.features).transform(train.features)
    return with_noise(x, train.target.astype(int), draws)


def with_noise(x: np.ndarray, y: np.ndarray, draws: int) -> dict[str, Any]:
    """The data of the Stan programs, by their names there."""
    noise = np.random.default_rng(1).normal(size=(draws, x.shape[1]))
    return {"N": len(x), "D": x.shape[1], "X": x, "y": y, "S": draws, "noise": noise}


def prior_of(
    prior: str, data: dict[str, Any], truncate: bool = True, **coordinates: Any
) -> CoefficientPrior:
    """The library's prior with the noise that Stan sees."""
    if prior == "half_cauchy":
        return Horseshoe(**coordinates)
    if prior == "ecp":
        return ECP(**coordinates)
    return ScaleFunction(partial(_scale, data["noise"], truncate), **coordinates)


def _scale(
    noise: np.ndarray, truncate: bool, x: jax.Array, local: jax.Array
) -> predcp.ComplexityPrior:
    complexity = LogisticPredictive(x, local, jnp.asarray(noise, x.dtype))
    return predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity, truncate)


def our_log_density(prior: str, data: dict[str, Any], truncate: bool = True):
    """The log density of (log lambda, xi, log tau), the unconstrained space of the programs."""
    x, y, size = jnp.asarray(data["X"], float), jnp.asarray(data["y"]), data["D"]
    # In Stan's own coordinates.
    chosen = prior_of(prior, data, truncate, coordinates="log", centring=0.0)

    def log_density_at(flat: jax.Array) -> jax.Array:
        log_local = flat[:size]
        sites = {"lambda": jnp.exp(log_local), "xi": flat[size:-1], "log_tau": flat[-1]}
        options = {"prior": chosen, "intercept": False}
        value, _ = log_density(logistic_regression, (x, y), options, sites)
        return value + log_local.sum()

    return log_density_at


def sample_ours(data: dict[str, Any], prior: str, settings: Settings, sampler: str) -> Run:
    """The library's sampler as its users get it: its coordinates, JAX's precision, chains on cores."""
    method = SAMPLERS[sampler](settings)
    target = Target(
        logistic_regression,
        (jnp.asarray(data["X"], float), jnp.asarray(data["y"])),
        {"prior": prior_of(prior, data), "intercept": False},
        keep=_log_tau,
    )
    (draws,) = method.sample(target)
    cores = min(settings.chains, os.cpu_count() or 1)
    return Run(
        log_tau=draws.values.astype(float),
        log_density=draws.statistics["lp"].astype(float),
        leapfrogs=draws.statistics["n_steps"],
        divergent=draws.statistics.get("diverging", np.zeros(1)),
        wall_seconds=draws.seconds,
        # Warm-up and sampling together: the cores are busy from beginning to end.
        warmup_seconds=np.zeros(settings.chains),
        sampling_seconds=np.full(settings.chains, draws.seconds * cores / settings.chains),
    )


def _log_tau(sites: dict[str, jax.Array], *data: jax.Array) -> jax.Array:
    return sites["log_tau"]


def our_gradient_seconds(prior: str, data: dict[str, Any], count: int) -> float:
    """Time of one value and gradient, from a loop of `count` in one compiled program."""
    value_and_gradient = jax.value_and_grad(our_log_density(prior, data))

    def body(_, flat):
        value, gradient = value_and_gradient(flat)
        # Each depends on the one before, but hardly moves.
        return flat + 1e-12 * (gradient + value)

    @jax.jit
    def loop(flat):
        return lax.fori_loop(0, count, body, flat)

    size = 2 * data["D"] + 1
    flat = jnp.asarray(np.random.default_rng(0).normal(size=size)).at[-1].set(-3.0)
    jax.block_until_ready(loop(flat))
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        jax.block_until_ready(loop(flat))
        times.append(time.perf_counter() - begin)
    return statistics.median(times) / count
