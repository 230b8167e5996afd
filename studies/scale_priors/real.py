"""The real outcomes: groups or rows held out, and the log score of each held-out row."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from studies.scale_priors.cells import SEED
from studies.scale_priors.designs import NAMES, Design, design
from studies.scale_priors.posterior import Study, log_row_densities, posterior, ready
from studies.scale_priors.simulate import rows_like
from studies.scale_priors.tables import Rows

SPLITS = 20
SHARE = 0.2
# Each group in turn is held out in these.
IN_TURN = ("dyestuff", "schools-3", "schools-5", "schools-8")
KINDS = ("groups", "rows")


def splits(
    made: Design, kind: str, count: int = SPLITS, seed: int = SEED
) -> Iterator[tuple[Design, Rows, Any]]:
    """Training designs, the rows held out, and how many rows each of them stands for."""
    number = NAMES.index(made.name)
    groups = int(made.groups.max()) + 1
    if (kind == "groups" and made.curve) or (kind == "rows" and not made.row_splits):
        return
    in_turn = kind == "groups" and made.name in IN_TURN
    for split in range(groups if in_turn else count):
        rng = np.random.default_rng([seed, 1000 + number, split])
        if kind == "groups":
            size = max(1, round(SHARE * groups))
            out = [split] if in_turn else rng.choice(groups, size, replace=False)
            held = np.isin(made.groups, out)
            yield (*_without_rows(made, held, made.new), np.ones(held.sum()))
        elif made.row_splits == "trials":
            yield _without_trials(made, rng)
        else:
            held = _held_rows(made, rng)
            made_train, rows = _without_rows(made, held, (False,) * len(made.z))
            yield made_train, rows, np.ones(held.sum())


def _held_rows(made: Design, rng: np.random.Generator) -> np.ndarray:
    if made.row_splits == "inputs":
        values = np.unique(made.inputs)
        out = rng.choice(values, max(1, round(SHARE * len(values))), replace=False)
        return np.isin(made.inputs, out)
    held = np.zeros(len(made.y), bool)
    held[rng.choice(len(held), round(SHARE * len(held)), replace=False)] = True
    return held


def _without_rows(made: Design, held: np.ndarray, new: tuple[bool, ...]) -> tuple[Design, Rows]:
    """The design without some rows; factors that are new lose the columns of the groups held out."""
    kept = ~held
    if made.row_splits == "inputs":
        # Centred where it is fitted, so that intercepts and slopes stay orthogonal.
        middle = made.x[kept, 1].mean()
        x = made.x - np.array([0.0, middle])
        made = replace(made, x=x, z=(made.z[0], x[:, 1:] * (made.z[0] > 0.0)))
    rows = rows_like(made, np.flatnonzero(held), new, made.y[held])
    columns = [
        np.any(z[kept] != 0.0, 0) if fresh else np.ones(z.shape[1], bool)
        for z, fresh in zip(made.z, new)
    ]
    train = replace(
        made,
        y=made.y[kept],
        x=made.x[kept],
        z=tuple(z[kept][:, c] for z, c in zip(made.z, columns)),
        groups=made.groups[kept],
        noise=made.noise[kept],
        trials=made.trials[kept],
    )
    return train, rows._replace(z=tuple(z[:, c] for z, c in zip(rows.z, columns)))


def _without_trials(made: Design, rng: np.random.Generator) -> tuple[Design, Rows, Any]:
    """The design without a fifth of all trials; those of a group and outcome are alike."""
    hits, misses = made.y.astype(int), (made.trials - made.y).astype(int)
    outcome = np.repeat(np.tile([1, 0], len(hits)), np.column_stack([hits, misses]).ravel())
    group = np.repeat(np.arange(len(hits)), hits + misses)
    held = rng.choice(len(group), round(SHARE * len(group)), replace=False)
    count = np.zeros((len(hits), 2))
    np.add.at(count, (group[held], outcome[held]), 1.0)
    train = replace(made, y=made.y - count[:, 1], trials=made.trials - count.sum(1))
    place, y = (each.ravel() for each in np.indices(count.shape))
    rows = rows_like(made, place, (False,), y.astype(float))
    return train, rows._replace(trials=np.ones(len(place))), count.ravel()


@eqx.filter_jit
def _log_scores(study: Study, y: Any, truth: Any, rows: Rows) -> Any:
    table = study.table(y, truth, rows)
    return log_row_densities(posterior(study, table, y), table.log_density)


def run_real(name: str, count: int = SPLITS, seed: int = SEED) -> pd.DataFrame:
    """Mean log score per held-out row of every split and prior of a design."""
    made = design(name)
    found = []
    for kind in KINDS:
        for split, (train, rows, weight) in enumerate(splits(made, kind, count, seed)):
            study = ready(train)
            truth = jnp.zeros(train.scored.shape[0])
            rows = jax.tree.map(jnp.asarray, rows)
            values = np.asarray(_log_scores(study, jnp.asarray(train.y), truth, rows))
            means = values @ weight / weight.sum()
            found += [
                {"design": made.real_name or name, "kind": kind, "split": split, "prior": prior}
                | {"score": score, "rows": weight.sum()}
                for prior, score in zip(study.priors, means)
            ]
    return pd.DataFrame(found)


def real_designs() -> list[str]:
    """Names of the designs whose real outcomes are used."""
    return [name for name in NAMES if design(name).real]
