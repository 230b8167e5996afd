"""Run chains of any sampler: one per core on a CPU, all in one program on a GPU.

Chains in one vectorised program wait for the longest tree among them. That is cheap on a GPU and
expensive on a CPU, where each chain therefore runs as a program of its own: in turn within this
process or, for long runs, in one process per core.
"""

import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from predcp._support.background import done_by
from predcp._support.cores import available_cores
from predcp._support.progress import Progress, as_report
from predcp.linear._kept_steps import KeptSteps
from predcp.linear._target import Target

Layout = Literal["auto", "sequential", "processes", "vectorised"]
LAYOUTS: tuple[Layout, ...] = ("auto", "sequential", "processes", "vectorised")
# Steps of all chains times entries of the design, above which processes are worth their start.
_LONG = 2 * 10**8
# Seconds that one call of a program should take: progress is reported between calls.
_CALL_SECONDS = 0.5
# What is kept of one site may take a quarter of the memory of a design in single precision.
_BYTES_PER_ENTRY = 1
# Steps of every chain, of which half may be warm-up: fewer say nothing.
_FEWEST_STEPS = 8
NOT_COMPILED = (
    "the limit on time (max_seconds) was over before the program was compiled; allow more time, or use "
    "inference='auto', which always answers"
)


class Program(NamedTuple):
    """A sampler of one group of chains.

    **Arguments**: `start(key, *data)` returns a state; `advance(state, steps, *data)` returns the
    state `steps` later and the kept values, each leaf with a leading axis of `chunk`, of which the
    first `steps` entries count. A sampler that chooses a setting while it runs has it in the field
    `setting` of its state.
    """

    start: Callable[..., PyTree]
    advance: Callable[..., tuple[PyTree, PyTree]]


def repeated(
    step: Callable[[PyTree], tuple[PyTree, PyTree]], state: PyTree, steps: Array, most: int
) -> tuple[PyTree, PyTree]:
    """The state after `steps` steps, and what they kept, in arrays with room for `most`.

    The number of steps is an argument of the program, so it is compiled once.
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
    """A sampler: a dataclass that builds the program of one chain."""

    @property
    def chunk(self) -> int:
        """Largest number of steps in one call."""
        ...

    def build(self, target: Target) -> Program:
        """The sampler of one chain of a target."""
        ...

    @property
    def program_name(self) -> Hashable:
        """Name that is equal for samplers with the same program."""
        ...


class Chains(Protocol):
    """Chains that have started."""

    @property
    def groups(self) -> int:
        """Number of programs: one per chain, or one for all chains."""
        ...

    def advance(self, steps: int, seconds: float) -> Iterator[tuple[int, PyTree]]:
        """Advance each chain by `steps`, or until the time is up.

        Yields the number of a group and what it kept, group after group in any order.
        """
        ...

    def set(self, setting: tuple[int, ...]) -> None:
        """Go on with another setting."""
        ...


# Takes a function of a setting and of steps, which advances all chains and returns what the sampler
# watches, `(problems, chains, steps, quantities)`, or None when the time is up; returns the steps taken.
Tune = Callable[[Callable[[tuple[int, ...], int], np.ndarray | None]], tuple[tuple[int, ...], int]]
# The statistic that only the choice of a setting needs.
_WATCHED = "watched"


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
    tune: Tune | None = None,
) -> Run:
    """Advance every chain by `steps`, then by further steps while they are wanted.

    **Arguments**
    - `layout`: `sequential`, all chains in this process; `processes`, one per core; `vectorised`,
        all in one program; `auto` decides by the device and the size of the problem.
    - `more`: from what was kept so far to the number of further steps.
    - `deadline`: on `time.monotonic()`; chains then end, all after the same number of steps. A
        TimeoutError says that there are too few.
    - `tune`: chooses a setting in the first of these steps.
    """
    layout = _chosen(layout, sampler, target, chains, steps)
    report = as_report(progress)
    shape = (chains,) if target.problems is None else (target.problems, chains)
    keys = jax.random.split(jax.random.key(seed), shape)
    report(0, steps * (1 if layout == "vectorised" else chains), "compiling")
    running, began = _started(layout, sampler, target, keys, deadline)
    # Of the axes of a piece: a vectorised one has those of problems and chains before it.
    axis = len(shape) if layout == "vectorised" else 0
    done, expected = 0, steps * running.groups
    limit = sum(np.size(part) for part in target.data) * _BYTES_PER_ENTRY
    pieces = [KeptSteps(axis, steps, limit) for _ in range(running.groups)]
    taken = [0] * running.groups
    kept = None

    def advance(count: int, words: str) -> list[list[np.ndarray]]:
        nonlocal done
        seen: list[list[np.ndarray]] = [[] for _ in pieces]
        for number, piece in running.advance(count, deadline - time.monotonic()):
            if tune is not None:
                seen[number].append(piece[1].pop(_WATCHED))
            added = pieces[number].add(piece)
            taken[number] += added
            done += added
            report(done, expected, words)
        return seen

    def trial(setting: tuple[int, ...], count: int) -> np.ndarray | None:
        running.set(setting)
        seen = advance(count, "sampling, choosing the moves")
        if time.monotonic() >= deadline:
            return None
        joined = np.stack([np.concatenate(own, axis) for own in seen])
        return joined.reshape(target.problems or 1, chains, *joined.shape[-2:])

    if tune is not None:
        setting, used = tune(trial)
        running.set(setting)
        steps -= used
    while steps > 0:
        advance(steps, "sampling")
        if min(taken) < _FEWEST_STEPS and time.monotonic() >= deadline:
            raise TimeoutError(
                f"the limit on time (max_seconds) was over after {min(taken)} steps of a chain, which say "
                "nothing; allow more time, or use inference='auto', which always answers"
            )
        groups = [steps_of.joined() for steps_of in pieces]
        kept = groups[0] if layout == "vectorised" else jax.tree.map(_stacked, *groups)
        if time.monotonic() >= deadline:
            break
        steps = more(kept if target.problems else jax.tree.map(lambda a: a[None], kept))
        expected += steps * running.groups
    seconds = time.perf_counter() - began
    if target.problems is None:
        kept = jax.tree.map(lambda leaf: leaf[None], kept)
    return Run(kept, seconds)


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


def _started(
    layout: str, sampler: Sampler, target: Target, keys: Array, deadline: float
) -> tuple[Chains, float]:
    """The chains, and their starting time after compilation."""
    if layout == "processes":
        from predcp.linear._processes import RemoteChains

        return RemoteChains.start(sampler, target, keys, deadline)
    vectorised, size = layout == "vectorised", len(keys)
    if vectorised:
        target, keys = _padded(target, keys)
    program = compiled_program(sampler, target, keys, vectorised, deadline)
    began = time.perf_counter()
    axis = keys.ndim if vectorised else 0
    chains = LocalChains(program, target.data, sampler.chunk, axis, size)
    for number, key in enumerate([keys] if vectorised else keys):
        chains.add(number, key)
    return chains, began


class LocalChains:
    """Chains of this process, by their numbers, advanced in turn.

    **Arguments**: `axis` of the steps in what they keep; `size`, how many entries of the axes before it
    count (others fill up devices).
    """

    def __init__(
        self,
        program: "Compiled",
        data: tuple[Any, ...],
        chunk: int,
        axis: int = 0,
        size: int | None = None,
    ) -> None:
        self._start, self._advance = program
        # Once, and not again in every call; on every device that works on it.
        places = self._start.input_shardings[0][1:]
        self._data = tuple(map(jax.device_put, map(jnp.asarray, data), places))
        self._chunk, self._axis, self._size = chunk, axis, size
        self._states: dict[int, PyTree] = {}
        self._length = 1

    @property
    def groups(self) -> int:
        """Number of chains."""
        return len(self._states)

    def add(self, number: int, key: Array) -> None:
        """Start another chain."""
        self._states[number] = self._start(key, *self._data)

    def set(self, setting: tuple[int, ...]) -> None:
        """Go on with another setting."""
        for number, state in self._states.items():
            old = state.setting
            new = np.broadcast_to(np.asarray(setting, old.dtype), old.shape)
            self._states[number] = state._replace(setting=jax.device_put(new, old.sharding))

    def advance(self, steps: int, seconds: float) -> Iterator[tuple[int, PyTree]]:
        """Advance the chains in turn, about half a second per call."""
        began, done = time.monotonic(), 0
        while done < steps:
            if time.monotonic() - began > seconds:
                return
            count = min(self._length, self._chunk, steps - done)
            called = time.monotonic()
            for number, state in self._states.items():
                self._states[number], kept = self._advance(state, np.int32(count), *self._data)
                yield number, _first(kept, count, self._axis, self._size)
            spent = (time.monotonic() - called) / len(self._states)
            left = (seconds - (time.monotonic() - began)) / len(self._states)
            wanted = count * min(_CALL_SECONDS, left) / max(spent, 1e-6)
            self._length = int(min(max(wanted, 1), 4 * count))
            done += count


def _first(kept: PyTree, count: int, axis: int, size: int | None) -> PyTree:
    """Copies of the steps that count: views would keep the memory of the whole chunk."""
    before = (slice(size), *[slice(None)] * (axis - 1)) if axis else ()
    place = (*before, slice(count))
    return jax.tree.map(lambda leaf: np.asarray(leaf)[place].copy(), kept)


# `start` and `advance`, of JAX's class for compiled functions.
Compiled = tuple[Any, Any]
# The last few programs, so that a second fit of the same shape compiles nothing.
_PROGRAMS: dict[Hashable, Compiled] = {}
_PROGRAMS_HELD = 16


def compiled_program(
    sampler: Sampler, target: Target, keys: Array, vectorised: bool, deadline: float = float("inf")
) -> Compiled:
    """Compiled `start` and `advance` of the chains in `keys`, from the cache if they are there.

    A TimeoutError says that they are not compiled by the deadline.
    """
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
    if vectorised:
        start, advance = _over_devices(start, advance, target, keys.shape[0])
    start = jax.jit(start)
    state = jax.eval_shape(start, keys, *target.data)
    lowered = (
        start.lower(keys, *target.data),
        jax.jit(advance).lower(state, np.int32(1), *target.data),
    )

    def compile_both() -> Compiled:
        compiled = lowered[0].compile(), lowered[1].compile()
        if key is not None:
            while len(_PROGRAMS) >= _PROGRAMS_HELD:
                _PROGRAMS.pop(next(iter(_PROGRAMS)))
            _PROGRAMS[key] = compiled
        return compiled

    return done_by(compile_both, deadline, NOT_COMPILED)


def _devices_used(count: int) -> int:
    """The fewest devices on which the largest share is as small as on all of them."""
    share = -(-count // jax.local_device_count())
    return -(-count // share)


def _padded(target: Target, keys: Array) -> tuple[Target, Array]:
    """The target and keys, with the last problem (or chain) repeated until devices have equal shares."""
    used, count = _devices_used(len(keys)), len(keys)
    places = np.minimum(np.arange(-(-count // used) * used), count - 1)
    if len(places) == count:
        return target, keys
    if target.problems is not None:
        data = tuple(jax.tree.map(lambda part: part[places], target.data))
        target = replace(target, data=data, problems=len(places))
    return target, keys[places]


def _over_devices(
    start: Callable[..., PyTree], advance: Callable[..., PyTree], target: Target, count: int
) -> Compiled:
    """The same programs with the first axis, of problems or else of chains, over the devices.

    Each device advances its own share, so that the results are those of one device. `_padded` has made
    the axis a multiple of the number of devices used.
    """
    devices, used = jax.local_devices(), _devices_used(count)
    if used == 1:
        return start, advance
    mesh = jax.sharding.Mesh(np.asarray(devices[:used]), ("first",))
    each, all_of_it = jax.sharding.PartitionSpec("first"), jax.sharding.PartitionSpec()
    data = (all_of_it if target.problems is None else each,) * len(target.data)

    def shared(program: Callable[..., PyTree], *first: Any) -> Callable[..., PyTree]:
        return jax.shard_map(
            program, mesh=mesh, in_specs=(*first, *data), out_specs=each, check_vma=False
        )

    return shared(start, each), shared(advance, each, all_of_it)
