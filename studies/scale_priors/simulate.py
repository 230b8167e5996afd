"""Outcomes of a design from known scales, with rows of new groups."""

from typing import Any, NamedTuple

import jax
import numpy as np

from studies.scale_priors.designs import Design
from studies.scale_priors.tables import Rows

NEW_ROWS = 10


class Simulation(NamedTuple):
    """Outcomes (N,), true scored effects (E,) and rows of new groups."""

    y: Any
    truth: Any
    rows: Rows


def outcomes(design: Design, rng: np.random.Generator, predictors: Any, noise: Any, trials: Any):
    """Draws of the family."""
    if design.family == "normal":
        return predictors + noise * rng.normal(size=len(predictors))
    if design.family == "poisson":
        # Beyond this NumPy has no Poisson draws.
        return rng.poisson(np.minimum(np.exp(predictors), 1e15)).astype(float)
    return rng.binomial(trials.astype(int), 1.0 / (1.0 + np.exp(-predictors))).astype(float)


def rows_like(design: Design, place: np.ndarray, new: tuple[bool, ...], y: Any = 0.0) -> Rows:
    """Rows like those of the design at these places, some of their factors new."""
    return Rows(
        design.x[place],
        tuple(z[place] * (not fresh) for z, fresh in zip(design.z, new)),
        tuple((z[place] ** 2).sum(1) * fresh for z, fresh in zip(design.z, new)),
        design.noise[place] if design.noise_known else np.ones(len(place)),
        design.trials[place],
        np.full(len(place), -1) if new[-1] else design.groups[place],
        np.broadcast_to(np.asarray(y, float), place.shape),
    )


def simulation(design: Design, scale: float, seed: list[int]) -> Simulation:
    """One simulation: effects, outcomes, then ten rows of new groups (of a curve: new rows on it)."""
    rng = np.random.default_rng(seed)
    scales = [*[design.other_scale] * (len(design.z) - 1), scale]
    effects = [tau * rng.normal(size=z.shape[1]) for tau, z in zip(scales, design.z)]
    fixed = design.x @ design.beta
    predictors = fixed + sum(z @ u for z, u in zip(design.z, effects))
    y = outcomes(design, rng, predictors, design.noise, design.trials)
    place = rng.integers(len(y), size=NEW_ROWS)
    rows = rows_like(design, place, design.new)
    moved = fixed[place] + sum(z @ u for z, u in zip(rows.z, effects))
    for tau, fresh in zip(scales, rows.fresh):
        moved = moved + tau * np.sqrt(fresh) * rng.normal(size=NEW_ROWS)
    new = outcomes(design, rng, moved, design.noise[place], design.trials[place])
    return Simulation(y, design.scored @ effects[-1], rows._replace(y=new))


def stacked(made: list[Simulation]) -> Simulation:
    """Simulations with a leading axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *made)
