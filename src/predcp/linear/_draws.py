"""What a sampler returns: draws, statistics of each step, and how long it took."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import numpy as np
from jaxtyping import PyTree

from predcp.linear._layout import Run

# R-hat needs at least this many draws.
_FEWEST_DRAWS = 4


@dataclass(frozen=True)
class Draws:
    """Draws of one posterior.

    **Arguments**
    - `values`: kept quantities, each `(chains, draws, ...)`.
    - `statistics`: of each step, by ArviZ's names (`diverging`, `n_steps`, `lp`, ...).
    - `max_depth`: of the trees, None for a sampler without trees.
    - `seconds`: this posterior's share of the wall time, without compilation.
    - `leapfrogs`: gradients of all chains, warm-up included.
    - `figures`: further numbers of the method (the ELBO, ...).
    - `missing`: steps per chain that a time limit left out.
    - `sampler`: the class that `Auto` chose; empty otherwise.
    """

    values: PyTree
    statistics: Mapping[str, np.ndarray]
    max_depth: int | None
    seconds: float
    leapfrogs: int
    figures: Mapping[str, float] = field(default_factory=dict)
    missing: int = 0
    sampler: str = ""

    @property
    def divergences(self) -> float:
        """Fraction of divergent steps; none where there are no steps."""
        return float(np.mean(self.statistics.get("diverging", 0.0)))

    @property
    def depth_saturation(self) -> float:
        """Fraction of steps cut short by the greatest depth."""
        if self.max_depth is None:
            return 0.0
        return float(np.mean(self.statistics["n_steps"] >= 2**self.max_depth - 1))


def unpack(
    run: Run,
    warmup: int,
    draws: int,
    max_depth: int | None,
    figures: Mapping[str, float] | None = None,
) -> list[Draws]:
    """One `Draws` per problem, without the warm-up.

    If a time limit ended chains during warm-up, the second half of their steps is kept.
    """
    values, statistics = run.kept
    count, _, steps = statistics["n_steps"].shape
    missing = max(warmup + draws - steps, 0)
    begin = warmup if steps >= warmup + min(draws, _FEWEST_DRAWS) else steps // 2

    def of(problem: int) -> Draws:
        def part(leaf: np.ndarray) -> np.ndarray:
            return leaf[problem, :, begin:]

        return Draws(
            jax.tree.map(part, values),
            jax.tree.map(part, statistics),
            max_depth,
            run.seconds / count,
            int(statistics["n_steps"][problem].sum()),
            figures or {},
            missing,
        )

    return [of(problem) for problem in range(count)]
