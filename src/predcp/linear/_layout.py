"""Run chains of any sampler: one a core on a CPU, all in one program on a GPU.

Chains in one vectorised program wait for the longest tree among them, which a GPU forgives and a
CPU does not; there each chain is a program of its own, in this process one after the other or, for
long runs, in processes of their own, one a core.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import jax
import numpy as np
from jaxtyping import Array, PyTree

from predcp._support.cores import available_cores
from predcp._support.progress import Progress
from predcp.linear._target import Target

Layout = Literal["auto", "sequential", "processes", "vectorised"]
LAYOUTS: tuple[Layout, ...] = ("auto", "sequential", "processes", "vectorised")
# Steps of all chains times entries of the design, beyond which processes repay their start.
_LONG = 2 * 10**8


class Program(NamedTuple):
    """A sampler of one group of chains.

    **Arguments**: `start(key, *data)` returns a state; `advance(state, *data)` returns the state
    `chunk` steps later and what to keep of the steps, each leaf with a leading axis of them.
    """

    start: Callable[..., PyTree]
    advance: Callable[..., tuple[PyTree, PyTree]]


class Run(NamedTuple):
    """What the chains kept, `(problems, chains, steps, ...)`, and the wall time of sampling."""

    kept: PyTree
    seconds: float


class Sampler(Protocol):
    """What is run: a dataclass that builds the program of one chain."""

    @property
    def chunk(self) -> int:
        """Steps of a call."""
        ...

    def build(self, target: Target) -> Program:
        """The sampler of one chain of a target."""
        ...

    @property
    def program_name(self) -> Hashable:
        """Equal for samplers with the same program."""
        ...


class Group(Protocol):
    """Chains that one program advances: one of them, or all."""

    def advance(self, calls: int) -> Iterator[PyTree]:
        """What each call kept."""
        ...


def run(
    sampler: Sampler,
    target: Target,
    chains: int,
    calls: int,
    seed: int,
    layout: Layout = "auto",
    progress: Progress | None = None,
    wanted: Callable[[PyTree], int] = lambda kept: 0,
) -> Run:
    """Advance every chain `calls` times, and on for as long as more is wanted.

    **Arguments**
    - `layout`: `sequential`, a chain after the other; `processes`, one a core; `vectorised`, all in
        one program; `auto` decides by the device and the size of the problem.
    - `wanted`: from what was kept so far to the number of further calls.
    """
    layout = _chosen(layout, sampler, target, chains, calls)
    shape = (chains,) if target.problems is None else (target.problems, chains)
    keys = jax.random.split(jax.random.key(seed), shape)
    groups, began = _groups(layout, sampler, target, keys)
    done, expected, kept, axis = 0, 0, None, len(shape)
    while calls > 0:
        expected += calls * len(groups)
        pieces: list[list[PyTree]] = [[] for _ in groups]
        # All are asked before any is waited for.
        waiting = {number: group.advance(calls) for number, group in enumerate(groups)}
        if layout == "sequential":
            order = (item for item in waiting.items() for _ in range(calls))
        else:
            order = (item for _ in range(calls) for item in waiting.items())
        for number, steps in order:
            pieces[number].append(jax.tree.map(np.asarray, next(steps)))
            done += 1
            if progress is not None:
                progress(done, expected)
        if layout == "vectorised":
            new = _joined(pieces[0], axis)
        else:
            new = jax.tree.map(lambda *leaves: np.stack(leaves), *(_joined(p, 0) for p in pieces))
        kept = new if kept is None else _joined([kept, new], axis)
        calls = wanted(kept if target.problems else jax.tree.map(lambda a: a[None], kept))
    seconds = time.perf_counter() - began
    if target.problems is None:
        kept = jax.tree.map(lambda leaf: leaf[None], kept)
    return Run(kept, seconds)


def _joined(pieces: Sequence[PyTree], axis: int) -> PyTree:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis), *pieces)


def _chosen(
    layout: Layout, sampler: Sampler, target: Target, chains: int, calls: int
) -> Literal["sequential", "processes", "vectorised"]:
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    if layout in ("sequential", "processes") and target.problems is not None:
        raise ValueError(f"layout {layout!r} samples one problem; several need 'vectorised'")
    if layout != "auto":
        return layout
    if jax.default_backend() != "cpu" or target.problems is not None:
        return "vectorised"
    entries = max(np.size(array) for array in jax.tree.leaves(target.data))
    # By size and not by the clock: the same fit must be the same bits every time.
    if chains > 1 and chains * calls * sampler.chunk * entries > _LONG:
        from predcp.linear._processes import can_travel

        if len(available_cores()) > 1 and can_travel(sampler, target):
            return "processes"
    return "sequential"


def _groups(
    layout: str, sampler: Sampler, target: Target, keys: Array
) -> tuple[list[Group], float]:
    """The chains, and when they started: compilation is not counted."""
    if layout == "processes":
        from predcp.linear._processes import remote_chains

        return remote_chains(sampler, target, keys)
    start, advance = compiled_program(sampler, target, keys, layout == "vectorised")
    began = time.perf_counter()
    each = [keys] if layout == "vectorised" else list(keys)
    return [LocalGroup(start, advance, key, target.data) for key in each], began


class LocalGroup:
    """Chains of this process."""

    def __init__(
        self,
        start: Callable[..., PyTree],
        advance: Callable[..., tuple[PyTree, PyTree]],
        key: Array,
        data: tuple[Any, ...],
    ) -> None:
        self._advance, self._data = advance, data
        self._state = start(key, *data)

    def advance(self, calls: int) -> Iterator[PyTree]:
        """One program call at a time, when it is asked for."""
        for _ in range(calls):
            self._state, piece = self._advance(self._state, *self._data)
            yield piece


_Compiled = tuple[Callable[..., Any], Callable[..., Any]]
# The last few programs, so that a second fit of the same shape compiles nothing.
_PROGRAMS: dict[Hashable, _Compiled] = {}
_PROGRAMS_HELD = 16


def compiled_program(sampler: Sampler, target: Target, keys: Array, vectorised: bool) -> _Compiled:
    """`start` and `advance` of the chains in `keys`, compiled unless they were before."""
    try:
        key: Hashable = (sampler.program_name, vectorised, keys.shape, target.identity)
        hash(key)
    except TypeError:
        # A user's own option that cannot be hashed: compiled for this fit alone.
        key = None
    if key is not None and key in _PROGRAMS:
        return _PROGRAMS[key]
    start, advance = sampler.build(target)
    if vectorised:
        axes = (0, *(None for _ in target.data))
        start, advance = jax.vmap(start, axes), jax.vmap(advance, axes)
        if target.problems is not None:
            start, advance = jax.vmap(start), jax.vmap(advance)
    else:
        keys = keys[0]
    start = jax.jit(start)
    state = jax.eval_shape(start, keys, *target.data)
    compiled = (
        start.lower(keys, *target.data).compile(),
        jax.jit(advance).lower(state, *target.data).compile(),
    )
    if key is not None:
        while len(_PROGRAMS) >= _PROGRAMS_HELD:
            _PROGRAMS.pop(next(iter(_PROGRAMS)))
        _PROGRAMS[key] = compiled
    return compiled
