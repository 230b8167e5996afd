"""Gibbs sampling of horseshoe-type regressions: the sampler for many columns and few rows."""

import functools
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp._support.cores import one_thread_for_small_matrices
from predcp._support.progress import Progress
from predcp.linear._chain_sampler import ChainSampler
from predcp.linear._draws import Draws
from predcp.linear._gibbs_model import GibbsModel, GibbsState
from predcp.linear._gibbs_sweep import Sweep
from predcp.linear._handover import looked_at
from predcp.linear._layout import Program, Tune, repeated
from predcp.linear._parts import Parts
from predcp.linear._target import Target
from predcp.linear._tuning import HANDOVERS, LEADERS, PATHS, Advance, Moves, tuned, work

# Steps of all chains that wait to be stored take a 16th of the memory of a wide design.
_PART_OF_DESIGN = 32


@dataclass(frozen=True, kw_only=True)
class Gibbs(ChainSampler):
    """Gibbs sweeps over coefficients, local scales and tau, each drawn given the others.

    For linear and two-class logistic regression with half-Cauchy local scales and any prior of
    tau; use `Nuts` for every other model. A sweep costs about `N D min(N, D)`. There are no
    derivatives, nothing to tune, and no divergent steps. Of a design of more than four million entries a
    sweep renews the local scales of one part of the columns, in turn.

    **Arguments**
    - `handovers`: proposed swaps per sweep of one of the largest columns with any other column: moves
        between sets of columns that explain the same rows. None: chosen during warm-up.
    - `paths`: Hamiltonian paths of the logits per sweep for separable rows (logistic outcomes with
        at least as many columns as rows), where Polya-gamma weights would mix slowly. None: chosen
        during warm-up.
    - `lattice`: number of points, evaluated at once, among which tau and sigma are chosen; 0 for slice
        sampling, which evaluates points one by one. None: 0 on a CPU, where 32 points cost 32 times as
        much as one; on a GPU, 32 or 0, chosen during warm-up.
    - `warmup`: discarded sweeps at the start. With 200 or more, the moves that are None are chosen by
        the effective draws they give per unit of work, which is counted, not timed: the same seed gives
        the same draws. What was chosen is in the figures of the draws.
    - the others as for `ChainSampler`.
    """

    warmup: int = 200
    handovers: int | None = None
    paths: int | None = None
    lattice: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("handovers", "paths"):
            given = getattr(self, name)
            if given is not None and given < 0:
                raise ValueError(f"{name} must be at least 0 or None, got {given}")
        # A lattice of one point has no choice.
        if self.lattice is not None and (self.lattice < 0 or self.lattice == 1):
            raise ValueError(f"lattice must be None, 0 or at least 2, got {self.lattice}")

    def sample(self, target: Target, progress: Progress | None = None) -> list[Draws]:
        rows, columns = np.shape(target.data[0])[-2:]
        sampler = self
        if Parts.of(rows, columns).number > 1:
            # All chains read the design together, and their draws take a part of its memory.
            steps = max(1, rows // (_PART_OF_DESIGN * self.chains))
            layout = "vectorised" if self.layout == "auto" else self.layout
            sampler = replace(self, layout=layout, chunk=min(self.chunk, steps))
        with one_thread_for_small_matrices(min(rows, columns)):
            return super(Gibbs, sampler).sample(target, progress)

    def _tuning(self, target: Target, figures: dict[str, float]) -> Tune | None:
        handovers, paths, lattice = self.handovers, self.paths, self._points
        if handovers is not None and paths is not None and lattice is not None:
            return None
        rows, columns = np.shape(target.data[0])[-2:]
        cost = functools.partial(
            work,
            rows,
            columns,
            looked_at(rows, columns),
            Parts.of(rows, columns).number,
            points_at_once=_points_at_once(),
        )
        if handovers is None and columns == 1:
            handovers = HANDOVERS[0]
        # Paths are for two classes and at least as many columns as rows.
        if paths is None and (rows > columns or target.family == "normal"):
            paths = PATHS[0]

        def tune(advance: Advance) -> tuple[Moves, int]:
            leaders = min(LEADERS, columns)
            setting, taken = tuned(advance, cost, self.warmup, leaders, handovers, paths, lattice)
            figures.update({name: float(value) for name, value in setting._asdict().items()})
            return setting, taken

        return tune

    @property
    def _points(self) -> int | None:
        """Points of the lattice; None for those to choose."""
        return 0 if self.lattice is None and not _points_at_once() else self.lattice

    def build(self, target: Target) -> Program:
        model = GibbsModel.of(target)
        lattice = self._points

        def sweep_of(data: tuple[Any, ...]) -> Sweep:
            return Sweep.of(model, data, self.handovers, self.paths, lattice)

        def start(key: Array, *data: Any) -> GibbsState:
            return sweep_of(data).start(key)

        def advance(state: GibbsState, steps: Array, *data: Any):
            sweep = sweep_of(data)

            def one(state: GibbsState):
                state, figures = sweep(state)
                statistics = {"n_steps": jnp.ones((), jnp.int32), **figures}
                return state, (target.kept_sites(model.sites(state), *data), statistics)

            return repeated(one, state, steps, self.chunk)

        return Program(start, advance)


def _points_at_once() -> bool:
    """Whether the device evaluates many points in hardly more time than one."""
    return jax.default_backend() != "cpu"
