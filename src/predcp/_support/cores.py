"""Cores that this process may use."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

# Matrices larger than this repay the threads of a BLAS.
LARGE_SIDE = 500


def available_cores() -> list[int]:
    """Numbers of the cores that the kernel allows."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@contextlib.contextmanager
def one_thread_for_small_matrices(side: int) -> Iterator[None]:
    """One thread of the BLAS for matrices of `side` rows, if they are small.

    The threads of a BLAS wait for each other ten times as long as a small matrix takes.
    """
    limits: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if side <= LARGE_SIDE:
        with contextlib.suppress(ModuleNotFoundError):
            from threadpoolctl import threadpool_limits

            limits = threadpool_limits(1)
    with limits:
        yield
