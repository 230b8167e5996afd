"""Chains in processes of their own, one pinned to each core.

XLA shares one pool of threads among all programs of a process, so that chains in threads wait for
each other; processes do not. They live on between fits, with what they have compiled.
"""

import atexit
import os
import pickle
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import IO, Any

import jax
import numpy as np
from jaxtyping import Array, PyTree

from predcp._support.cores import available_cores
from predcp.linear._layout import Group, LocalGroup, Sampler, compiled_program
from predcp.linear._target import Target

_LENGTH = 8
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}


def can_travel(sampler: Sampler, target: Target) -> bool:
    """Whether another process can be told what to sample.

    It cannot if a function was written at a prompt, in a notebook or inside another function.
    """
    try:
        return b"__main__" not in _packed(sampler, target)
    except (AttributeError, TypeError, pickle.PicklingError):
        return False


def _packed(sampler: Sampler, target: Target) -> bytes:
    data = jax.tree.map(np.asarray, target.data)
    told = (target.model, data, dict(target.options), target.keep)
    return pickle.dumps((sampler, told, bool(jax.config.read("jax_enable_x64"))))


class _Worker:
    """A process that advances chains, and the answers it owes."""

    def __init__(self, core: int) -> None:
        command = [sys.executable, "-m", "predcp.linear._processes", str(core)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | _ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._owed: deque[list[Any]] = deque()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, *message: Any) -> list[Any]:
        """A box that the next answers, as many as it takes, will be put into."""
        _write(self._pipe(self._process.stdin), pickle.dumps(message))
        box: list[Any] = []
        self._owed.append(box)
        return box

    def wait(self, box: list[Any]) -> Any:
        """The next answer of a box, after those that come before it."""
        while not box:
            answer = _read(self._pipe(self._process.stdout))
            if answer is None:
                raise RuntimeError(
                    "a process that ran chains has died, most often for want of memory; "
                    "give layout='sequential' or fewer chains"
                )
            kind, value = pickle.loads(answer)
            if kind == "error":
                raise RuntimeError(f"a process that ran chains has failed:\n{value}")
            if kind == "end":
                self._owed.popleft()
            else:
                self._owed[0].append(value)
        return box.pop(0)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    @staticmethod
    def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
        if stream is None:
            raise RuntimeError("a process that runs chains has no pipe")
        return stream


_WORKERS: list[_Worker] = []


@atexit.register
def close_workers() -> None:
    """End the processes; the next fit starts new ones."""
    while _WORKERS:
        _WORKERS.pop().close()


def remote_chains(sampler: Sampler, target: Target, keys: Array) -> tuple[list[Group], float]:
    """One chain for each key, dealt out to the cores; and when all had compiled."""
    cores = available_cores()
    if len(_WORKERS) != len(cores) or not all(worker.alive for worker in _WORKERS):
        close_workers()
        _WORKERS.extend(_Worker(core) for core in cores)
    told = _packed(sampler, target)
    used = _WORKERS[: min(len(cores), len(keys))]
    try:
        ready = [(worker, worker.ask("prepare", told)) for worker in used]
        for worker, box in ready:
            worker.wait(box)
        began = time.perf_counter()
        chains: list[Group] = []
        for number, key in enumerate(keys):
            worker = used[number % len(used)]
            worker.ask("start", number, np.asarray(jax.random.key_data(key)))
            chains.append(_RemoteChain(worker, number))
    except BaseException:
        # What was asked for and not waited for would answer the next question.
        close_workers()
        raise
    return chains, began


class _RemoteChain:
    def __init__(self, worker: _Worker, number: int) -> None:
        self._worker, self._number = worker, number

    def advance(self, calls: int) -> Iterator[PyTree]:
        """Asked at once, waited for later."""
        box = self._worker.ask("advance", self._number, calls)

        def answers() -> Iterator[PyTree]:
            taken = 0
            try:
                while taken < calls:
                    answer = self._worker.wait(box)
                    taken += 1
                    yield answer
            except BaseException:
                # Let go of after the last answer, as it is once chains go on, nothing is wrong.
                if taken < calls:
                    close_workers()
                raise

        return answers()


def _write(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(_LENGTH, "big") + message)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_LENGTH)
    if len(head) < _LENGTH:
        return None
    return stream.read(int.from_bytes(head, "big"))


def _serve(core: int) -> None:
    """Answer until the pipe ends."""
    import traceback

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever a user's model prints must not be taken for an answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(kind: str, value: Any = None) -> None:
        _write(answers, pickle.dumps((kind, value)))

    chains: dict[int, LocalGroup] = {}
    program: Any = None
    while (message := _read(source)) is not None:
        kind, *details = pickle.loads(message)
        try:
            if kind == "prepare":
                sampler, (model, data, options, keep), wide = pickle.loads(details[0])
                jax.config.update("jax_enable_x64", wide)
                target = Target(model, jax.tree.map(jax.numpy.asarray, data), options, None, keep)
                keys = jax.random.split(jax.random.key(0), 1)
                program = target.data, compiled_program(sampler, target, keys, False)
                say("value")
            elif kind == "start":
                data, (start, advance) = program
                key = jax.random.wrap_key_data(jax.numpy.asarray(details[1]))
                chains[details[0]] = LocalGroup(start, advance, key, data)
            else:
                for piece in chains[details[0]].advance(details[1]):
                    say("value", jax.tree.map(np.asarray, piece))
            say("end")
        except Exception:
            say("error", traceback.format_exc())


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
