"""Run chains of any sampler: one a core on a CPU, all in one program on a GPU.

Chains in one vectorised program wait for the longest tree among them, which a GPU forgives and a
CPU does not; threads run single-chain programs side by side there.
"""

import os
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, PyTree

from predcp.linear._target import Target

Layout = Literal["auto", "threads", "vectorised"]
LAYOUTS: tuple[Layout, ...] = ("auto", "threads", "vectorised")
# Told how many of how many pieces of work are done; more may be added as they end.
Progress = Callable[[int, int], None]


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


def run(
    program: Callable[[Target], Program],
    name: Hashable,
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
    - `program`: builds the sampler of a target; built again only for another `name` or target.
    - `layout`: `threads`, one chain a core; `vectorised`, all in one program; `auto` decides.
    - `wanted`: from what was kept so far to the number of further calls.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    if layout == "auto":
        single = jax.default_backend() == "cpu" and target.problems is None
        layout = "threads" if single else "vectorised"
    if layout == "threads" and target.problems is not None:
        raise ValueError("layout 'threads' samples one problem; several need 'vectorised'")
    shape = (chains,) if target.problems is None else (target.problems, chains)
    keys = jax.random.split(jax.random.key(seed), shape)
    start, advance = _compiled(program, (name, layout, chains), target, keys)
    # A group is what one program advances: a single chain, or all of them.
    groups = list(keys) if layout == "threads" else [keys]
    done = _Counter(progress)

    def forward(group: tuple[PyTree, int], calls: int) -> tuple[PyTree, PyTree]:
        (state, axis), pieces = group, []
        for _ in range(calls):
            state, piece = advance(state, *target.data)
            pieces.append(jax.tree.map(np.asarray, piece))
            done.add(1)
        return state, jax.tree.map(lambda *parts: np.concatenate(parts, axis), *pieces)

    began = time.perf_counter()
    states = [start(group, *target.data) for group in groups]
    kept, axis = None, len(shape)
    with ThreadPoolExecutor(min(len(groups), os.cpu_count() or 1)) as pool:
        while calls > 0:
            done.expect(calls * len(groups))
            work = [(state, groups[0].ndim) for state in states]
            states, pieces = zip(*pool.map(forward, work, [calls] * len(work)))
            piece = pieces[0]
            if layout == "threads":
                piece = jax.tree.map(lambda *leaves: np.stack(leaves), *pieces)
            if kept is not None:
                piece = jax.tree.map(lambda *parts: np.concatenate(parts, axis), kept, piece)
            kept = piece
            calls = wanted(kept if target.problems else jax.tree.map(lambda a: a[None], kept))
    seconds = time.perf_counter() - began
    if target.problems is None:
        kept = jax.tree.map(lambda leaf: leaf[None], kept)
    return Run(kept, seconds)


class _Counter:
    """Calls made by all threads, reported as they come."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._total, self._done = progress, 0, 0
        self._lock = threading.Lock()

    def expect(self, count: int) -> None:
        self._total += count

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            if self._progress is not None:
                self._progress(self._done, self._total)


_Compiled = tuple[Callable[..., Any], Callable[..., Any]]
# The last few programs, so that a second fit of the same shape compiles nothing.
_PROGRAMS: dict[Hashable, _Compiled] = {}
_PROGRAMS_HELD = 16


def _compiled(
    program: Callable[[Target], Program], name: Hashable, target: Target, keys: Array
) -> _Compiled:
    try:
        identity = hash((name, target.identity))
        key: Hashable = (name, target.identity)
    except TypeError:
        # A user's own option that cannot be hashed: compiled for this fit alone.
        identity = key = None
    if key is not None and key in _PROGRAMS:
        return _PROGRAMS[key]
    start, advance = program(target)
    layout = name[1] if isinstance(name, tuple) else "vectorised"
    if layout == "vectorised":
        data_axes = (None for _ in target.data)
        axes = (0, *data_axes)
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
    if identity is not None:
        while len(_PROGRAMS) >= _PROGRAMS_HELD:
            _PROGRAMS.pop(next(iter(_PROGRAMS)))
        _PROGRAMS[key] = compiled
    return compiled
