"""Run the cells of a design: one compiled program for all its simulations."""

import time
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from studies.scale_priors.counts import with_kinds
from studies.scale_priors.designs import NAMES, SCALES, design
from studies.scale_priors.posterior import SCORES, Study, ready, scores
from studies.scale_priors.simulate import Simulation, simulation, stacked

SEED, TRIAL_SEED = 2026, 1


@eqx.filter_jit
def _scores(study: Study, batch: Simulation, tau: Any) -> Any:
    return jax.lax.map(lambda one: scores(study, one.y, one.truth, tau, one.rows), batch)


def run_design(name: str, simulations: int, seed: int = SEED, part: Any = None) -> pd.DataFrame:
    """Scores of every simulation, scale and prior of a design.

    **Arguments**: `part`, indices of the true scales to run, all when None.
    """
    made = design(name)
    started = time.perf_counter()
    study = ready(made)
    prepared = time.perf_counter() - started

    frames = []
    for place in range(len(SCALES)) if part is None else part:
        started = time.perf_counter()
        tau = made.scales[place]
        cell = 4 * NAMES.index(name) + place
        batch = stacked([simulation(made, tau, [seed, cell, s]) for s in range(simulations)])
        if made.method == "counts":
            study = replace(study, data=with_kinds(study.data, batch.y))
        found = np.asarray(_scores(study, batch, jnp.asarray(tau)))
        index = pd.MultiIndex.from_product(
            [range(simulations), study.priors], names=["simulation", "prior"]
        )
        frame = pd.DataFrame(found.reshape(-1, len(SCORES)), index, SCORES).reset_index()
        frame.insert(0, "scale", SCALES[place])
        frame.insert(0, "design", name)
        frame["seconds"] = time.perf_counter() - started + prepared
        prepared = 0.0
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)
