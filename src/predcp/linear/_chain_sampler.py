"""What every sampler that runs chains shares: how many, how long, and when they have mixed."""

import time
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from predcp._numerics.chains import worst_rhat
from predcp.linear._draws import Draws, unpack
from predcp.linear._layout import Layout, Program, Progress, run
from predcp.linear._target import Target


@dataclass(frozen=True, kw_only=True)
class ChainSampler:
    """Chains of some transition that leaves the posterior as it is.

    **Arguments**
    - `chains`, `warmup`, `draws`: each chain takes `warmup + draws` steps and keeps the latter.
    - `max_draws`: chains go on, doubling what they keep, until the R-hat of everything in
        `monitor` (names of kept values; all if None) is at most `rhat`; None to stop at `draws`.
    - `max_seconds`: as many of these further draws as fit into so many seconds in all, compiling
        included; None for no limit. The same seed then need not give the same number of draws.
    - `layout`: see `predcp.linear.Layout`; `chunk`: steps between two reports of progress.
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
        calls = -(-(self.warmup + self.draws) // self.chunk)
        sampled = run(
            self,
            target,
            self.chains,
            calls,
            self.seed,
            self.layout,
            progress,
            partial(self._wanted, began=time.monotonic()),
        )
        return unpack(sampled, self.warmup, self.draws, self._max_depth)

    def _wanted(self, kept: Any, began: float) -> int:
        """How many more chunks: as many as were kept, if the chains have not mixed."""
        seconds = time.monotonic() - began
        values, statistics = kept
        steps = statistics["n_steps"].shape[2]
        held = steps - self.warmup
        if self.max_draws is None or held >= self.max_draws:
            return 0
        names = tuple(values) if self.monitor is None else self.monitor
        # Of several problems the worst decides: a GPU carries the others along for nothing.
        rhats = [
            worst_rhat(problem[:, self.warmup :].reshape(len(problem), held, -1))
            for monitored in names
            for problem in values[monitored]
        ]
        if all(rhat <= self.rhat for rhat in rhats):
            return 0
        chunks = -(-min(held, self.max_draws - held) // self.chunk)
        if self.max_seconds is None:
            return chunks
        # Compiling makes the past look slower than the future: an estimate on the safe side.
        affordable = (self.max_seconds - seconds) / seconds * steps
        return min(chunks, max(0, int(affordable // self.chunk)))

    @property
    def _max_depth(self) -> int | None:
        return None

    @property
    def program_name(self) -> Hashable:
        """Neither the seed nor the layout nor when to stop changes the program of one chain."""
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
