"""Choose the inference by the size of the table: NUTS, Gibbs, or Laplace's method."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from predcp._support.progress import Bar, Progress, as_report
from predcp.linear._chain_sampler import ChainSampler
from predcp.linear._draws import Draws
from predcp.linear._gibbs import Gibbs
from predcp.linear._gibbs_model import GibbsModel
from predcp.linear._laplace import Laplace
from predcp.linear._layout import NOT_COMPILED
from predcp.linear._nuts import Nuts
from predcp.linear._quick_look import QuickLook
from predcp.linear._target import Target

# Draws of the first approximation under a time limit.
_FIRST_LOOK = 400
# Of a time limit: what the first look may take, and what is left for the end of a fit.
_LOOK_SHARE, _END_SHARE = 0.5, 0.05
# With fewer seconds chains would hardly be of use: the first look may take them all.
_CHAINS_SECONDS = 20.0
# Seconds of the processor for tracing a model, which cannot be cut short: with less time left (more of it
# where other work takes a part of the processor) nothing further is begun.
_TRACING = 1.5
# Seconds of the processor below which its share is not told.
_SHORTEST = 0.01
# Share of the quick look; and how much longer the preparation of chains takes than that of the first look.
_QUICK_SHARE, _PREPARATIONS = 0.1, 2.0
# One step of the first look reads a wide design as the quick look does, twice in double precision; a search
# needs some steps.
_READINGS = 20.0
# Distance to the mode, in standard deviations, of a look that is worth more than one without the prior.
_NEAR = 1.0
# Quantities whose mixing is checked; checking all local scales would take longer than drawing them.
_MONITORED = ("alpha", "sigma", "log_tau", "beta")
_MOST_MONITORED = 1000


@dataclass(frozen=True)
class Rule:
    """One line of the rule.

    **Arguments:** `applies(rows, columns, family)`, the family as in `Target`; `sampler`, the class;
    `source`, where that comes from.
    """

    applies: Callable[[int, int, str | None], bool]
    sampler: type[ChainSampler] | type[Laplace]
    source: str


# The first line that applies and whose sampler can sample the model. Processor's seconds for 400 effective
# draws are those of benchmarks/auto.py.
RULES = (
    Rule(
        lambda rows, columns, family: rows >= 50_000 and rows >= 50 * columns,
        Laplace,
        "a step of a chain reads all rows, and with so many the posterior is nearly normal; what the "
        "approximation leaves out is in the summary",
    ),
    Rule(
        lambda rows, columns, family: columns >= (10 * rows if family == "normal" else rows),
        Gibbs,
        "seconds by Gibbs and by NUTS: classes, 47 and 70 for 50 x 100; numbers, 46 and 218 for 50 x 1000; "
        "effective draws a second in units of NUTS's, classes: 0.8 to 3.6 for 62 x 2000, 6 to 30 for "
        "72 x 7129",
    ),
    Rule(
        lambda rows, columns, family: True,
        Nuts,
        "seconds by NUTS and by Gibbs: classes, 17 and 18 for 400 x 10, 18 and 31 for 400 x 100; numbers, "
        "8 and 12 for 50 x 10, 12 and 18 for 50 x 100, 15 and 15 for 400 x 100",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Auto:
    """The sampler that suits the table.

    `Laplace` for 50,000 rows and more (two classes or numbers), `Gibbs` where there are at least as
    many columns as rows (for numbers: ten times as many) and it can sample the model, `Nuts` otherwise.
    Chains go on until R-hat is at
    most 1.01, up to eight times `draws`.

    **Arguments**
    - `chains`, `draws`, `seed`: as for `Nuts`.
    - `max_seconds`: time limit of a fit in seconds, from its beginning, compilation included; None for
        none. The answer is the best that the time allows: chains; else a first look by Laplace's method;
        else, if even that cannot be compiled in time, a quick look with one scale for all columns, which
        compiles nothing. The summary says which. What is being compiled when the time is up goes on in
        the background and serves the next fit of the same shape.
    """

    chains: int = 4
    draws: int = 500
    seed: int = 0
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        # Refuse bad numbers here, not in the middle of a fit.
        self._chains(Nuts)

    def sample(self, target: Target, progress: Progress | None = None) -> list[Draws]:
        """Draws of every problem of the target, in order."""
        if self.max_seconds is None:
            chosen = self.choice(target)
            return _named(chosen.sample(target, progress), type(chosen))
        pace = _Pace()
        until = pace.began + (1.0 - _END_SHARE) * self.max_seconds
        report = as_report(progress)
        report(0, 1, "quick look")
        draws = min(_FIRST_LOOK, max(self.draws, 4))
        quick = QuickLook(draws=draws, seed=self.seed, max_seconds=_QUICK_SHARE * self.max_seconds)
        answer = quick.sample(target)
        if answer is not None:
            reading = max(one.figures["reading"] for one in answer)
            answer = _named([replace(one, missing=self.draws) for one in answer], QuickLook)
            needed = max(_READINGS * reading, _TRACING * pace.slowness())
            if until - time.monotonic() < needed:
                return answer
        try:
            # Only now: the choice may trace the model.
            chosen = self.choice(target)
            look = self._first_look(target, chosen, draws, until, pace, report)
            if answer is None or isinstance(chosen, Laplace) or _found(look):
                answer = look
            # Chains take longer to prepare than the first look did.
            preparing = max(one.figures["preparing"] for one in look)
            left = until - time.monotonic() - _PREPARATIONS * preparing
            if isinstance(chosen, Laplace) or left < _TRACING * pace.slowness():
                return answer
            chains = replace(chosen, max_seconds=until - time.monotonic())
            sampled = chains.sample(target, progress)
            if all(one.missing <= self.draws for one in sampled):
                return _named(sampled, type(chosen))
        except TimeoutError:
            if answer is None:
                raise
        return answer

    def _first_look(
        self,
        target: Target,
        chosen: ChainSampler | Laplace,
        draws: int,
        until: float,
        pace: "_Pace",
        report: Bar,
    ) -> list[Draws]:
        """Laplace's method within its share of the time; a TimeoutError if that is too short."""

        def first_look(done: int, total: int, words: str | None = None) -> None:
            report(done, total, None if words is None else f"first look: {words}")

        left = until - time.monotonic()
        if left < _TRACING * pace.slowness():
            raise TimeoutError(NOT_COMPILED)
        if isinstance(chosen, Laplace):
            found = replace(chosen, max_seconds=left).sample(target, first_look)
            return _named(found, Laplace)
        share = 1.0 if left < _CHAINS_SECONDS else _LOOK_SHARE
        look = Laplace(draws=draws, seed=self.seed, max_seconds=share * left)
        found = look.sample(target, first_look)
        missing = chosen.warmup + chosen.draws
        return _named([replace(one, missing=missing) for one in found], Laplace)

    def choice(self, target: Target) -> ChainSampler | Laplace:
        """The sampler, by `RULES`."""
        rows, columns = np.shape(target.data[0])[-2:]
        for rule in RULES:
            if rule.applies(rows, columns, target.family) and _can_sample(rule.sampler, target):
                if issubclass(rule.sampler, Laplace):
                    draws = max(self.chains * self.draws, 4)
                    return Laplace(draws=draws, seed=self.seed, max_seconds=self.max_seconds)
                return self._chains(rule.sampler, columns)
        raise AssertionError("the last rule applies to every table")

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


class _Pace:
    """How much of the processor this process gets beside other work (a thread may wait for another)."""

    def __init__(self) -> None:
        self.began, self._spent = time.monotonic(), time.process_time()

    def slowness(self) -> float:
        """Seconds by the clock for each of the processor's since the beginning; at least 1."""
        spent = max(time.process_time() - self._spent, _SHORTEST)
        return max((time.monotonic() - self.began) / spent, 1.0)


def _can_sample(sampler: type, target: Target) -> bool:
    if sampler is Laplace:
        return target.family is not None
    if sampler is not Gibbs:
        return True
    try:
        GibbsModel.of(target)
    except ValueError:
        return False
    return True


def _found(looked: list[Draws]) -> bool:
    """Whether the search for the mode got close enough."""
    return all(one.figures["slope"] <= _NEAR for one in looked)


def _named(draws: list[Draws], method: type) -> list[Draws]:
    return [replace(one, sampler=method.__name__) for one in draws]
