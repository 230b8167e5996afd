"""Choose the inference by the table: NUTS or Gibbs, and Laplace's method where time is short."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from predcp._support.progress import Progress, as_report
from predcp.linear._chain_sampler import ChainSampler
from predcp.linear._draws import Draws
from predcp.linear._gibbs import Gibbs
from predcp.linear._gibbs_model import GibbsModel
from predcp.linear._laplace import Laplace
from predcp.linear._nuts import Nuts
from predcp.linear._target import Target

# Draws of the first look under a limit on time.
_FIRST_LOOK = 400
# Seconds that chains need to compile and to start; a limit that leaves less ends with the first look.
_START_SECONDS = 10.0
# What has to mix; the local scales of many columns would take longer to check than to draw.
_MONITORED = ("alpha", "sigma", "log_tau", "beta")
_MOST_MONITORED = 1000


@dataclass(frozen=True, kw_only=True)
class Auto:
    """The sampler that suits the table.

    `Gibbs` where there are at least as many columns as rows and it can sample the model, `Nuts`
    otherwise. Effective draws a second, by Gibbs in units of NUTS's: 0.6 for 398 x 30 (logistic), 2 for
    309 x 10 (linear), 0.8 to 3.6 for 62 x 2000 and 6 to 30 for 72 x 7129 (log tau and log density,
    logistic). Chains go on until R-hat is at most 1.01, up to eight times `draws`.

    **Arguments**
    - `chains`, `draws`, `seed`: as for `Nuts`.
    - `max_seconds`: limit on the time of a fit, None for none. Laplace's method then takes a first
        look. Its draws are the answer if the time ends before the warm-up of the chains does; the
        summary says what was reached.
    """

    chains: int = 4
    draws: int = 500
    seed: int = 0
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        # Bad numbers are refused here, not in the middle of a fit.
        self._chains(Nuts)

    def sample(self, target: Target, progress: Progress | None = None) -> list[Draws]:
        """Draws of every problem of the target, in order."""
        began, report = time.monotonic(), as_report(progress)
        chosen = self.choice(target)
        if self.max_seconds is None:
            return _named(chosen.sample(target, progress), type(chosen))

        def first_look(done: int, total: int, words: str | None = None) -> None:
            report(done, total, None if words is None else f"first look: {words}")

        look = Laplace(draws=min(_FIRST_LOOK, max(self.draws, 4)), seed=self.seed)
        looked = look.sample(target, first_look)
        left = self.max_seconds - (time.monotonic() - began)
        if left > _START_SECONDS:
            sampled = replace(chosen, max_seconds=left).sample(target, progress)
            if all(draws.missing <= self.draws for draws in sampled):
                return _named(sampled, type(chosen))
        steps = chosen.warmup + chosen.draws
        return _named([replace(draws, missing=steps) for draws in looked], Laplace)

    def choice(self, target: Target) -> ChainSampler:
        """The sampler of the chains."""
        rows, columns = np.shape(target.data[0])[-2:]
        if columns >= rows:
            try:
                GibbsModel.of(target)
            except ValueError:
                return self._chains(Nuts, columns)
            return self._chains(Gibbs, columns)
        return self._chains(Nuts, columns)

    def _chains(self, sampler: type[ChainSampler], columns: int = 1) -> ChainSampler:
        settings: dict[str, Any] = {"warmup": 300} if sampler is Nuts else {}
        monitored = _MONITORED if columns <= _MOST_MONITORED else _MONITORED[:-1]
        return sampler(
            chains=self.chains,
            draws=self.draws,
            seed=self.seed,
            max_draws=8 * self.draws,
            max_seconds=self.max_seconds,
            monitor=monitored,
            **settings,
        )


def _named(draws: list[Draws], method: type) -> list[Draws]:
    return [replace(one, sampler=method.__name__) for one in draws]
