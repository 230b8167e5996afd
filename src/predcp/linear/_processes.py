"""Chains in processes of their own, one pinned to each core.

XLA shares one pool of threads among all programs of a process, so that chains in threads wait for
each other; processes do not. The processes stay between fits and keep their compiled programs.
"""

import atexit
import math
import os
import pickle
import queue
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO, Any

import jax
import numpy as np
from jaxtyping import Array, PyTree

from predcp._support.cores import available_cores
from predcp._support.workers import read_part, start_worker, worker_pipes, write_message
from predcp.linear._layout import NOT_COMPILED, LocalChains, Sampler, compiled_program
from predcp.linear._target import Target


def can_travel(sampler: Sampler, target: Target) -> bool:
    """Whether a sampler and its target can be sent to another process.

    They cannot if a function was defined at a prompt, in a notebook or inside another function.
    """
    try:
        return b"__main__" not in _packed(sampler, target)
    except (AttributeError, TypeError, pickle.PicklingError):
        return False


def _packed(sampler: Sampler, target: Target) -> bytes:
    data = jax.tree.map(np.asarray, target.data)
    parts = (target.model, data, dict(target.options), target.keep)
    return pickle.dumps((sampler, parts, bool(jax.config.read("jax_enable_x64"))))


class _Worker:
    """A process that advances chains; a thread puts its answers into a queue."""

    def __init__(self, core: int, answers: "queue.SimpleQueue[bytes | None]") -> None:
        path = os.pathsep.join(filter(None, sys.path))
        override = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": path}
        self._process = start_worker("predcp.linear._processes", core, override=override)
        self.answers = answers
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        stream = self._pipe(self._process.stdout)
        while (answer := read_part(stream)) is not None:
            self.answers.put(answer)
        self.answers.put(None)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, *message: Any) -> None:
        """Send a request; `("end", ...)` is the last of its answers."""
        write_message(self._pipe(self._process.stdin), pickle.dumps(message))

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


def _workers(count: int) -> list[_Worker]:
    """The first `count` processes; missing ones are started."""
    cores = available_cores()
    if len(_WORKERS) != len(cores) or not all(worker.alive for worker in _WORKERS):
        close_workers()
        # All share one queue, so that answers are read as they arrive.
        answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        _WORKERS.extend(_Worker(core, answers) for core in cores)
    return _WORKERS[: min(count, len(_WORKERS))]


class RemoteChains:
    """Chains distributed over the processes."""

    def __init__(self, workers: list[_Worker], groups: int) -> None:
        self._workers, self.groups = workers, groups

    @classmethod
    def start(
        cls, sampler: Sampler, target: Target, keys: Array, deadline: float = math.inf
    ) -> tuple["RemoteChains", float]:
        """Start one chain per key; also the time at which all processes had compiled.

        A TimeoutError says that they had not by the deadline.
        """
        used = _workers(len(keys))
        chains = cls(used, len(keys))
        request = ("prepare", _packed(sampler, target))
        for _ in chains._answers({worker: request for worker in used}, deadline):
            pass
        began = time.perf_counter()
        shares: dict[_Worker, list[Any]] = {worker: [] for worker in used}
        for number, key in enumerate(keys):
            worker = used[number % len(used)]
            shares[worker].append((number, np.asarray(jax.random.key_data(key))))
        for _ in chains._answers({worker: ("start", share) for worker, share in shares.items()}):
            pass
        return chains, began

    def advance(self, steps: int, seconds: float) -> Iterator[tuple[int, PyTree]]:
        """Advance the chains; answers come in the order in which the processes finish."""
        request = ("advance", steps, seconds)
        return self._answers({worker: request for worker in self._workers})

    def set(self, setting: tuple[int, ...]) -> None:
        """Go on with another setting."""
        for _ in self._answers({worker: ("set", setting) for worker in self._workers}):
            pass

    def _answers(
        self, requests: dict[_Worker, tuple[Any, ...]], deadline: float = math.inf
    ) -> Iterator[Any]:
        """Send requests and yield all their answers; a TimeoutError at the deadline."""
        waiting, answers = len(requests), self._workers[0].answers
        try:
            for worker, request in requests.items():
                worker.ask(*request)
            while waiting:
                left = None if math.isinf(deadline) else max(deadline - time.monotonic(), 0.0)
                try:
                    answer = answers.get(timeout=left)
                except queue.Empty:
                    raise TimeoutError(NOT_COMPILED) from None
                if answer is None:
                    raise RuntimeError(
                        "a process that ran chains has died, usually because memory ran out; "
                        "use layout='sequential' or fewer chains"
                    )
                kind, value = pickle.loads(answer)
                if kind == "error":
                    raise RuntimeError(f"a process that ran chains has failed:\n{value}")
                if kind == "end":
                    waiting -= 1
                else:
                    yield value
        except BaseException:
            # Answers left in the pipe would be mistaken for those of the next request.
            if waiting:
                close_workers()
            raise


def _serve() -> None:
    """Answer requests until the pipe ends."""
    import traceback

    source, answers = worker_pipes()

    def say(kind: str, value: Any = None) -> None:
        write_message(answers, pickle.dumps((kind, value)))

    program: Any = None
    chains: Any = None
    while (message := read_part(source)) is not None:
        kind, *details = pickle.loads(message)
        try:
            if kind == "prepare":
                sampler, (model, data, options, keep), wide = pickle.loads(details[0])
                jax.config.update("jax_enable_x64", wide)
                target = Target(model, jax.tree.map(jax.numpy.asarray, data), options, None, keep)
                keys = jax.random.split(jax.random.key(0), 1)
                program = compiled_program(sampler, target, keys, False)
                chains = LocalChains(program, target.data, sampler.chunk)
            elif kind == "start":
                for number, key in details[0]:
                    chains.add(number, jax.random.wrap_key_data(jax.numpy.asarray(key)))
            elif kind == "set":
                chains.set(details[0])
            else:
                for answer in chains.advance(*details):
                    say("value", answer)
            say("end")
        except Exception:
            say("error", traceback.format_exc())


if __name__ == "__main__":
    _serve()
