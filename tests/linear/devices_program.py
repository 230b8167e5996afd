"""Run by `test_devices.py` in a process of its own: chains of small models as JSON."""

import json
import sys
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from predcp.linear import Gibbs, Horseshoe, Nuts, Ridge, Target, logistic_regression
from predcp.linear._layout import Program, repeated, run


@dataclass(frozen=True)
class RandomWalk:
    """Metropolis steps for a normal mean: a sampler with a short program."""

    chunk: int = 7

    @property
    def program_name(self):
        return self

    def build(self, target):
        def start(key, y):
            return key, jnp.zeros(())

        def advance(state, steps, y):
            def step(state):
                key, mean = state
                key, key_move, key_accept = jax.random.split(key, 3)
                moved = mean + jax.random.normal(key_move)
                ratio = 0.5 * jnp.sum((y - mean) ** 2 - (y - moved) ** 2)
                accept = jnp.log(jax.random.uniform(key_accept)) < ratio
                mean = jnp.where(accept, moved, mean)
                return (key, mean), {"mean": mean, "accept": accept}

            return repeated(step, state, steps, self.chunk)

        return Program(start, advance)


def chains(y, problems):
    kept = run(RandomWalk(), Target(print, (y,), problems=problems), 4, 20, 0, "vectorised").kept
    return np.asarray(kept["mean"]).tolist()


def regressions(problems):
    """Log tau in the first Gibbs sweeps of one or several regressions; later ones are chaotic."""
    random = np.random.default_rng(0)
    x = random.normal(size=(problems or 1, 8, 12)).astype(np.float32)
    y = random.integers(0, 2, (problems or 1, 8))
    data = (x, y) if problems else (x[0], y[0])
    options = {"prior": Horseshoe(), "intercept": True}
    target = Target(logistic_regression, data, options, problems)
    sampled = Gibbs(warmup=3, draws=5, layout="vectorised").sample(target)
    return [one.values["log_tau"].tolist() for one in sampled]


def trees(problems):
    """The first steps of NUTS, without adaptation: later ones are chaotic."""
    random = np.random.default_rng(1)
    x = random.normal(size=(problems, 9, 2)).astype(np.float32)
    y = random.integers(0, 2, (problems, 9))
    target = Target(logistic_regression, (x, y), {"prior": Ridge()}, problems)
    sampled = Nuts(warmup=1, draws=4, chains=2, layout="vectorised").sample(target)
    return [one.values["beta"].tolist() for one in sampled]


if __name__ == "__main__":
    y = np.linspace(0.0, 2.0, 6, dtype=np.float32)
    one, several = chains(y, None), chains(np.stack([y, y + 1, y - 1, 2 * y]), 4)
    found = {"one": one, "several": several}
    shifts = np.array([0.0, 1.0, -1.0, 0.5, 2.0], np.float32)
    found["uneven"] = chains(y + shifts[:, None], 5)
    gibbs = {"one": regressions(None), "several": regressions(4)}
    devices = {"devices": jax.local_device_count()}
    json.dump(devices | {"walk": found, "gibbs": gibbs, "nuts": trees(5)}, sys.stdout)
