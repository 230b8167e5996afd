"""Check the quadrature against NUTS, and what complexity priors cost a sampler."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
from numpyro import handlers
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import MCMC, NUTS
from numpyro.infer.reparam import LocScaleReparam

import predcp
from studies.scale_priors.cells import SEED
from studies.scale_priors.counts import INTERCEPT_SCALE
from studies.scale_priors.designs import NAMES, SCALES, Design, design
from studies.scale_priors.posterior import cdf, marginal, posterior, quantile, ready
from studies.scale_priors.priors import FIXED, spread_of
from studies.scale_priors.simulate import Simulation, simulation

DESIGNS = ("dyestuff", "schools-8", "surgical-0.1", "ticks-1", "sleepstudy")
PRIORS = (*FIXED, "predcp-gamma", "predcp-log-cauchy")
CHOSEN_SCALES = ("none", "middling")
SIMULATIONS = 2
CHAINS, WARMUP, DRAWS = 2, 1000, 1000
# Draws of each group's effect in a map of the program; they are averaged over groups as well.
MAP_DRAWS = 64
LEVELS = (0.05, 0.5, 0.95)


def _scale(site: str, prior: str, sd: Any, brms: Any) -> Any:
    """A scale with a default of the field; complexity priors replace a half-normal."""
    if prior == "inverse-gamma":
        square = numpyro.sample(f"{site}_squared", dist.InverseGamma(1e-3, 1e-3))
        return numpyro.deterministic(site, jnp.sqrt(square))
    made = {
        "half-cauchy": lambda: dist.HalfCauchy(5.0),
        "half-normal": lambda: dist.HalfNormal(2.5 * sd),
        "half-t": lambda: dist.FoldedDistribution(dist.StudentT(3.0, 0.0, brms)),
        "exponential": lambda: dist.Exponential(1.0 / sd),
        "pc": lambda: dist.Exponential(-np.log(0.01) / sd),
    }.get(prior, lambda: dist.HalfNormal(1.0))
    return numpyro.sample(site, made())


def program(made: Design, prior: str) -> Callable[..., None]:
    """The program of a design as a modeller writes it; outcomes and what defaults take from them vary."""
    groups = [z.argmax(1) if np.all(z >= 0.0) else made.groups for z in made.z]
    slopes = [z.sum(1) for z in made.z]
    wide = 100.0 * made.unit

    def model(y: Any, sd: Any, brms: Any) -> None:
        if made.family == "normal":
            flat = dist.Normal(0.0, wide).expand([made.x.shape[1]]).to_event(1)
            predictor = made.x @ (made.beta + numpyro.sample("coefficients", flat))
        else:
            middle = dist.Normal(0.0, INTERCEPT_SCALE[made.family])
            predictor = jnp.full(len(made.groups), numpyro.sample("middle", middle))
        for place, (group, slope) in enumerate(zip(groups, slopes)):
            tau = _scale(f"tau_{place}", prior, sd, brms)
            with numpyro.plate(f"groups_{place}", made.z[place].shape[1]):
                u = numpyro.sample(f"u_{place}", dist.Normal(0.0, tau))
            predictor = predictor + slope * u[group]
        if made.family == "poisson":
            fn = dist.Poisson(jnp.exp(predictor))
        elif made.family == "binomial":
            fn = dist.Binomial(made.trials, logits=predictor)
        else:
            fn = dist.Normal(predictor, _noise(made))
        numpyro.sample("y", fn, obs=y)

    config = {f"u_{place}": LocScaleReparam(0.0) for place in range(len(made.z))}
    return handlers.reparam(model, config=config)


def _noise(made: Design) -> Any:
    if made.noise_known:
        return made.noise
    middle = float(np.log(made.unit))
    return jnp.exp(numpyro.sample("log_noise", dist.Uniform(middle - 10.0, middle + 10.0)))


def _swapped(made: Design, prior: str) -> Callable[..., None]:
    base = program(made, prior)
    if not prior.startswith("predcp"):
        return base
    found = ready(made).complexities[prior]
    place = found.place
    pi = (
        predcp.Gamma(shape=0.5, scale=jnp.exp(place))
        if found.family == "gamma"
        else predcp.LogCauchy(scale=1.0, loc=place)
    )
    priors = {f"tau_{place}": pi for place in range(len(made.z))}
    return predcp.with_complexity(base, priors, noise_draws=MAP_DRAWS)


def _quadrature(made: Design, prior: str, one: Simulation) -> Any:
    """Cells of the scored scale and their probabilities."""
    study = ready(made)
    y = jnp.asarray(one.y)
    table = study.table(y, jnp.asarray(one.truth), jax.tree.map(jnp.asarray, one.rows))
    weights = marginal(posterior(study, table, y))
    return weights[study.priors.index(prior)], table.edges[-1]


def run_nuts(name: str, prior: str, seed: int = SEED) -> pd.DataFrame:
    """Sample the simulations of a design under one prior and compare with the quadrature."""
    made = design(name)
    model = _swapped(made, prior)
    mcmc = MCMC(
        NUTS(model),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="vectorized",
        progress_bar=False,
        jit_model_args=True,
    )
    rows, compiled = [], False
    for scale in CHOSEN_SCALES:
        place = SCALES.index(scale)
        cell = 4 * NAMES.index(name) + place
        for s in range(SIMULATIONS):
            one = simulation(made, made.scales[place], [seed, cell, s])
            y = jnp.asarray(one.y)
            spread = spread_of(made.family, y)
            arguments = (y, spread["sd"], spread["brms"])
            key = jax.random.key(s)
            if not compiled:
                mcmc.run(key, *arguments, extra_fields=("diverging", "num_steps"))
                compiled = True
            started = time.perf_counter()
            mcmc.run(key, *arguments, extra_fields=("diverging", "num_steps"))
            draws = np.asarray(mcmc.get_samples(group_by_chain=True)[f"tau_{len(made.z) - 1}"])
            seconds = time.perf_counter() - started
            fields = mcmc.get_extra_fields()
            log_tau = np.log(np.maximum(draws, 1e-300))
            ess = float(effective_sample_size(log_tau))
            cells, edges = _quadrature(made, prior, one)
            row = {
                "design": name,
                "scale": scale,
                "simulation": s,
                "prior": prior,
                "divergent": int(np.sum(fields["diverging"])),
                "steps": float(np.mean(fields["num_steps"])),
                "ess": ess,
                "ess_per_second": ess / seconds,
                "rhat": float(split_gelman_rubin(log_tau)),
            }
            for level in LEVELS:
                sampled = float(np.quantile(draws, level))
                row[f"nuts_{level}"] = sampled
                row[f"quadrature_{level}"] = float(quantile(cells, edges, level))
                row[f"share_{level}"] = float(cdf(cells, edges, sampled))
            rows.append(row)
    return pd.DataFrame(rows)
