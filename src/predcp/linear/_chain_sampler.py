"""Base class of samplers of chains: number of chains, their length, and the test for mixing."""

import time
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from predcp._numerics.chains import worst_rhat
from predcp.linear._draws import Draws, unpack
from predcp.linear._layout import Layout, Program, Progress, Tune, run
from predcp.linear._target import Target


@dataclass(frozen=True, kw_only=True)
class ChainSampler:
    """Markov chains whose transition leaves the posterior invariant.

    **Arguments**
    - `chains`, `warmup`, `draws`: each chain takes `warmup + draws` steps and keeps the last `draws`.
    - `seed`: the same number gives the same draws.
    - `max_draws`: chains go on, doubling what they keep, until the R-hat of everything in
        `monitor` (names of kept values, those that exist; all if None) is at most `rhat`; None
        to stop at `draws`.
    - `max_seconds`: time limit in seconds, compilation included; None for no limit. Chains
        then keep the draws they have, and the summary says so; where there are none to keep, a
        TimeoutError does. A limit that is reached makes the number of draws depend on the speed of
        the machine, even with the same seed.
    - `layout`: `auto`, `sequential`, `processes` or `vectorised`.
    - `chunk`: largest number of steps between two reports of progress; long steps are reported singly.
    """

    chains: int = 4
    warmup: int = 1000
    draws: int = 1000
    seed: int = 0
    max_draws: int | None = None
    max_seconds: float | None = None
    monitor: tuple[str, ...] | None = None
    rhat: float = 1.01
    layout: Layout = "auto"
    chunk: int = 100

    def __post_init__(self) -> None:
        for name in ("chains", "warmup", "draws", "chunk"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.max_draws is not None and self.max_draws < self.draws:
            raise ValueError(f"max_draws must be at least draws, got {self.max_draws}")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ValueError(f"max_seconds must be positive or None, got {self.max_seconds}")

    def sample(self, target: Target, progress: Progress | None = None) -> list[Draws]:
        """Draws of every problem of the target, in order."""
        began = time.monotonic()
        limit = float("inf") if self.max_seconds is None else self.max_seconds
        figures: dict[str, float] = {}
        sampled = run(
            self,
            target,
            self.chains,
            self.warmup + self.draws,
            self.seed,
            self.layout,
            progress,
            self._further_steps,
            began + limit,
            self._tuning(target, figures),
        )
        return unpack(sampled, self.warmup, self.draws, self._max_depth, figures)

    def _tuning(self, target: Target, figures: dict[str, float]) -> Tune | None:
        """Choose a setting during warm-up and write it into `figures`; None if there is no choice."""
        return None

    def _further_steps(self, kept: Any) -> int:
        """Number of further steps: as many as were kept, or 0 if the chains have mixed."""
        values, statistics = kept
        held = statistics["n_steps"].shape[2] - self.warmup
        if self.max_draws is None or held >= self.max_draws:
            return 0
        monitor = tuple(values) if self.monitor is None else self.monitor
        names = [name for name in monitor if name in values]
        # The worst of several problems decides, because they advance together.
        rhats = [
            worst_rhat(problem[:, self.warmup :].reshape(len(problem), held, -1))
            for monitored in names
            for problem in values[monitored]
        ]
        if all(rhat <= self.rhat for rhat in rhats):
            return 0
        return min(held, self.max_draws - held)

    @property
    def _max_depth(self) -> int | None:
        return None

    @property
    def program_name(self) -> Hashable:
        """Name of the compiled program; it does not depend on seed, layout and stopping rule."""
        return replace(
            self,
            seed=0,
            layout="auto",
            chains=1,
            draws=1,
            max_draws=None,
            max_seconds=None,
            monitor=None,
            rhat=1.01,
        )

    def build(self, target: Target) -> Program:
        """The transitions of one chain."""
        raise NotImplementedError
