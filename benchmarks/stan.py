"""Stan as the peer: `python -m benchmarks.stan` writes results/stan.json (needs `predcp[stan]`).

Both samplers see the same data, noise draws and settings, and run in turns, one chain a core.
Compilation is counted on neither side. PyStan hands every draw over as text, which at
thousands of parameters costs more than the sampling: figures with and without it are given.
"""

import argparse
import json
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import lax
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer.hmc import hmc
from numpyro.infer.util import log_density

import predcp
from benchmarks import stan_programs
from benchmarks.stan_programs import Run, apart
from predcp.data import Standardiser, load_split
from predcp.experiments._environment import environment

OUTPUT = Path(__file__).parent / "results" / "stan.json"
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


def problem(name: str, draws: int, split: int = 0) -> dict[str, Any]:
    """The training rows of a split, standardised by their own statistics, and the noise."""
    train = load_split(name, split).train
    x = Standardiser.fit(train.features).transform(train.features)
    return with_noise(x, train.target.astype(int), draws)


def with_noise(x: np.ndarray, y: np.ndarray, draws: int) -> dict[str, Any]:
    """The data of the Stan programs, by their names there."""
    noise = np.random.default_rng(1).normal(size=(draws, x.shape[1]))
    return {"N": len(x), "D": x.shape[1], "X": x, "y": y, "S": draws, "noise": noise}


def log_scale_prior(prior: str, data: dict[str, Any], local: jax.Array, normalize: bool = True):
    """The prior of log tau given the local scales."""
    if prior == "half_cauchy":
        to_log = dist.transforms.ExpTransform().inv
        return dist.TransformedDistribution(dist.HalfCauchy(1.0), to_log)
    if prior == "ecp":
        complexity = predcp.LogisticEvidence(data["X"], local)
    else:
        complexity = predcp.PredictiveComplexity(
            likelihood=lambda beta, x: dist.Bernoulli(logits=x @ beta),
            parameters=lambda tau, unit: tau * local * unit,
            reference=jnp.zeros(data["D"]),
            x=data["X"],
            draws=data["noise"],
        )
    return predcp.ComplexityPrior(predcp.LogCauchy(1.0), complexity, normalize).log_scale()


def model(prior: str, data: dict[str, Any], normalize: bool = True) -> None:
    """The NumPyro model that the Stan programs are the peers of."""
    with numpyro.plate("features", data["D"]):
        local = numpyro.sample("lambda", dist.HalfCauchy(1.0))
        xi = numpyro.sample("xi", dist.Normal())
    log_tau = numpyro.sample("log_tau", log_scale_prior(prior, data, local, normalize))
    beta = jnp.exp(log_tau) * local * xi
    numpyro.sample("y", dist.Bernoulli(logits=data["X"] @ beta).to_event(1), obs=data["y"])


def our_log_density(prior: str, data: dict[str, Any], normalize: bool = True):
    """The log density of (log lambda, xi, log tau), the unconstrained space of the programs."""
    data = {name: jnp.asarray(value) if np.ndim(value) else value for name, value in data.items()}
    size = data["D"]

    def log_density_at(flat: jax.Array) -> jax.Array:
        log_local = flat[:size]
        sites = {"lambda": jnp.exp(log_local), "xi": flat[size:-1], "log_tau": flat[-1]}
        value, _ = log_density(model, (prior, data, normalize), {}, sites)
        return value + log_local.sum()

    return log_density_at


def sample_ours(data: dict[str, Any], prior: str, settings: Settings) -> Run:
    """Draws, seconds and leapfrog steps of NumPyro's NUTS, one chain a thread and core."""
    log_density_at = our_log_density(prior, data)
    start, step = hmc(lambda flat: -log_density_at(flat), algo="NUTS")

    def advance(state, _):
        state = step(state)
        return state, (state.z, state.potential_energy, state.num_steps, state.diverging)

    def warm_up(key):
        key_place, key_chain = jax.random.split(key)
        # As Stan does.
        place = jax.random.uniform(key_place, (2 * data["D"] + 1,), minval=-2.0, maxval=2.0)
        state = start(
            place,
            settings.warmup,
            target_accept_prob=settings.target_acceptance,
            max_tree_depth=settings.depth,
            rng_key=key_chain,
        )
        return lax.fori_loop(0, settings.warmup, lambda _, state: step(state), state)

    def draw(state):
        return lax.scan(advance, state, None, length=settings.draws)[1]

    keys = jax.random.split(jax.random.key(settings.seed), settings.chains)
    compiled_warm_up = jax.jit(warm_up).lower(keys[0]).compile()
    compiled_draw = jax.jit(draw).lower(jax.eval_shape(warm_up, keys[0])).compile()

    def chain(key):
        begin = time.perf_counter()
        state = jax.block_until_ready(compiled_warm_up(key))
        middle = time.perf_counter()
        drawn = [np.asarray(array) for array in compiled_draw(state)]
        return drawn, middle - begin, time.perf_counter() - middle

    begin = time.perf_counter()
    with ThreadPoolExecutor(min(settings.chains, os.cpu_count() or 1)) as pool:
        chains = list(pool.map(chain, keys))
    wall = time.perf_counter() - begin
    places, energies, steps, divergent = zip(*(drawn for drawn, _, _ in chains))
    return Run(
        log_tau=np.stack([place[:, -1] for place in places]),
        log_density=-np.stack(energies),
        leapfrogs=np.stack(steps),
        divergent=np.stack(divergent),
        wall_seconds=wall,
        warmup_seconds=np.array([seconds for _, seconds, _ in chains]),
        sampling_seconds=np.array([seconds for _, _, seconds in chains]),
    )


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


def figures(run: Run, settings: Settings, gradient_seconds: float | None = None) -> dict[str, Any]:
    """What is reported of a run; with `gradient_seconds`, also as if draws cost nothing to output."""
    steps = run.leapfrogs.sum(axis=1)
    busy = run.warmup_seconds + run.sampling_seconds
    if gradient_seconds is not None:
        busy = run.warmup_seconds + gradient_seconds * steps
    result: dict[str, Any] = {
        "wall_seconds": round(run.wall_seconds, 3),
        "core_seconds": round(float(busy.sum()), 3),
        "microseconds_a_leapfrog": round(1e6 * float(run.sampling_seconds.sum() / steps.sum()), 2),
        "leapfrogs_an_iteration": round(float(run.leapfrogs.mean()), 1),
        "at_greatest_depth": round(float(np.mean(run.leapfrogs >= 2**settings.depth - 1)), 4),
        "divergent": round(float(run.divergent.mean()), 4),
    }
    for name, values in {"log_tau": run.log_tau, "log_density": run.log_density}.items():
        # One estimator for both sides.
        size = float(effective_sample_size(values))
        result[name] = {
            "mean": round(float(values.mean()), 3),
            "r_hat": round(float(split_gelman_rubin(values)), 4),
            "effective_draws": round(size, 1),
            "effective_draws_a_wall_second": round(size / run.wall_seconds, 3),
            "effective_draws_a_core_second": round(size / float(busy.sum()), 3),
        }
    return result


def compare(name: str, prior: str, settings: Settings, gradients: int) -> dict[str, Any]:
    """Both sides on one data set under one prior, in turns."""
    data = problem(name, DRAWS[name])
    ours = {"microseconds_a_gradient": round(1e6 * our_gradient_seconds(prior, data, gradients), 2)}
    short = min(100, settings.draws)
    timed = apart("gradient_seconds", prior, data, warmup=short, draws=short)
    ours |= figures(sample_ours(data, prior, settings), settings)
    their_run = Run(**apart("sample", prior, data, **asdict(settings)))
    theirs = {
        # From a short run of its sampler: seconds of sampling over leapfrog steps, no output.
        "microseconds_a_gradient": round(1e6 * timed["gradient"], 2),
        "milliseconds_to_output_a_draw": round(1e3 * timed["draw"], 3),
        **figures(their_run, settings, timed["gradient"]),
    }
    return {
        "rows": data["N"],
        "columns": data["D"],
        "draws": data["S"] if prior == "predcp" else None,
        "ours": ours,
        "stan": theirs,
        "times_faster": {
            "a_gradient": _ratio(theirs, ours, "microseconds_a_gradient"),
            "effective_draws_a_wall_second": _ratio(
                ours["log_tau"], theirs["log_tau"], "effective_draws_a_wall_second"
            ),
            "effective_draws_a_core_second": _ratio(
                ours["log_tau"], theirs["log_tau"], "effective_draws_a_core_second"
            ),
        },
    }


def _ratio(above: dict[str, Any], below: dict[str, Any], name: str) -> float:
    return round(above[name] / below[name], 2)


def main() -> None:
    """Measure and write the figures with their circumstances."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=list(DRAWS), default=list(DRAWS))
    parser.add_argument("--priors", nargs="+", choices=stan_programs.PRIORS, default=["predcp"])
    parser.add_argument("--chains", type=int, default=Settings.chains)
    parser.add_argument("--warmup", type=int, default=Settings.warmup)
    parser.add_argument("--draws", type=int, default=Settings.draws)
    parser.add_argument("--depth", type=int, default=Settings.depth)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--gradients", type=int, default=1000, help="in our timed loop")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    # One core a chain, as Stan has; read when JAX starts.
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false"
    jax.config.update("jax_enable_x64", True)
    settings = Settings(
        options.chains,
        options.warmup,
        options.draws,
        depth=options.depth,
        seed=options.seed,
    )
    described = environment()
    for package in ("pystan", "httpstan"):
        described["versions"][package] = metadata.version(package)
    results: dict[str, Any] = {"environment": described, "settings": asdict(settings)}
    for name in options.data:
        for prior in options.priors:
            print(f"{name} {prior} ...", flush=True)
            results[f"{name} {prior}"] = compare(name, prior, settings, options.gradients)
            print(json.dumps(results[f"{name} {prior}"], indent=2), flush=True)
            # What is measured is kept if a later one is stopped.
            options.output.parent.mkdir(exist_ok=True)
            options.output.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
