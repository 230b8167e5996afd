"""Choose during warm-up how often a Gibbs sweep repeats its costly moves, and how it draws single numbers.

Each setting is tried for some sweeps. Its worth is the number of effective draws per unit of work. Work is
counted and not timed, so the same seed gives the same draws. The setting is fixed before the first
draw that is kept.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from predcp._numerics.chains import bulk_ess

# A setting must be better by this factor to replace a cheaper one: figures of short trials are noisy.
_BETTER = 1.25
# Shorter trials than this say nothing.
_FEWEST_SWEEPS = 20
# Of ten parts of the warm-up, the way to the posterior takes three, and each trial takes one.
_PARTS, _PARTS_BEFORE = 10, 3
# Draws that are worth so many independent ones need no search.
_GOOD = 0.3
# Columns with the largest coefficients, and logits, that are watched.
LEADERS, _LOGITS = 4, 30
# Operations per entry of the design in a look at all swaps, and per column in a draw of a path.
_LOOK, _PATH = 30.0, 40.0
# Single numbers that a sweep draws; matrices of rows by rows that are factorised for one of them by slice
# sampling, and choices among the points of a lattice.
_NUMBERS, _FACTORISATIONS, _CHOICES = 4.0, 10.0, 2.0


class Moves(NamedTuple):
    """How many swaps of columns a sweep proposes, and how many paths of the logits it takes.

    **Arguments**: `lattice`, see `Gibbs`.
    """

    handovers: int
    paths: int
    lattice: int = 0


# In the order in which they are tried; the first is used where nothing is tried.
HANDOVERS, PATHS, LATTICES = (1, 4, 16), (1, 3), (32, 0)

# `advance(setting, sweeps)` gives what was watched, `(problems, chains, sweeps, quantities)`, or None
# when the time is up.
Advance = Callable[[Moves, int], np.ndarray | None]


def watched(
    eta: Float[Array, " rows"], log_tau: Array, lp: Array, direction: Float[Array, " columns"]
) -> Float[Array, " quantities"]:
    """What the trials look at: some logits, log tau, log density, and the leading columns' places."""
    rows = np.linspace(0, eta.size - 1, min(_LOGITS, eta.size)).astype(int)
    _, places = jax.lax.top_k(jnp.abs(direction), min(LEADERS, direction.size))
    return jnp.concatenate([eta[rows], jnp.stack([log_tau, lp]), places.astype(eta.dtype)])


def work(
    rows: int,
    columns: int,
    looked_at: int,
    parts: int,
    setting: Moves,
    points_at_once: bool = False,
) -> float:
    """Operations of a sweep.

    **Arguments**: `looked_at`, columns that a proposed swap looks at; `parts` of the columns, of which a
    sweep renews one; `points_at_once`, whether all points of a lattice take as long as one.
    """
    small = min(rows, columns)
    base = 2.0 * rows * columns * (4.0 + 3.0 / parts + small / parts)
    evaluations = _FACTORISATIONS
    if setting.lattice:
        evaluations = _CHOICES * (1 if points_at_once else setting.lattice)
    base += _NUMBERS * evaluations * small**3 / 3.0
    swap = 2.0 * _LOOK * rows * looked_at
    path = 2.0 * rows * columns + _PATH * columns
    return base + setting.handovers * swap + setting.paths * path


def effective_draws(seen: np.ndarray, leaders: int) -> float:
    """Effective draws per sweep of a chain: the harmonic mean over quantities and problems.

    That mean is close to the smallest of them but varies less between trials. A leading column is worth a
    draw each time that one takes its place which did not lead in the sweep before.

    **Arguments**: `seen`, `(problems, chains, sweeps, quantities)`; `leaders`, how many of the last
    quantities are places of columns.
    """
    times = []
    for problem in np.asarray(seen, np.float64):
        numbers, places = np.split(problem, [problem.shape[-1] - leaders], axis=-1)
        # A quantity that never moved has no effective draws, nor one that is not finite.
        told = np.isfinite(numbers).all((0, 1)) & (np.ptp(numbers, axis=(0, 1)) > 0.0)
        times.append(numbers[..., 0].size / bulk_ess(numbers[..., told]))
        new = (places[:, 1:, :, None] != places[:, :-1, None, :]).all(-1)
        # Half a change more, for one that was not seen to change is not one that cannot.
        times.append((new[..., 0].size + 0.5) / (new.sum((0, 1)) + 0.5))
    return float(1.0 / np.mean(np.concatenate(times)))


def tuned(
    advance: Advance,
    cost: Callable[[Moves], float],
    warmup: int,
    leaders: int,
    handovers: int | None,
    paths: int | None,
    lattice: int | None = 0,
) -> tuple[Moves, int]:
    """The setting for all further sweeps, and the number of sweeps that it took to find it.

    First more swaps are tried, then more paths, then slices instead of a lattice; each search ends with the
    first value that is not better.

    **Arguments**: `cost`, see `work`; `leaders`, see `effective_draws`; `handovers`, `paths` and `lattice`,
    None for those to choose.
    """
    given, values = (handovers, paths, lattice), (HANDOVERS, PATHS, LATTICES)
    best = Moves(*(own[0] if named is None else named for named, own in zip(given, values)))
    sweeps, taken = warmup // _PARTS, 0
    if sweeps < _FEWEST_SWEEPS:
        return best, 0

    def tried(setting: Moves, count: int) -> float | None:
        nonlocal taken
        taken += count
        seen = advance(setting, count)
        return None if seen is None else effective_draws(seen, leaders)

    tried(best, _PARTS_BEFORE * sweeps)
    worth = tried(best, sweeps)
    if worth is None or worth >= _GOOD:
        return best, taken
    worth = worth / cost(best)
    for name, named, own in zip(Moves._fields, given, values):
        for value in own[1:] if named is None else ():
            setting = best._replace(**{name: value})
            found = tried(setting, sweeps)
            if found is None or found / cost(setting) < _BETTER * worth:
                break
            best, worth = setting, found / cost(setting)
    return best, taken
