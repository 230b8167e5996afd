"""Run chains of any sampler: one per core on a CPU, all in one program on a GPU.

Chains in one vectorised program wait for the longest tree among them. That is cheap on a GPU and
expensive on a CPU, where each chain therefore runs as a program of its own: in turn within this
process or, for long runs, in one process per core.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from predcp._support.cores import available_cores
from predcp._support.progress import Progress, as_report
from predcp.linear._target import Target

Layout = Literal["auto", "sequential", "processes", "vectorised"]
LAYOUTS: tuple[Layout, ...] = ("auto", "sequential", "processes", "vectorised")
# Steps of all chains times entries of the design, beyond which processes repay their start.
_LONG = 2 * 10**8
# Seconds that one call of a program should take: progress is reported between calls.
_CALL_SECONDS = 0.5
# Steps of every chain, however little time there is: fewer say nothing.
_FEWEST_STEPS = 8


class Program(NamedTuple):
    """A sampler of one group of chains.

    **Arguments**: `start(key, *data)` returns a state; `advance(state, steps, *data)` returns the
    state so many steps later and what to keep of them, each leaf with a leading axis of `chunk`, of
    which the first `steps` entries count.
    """

    start: Callable[..., PyTree]
    advance: Callable[..., tuple[PyTree, PyTree]]


def repeated(
    step: Callable[[PyTree], tuple[PyTree, PyTree]], state: PyTree, steps: Array, most: int
) -> tuple[PyTree, PyTree]:
    """The state after `steps` steps, and what they kept, in arrays with room for `most`.

    The number of steps is a number of the program: one compilation serves them all.
    """
    _, kept = jax.eval_shape(step, state)
    room = jax.tree.map(lambda leaf: jnp.zeros((most, *leaf.shape), leaf.dtype), kept)

    def body(number: Array, carry: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
        state, room = carry
        state, kept = step(state)
        place = jax.lax.dynamic_update_index_in_dim
        return state, jax.tree.map(lambda to, leaf: place(to, leaf, number, 0), room, kept)

    return jax.lax.fori_loop(0, steps, body, (state, room))


class Run(NamedTuple):
    """What the chains kept, `(problems, chains, steps, ...)`, and the wall time of sampling."""

    kept: PyTree
    seconds: float


class Sampler(Protocol):
    """What is run: a dataclass that builds the program of one chain."""

    @property
    def chunk(self) -> int:
        """The most steps of a call."""
        ...

    def build(self, target: Target) -> Program:
        """The sampler of one chain of a target."""
        ...

    @property
    def program_name(self) -> Hashable:
        """Equal for samplers with the same program."""
        ...


class Chains(Protocol):
    """Chains that have started."""

    @property
    def groups(self) -> int:
        """How many programs advance them: one for each chain, or one for all."""
        ...

    def advance(self, steps: int, seconds: float) -> Iterator[tuple[int, PyTree]]:
        """Advance each by `steps`, or until the seconds are over.

        Yields the number of a group and what it kept, group after group in any order.
        """
        ...


def run(
    sampler: Sampler,
    target: Target,
    chains: int,
    steps: int,
    seed: int,
    layout: Layout = "auto",
    progress: Progress | None = None,
    more: Callable[[PyTree], int] = lambda kept: 0,
    deadline: float = float("inf"),
) -> Run:
    """Advance every chain by `steps`, and on for as long as more are wanted.

    **Arguments**
    - `layout`: `sequential`, all chains in this process; `processes`, one per core; `vectorised`,
        all in one program; `auto` decides by the device and the size of the problem.
    - `more`: from what was kept so far to the number of further steps.
    - `deadline`: on `time.monotonic()`; chains then end, all after the same number of steps.
    """
    layout = _chosen(layout, sampler, target, chains, steps)
    report = as_report(progress)
    shape = (chains,) if target.problems is None else (target.problems, chains)
    keys = jax.random.split(jax.random.key(seed), shape)
    report(0, steps * (1 if layout == "vectorised" else chains), "compiling")
    running, began = _started(layout, sampler, target, keys)
    # Of the axes of a piece: a vectorised one has those of problems and chains before it.
    axis = len(shape) if layout == "vectorised" else 0
    done, expected, kept = 0, 0, None
    while steps > 0:
        expected += steps * running.groups
        pieces: list[list[PyTree]] = [[] for _ in range(running.groups)]
        for number, piece in running.advance(steps, deadline - time.monotonic()):
            pieces[number].append(piece)
            done += jax.tree.leaves(piece)[0].shape[axis]
            report(done, expected, "sampling")
        groups = [_joined(parts, axis) for parts in pieces]
        new = groups[0] if layout == "vectorised" else jax.tree.map(_stacked, *groups)
        kept = new if kept is None else _joined([kept, new], len(shape))
        if time.monotonic() >= deadline:
            break
        steps = more(kept if target.problems else jax.tree.map(lambda a: a[None], kept))
    seconds = time.perf_counter() - began
    if target.problems is None:
        kept = jax.tree.map(lambda leaf: leaf[None], kept)
    return Run(kept, seconds)


def _joined(pieces: Sequence[PyTree], axis: int) -> PyTree:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis), *pieces)


def _stacked(*chains: np.ndarray) -> np.ndarray:
    """Chains side by side, as long as the shortest."""
    shortest = min(map(len, chains))
    return np.stack([chain[:shortest] for chain in chains])


def _chosen(
    layout: Layout, sampler: Sampler, target: Target, chains: int, steps: int
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
    if chains > 1 and chains * steps * entries > _LONG:
        from predcp.linear._processes import can_travel

        if len(available_cores()) > 1 and can_travel(sampler, target):
            return "processes"
    return "sequential"


def _started(layout: str, sampler: Sampler, target: Target, keys: Array) -> tuple[Chains, float]:
    """The chains, and when they started: compilation is not counted."""
    if layout == "processes":
        from predcp.linear._processes import RemoteChains

        return RemoteChains.start(sampler, target, keys)
    program = compiled_program(sampler, target, keys, layout == "vectorised")
    began = time.perf_counter()
    vectorised = layout == "vectorised"
    axis = keys.ndim if vectorised else 0
    chains = LocalChains(program, target.data, sampler.chunk, axis)
    for number, key in enumerate([keys] if vectorised else keys):
        chains.add(number, key)
    return chains, began


class LocalChains:
    """Chains of this process, by their numbers, advanced in turn."""

    def __init__(
        self, program: "Compiled", data: tuple[Any, ...], chunk: int, axis: int = 0
    ) -> None:
        self._start, self._advance = program
        self._data, self._chunk, self._axis = data, chunk, axis
        self._states: dict[int, PyTree] = {}
        self._length = 1

    @property
    def groups(self) -> int:
        """How many there are."""
        return len(self._states)

    def add(self, number: int, key: Array) -> None:
        """Start another."""
        self._states[number] = self._start(key, *self._data)

    def advance(self, steps: int, seconds: float) -> Iterator[tuple[int, PyTree]]:
        """As many steps in a call as take about half a second, each chain in its turn."""
        began, done = time.monotonic(), 0
        while done < steps:
            if done >= _FEWEST_STEPS and time.monotonic() - began > seconds:
                return
            count = min(self._length, self._chunk, steps - done)
            called = time.monotonic()
            for number, state in self._states.items():
                self._states[number], kept = self._advance(state, np.int32(count), *self._data)
                yield number, _first(kept, count, self._axis)
            spent = (time.monotonic() - called) / len(self._states)
            wanted = count * _CALL_SECONDS / max(spent, 1e-6)
            self._length = int(min(max(wanted, 1), 4 * count))
            done += count


def _first(kept: PyTree, count: int, axis: int) -> PyTree:
    """The steps that count; copies, since views would keep the room for all of the chunk."""
    place = (slice(None),) * axis + (slice(count),)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[place].copy(), kept)


Compiled = tuple[Callable[..., Any], Callable[..., Any]]
# The last few programs, so that a second fit of the same shape compiles nothing.
_PROGRAMS: dict[Hashable, Compiled] = {}
_PROGRAMS_HELD = 16


def compiled_program(sampler: Sampler, target: Target, keys: Array, vectorised: bool) -> Compiled:
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
        data = (None,) * len(target.data)
        start, advance = jax.vmap(start, (0, *data)), jax.vmap(advance, (0, None, *data))
        if target.problems is not None:
            each = (0,) * len(target.data)
            start, advance = jax.vmap(start), jax.vmap(advance, (0, None, *each))
    else:
        keys = keys[0]
    start = jax.jit(start)
    state = jax.eval_shape(start, keys, *target.data)
    compiled = (
        start.lower(keys, *target.data).compile(),
        jax.jit(advance).lower(state, np.int32(1), *target.data).compile(),
    )
    if key is not None:
        while len(_PROGRAMS) >= _PROGRAMS_HELD:
            _PROGRAMS.pop(next(iter(_PROGRAMS)))
        _PROGRAMS[key] = compiled
    return compiled
