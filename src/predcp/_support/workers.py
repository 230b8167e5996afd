"""Worker processes: one per core, with messages over pipes."""

import contextlib
import os
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

_LENGTH = struct.Struct("<Q")
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def start_worker(
    module: str,
    core: int,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    override: Mapping[str, str] | None = None,
) -> "subprocess.Popen[bytes]":
    """Start `python -m module` with pipes, pinned to a core, with one thread per library.

    **Arguments:** `environment`, variables for the worker unless this process sets them;
    `override`, variables for the worker in any case.
    """
    defaults = _ONE_THREAD | dict(environment or {})
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**defaults, **os.environ, **(override or {})},
    )
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(process.pid, {core})
    return process


def worker_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """In a worker: the stream of messages in and the stream of answers out.

    Standard output becomes standard error, so that what a model prints is not taken for an answer.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return sys.stdin.buffer, answers


def write_message(stream: IO[bytes], *parts: bytes) -> None:
    """Write the parts of a message, each after its length."""
    stream.write(b"".join(_LENGTH.pack(len(part)) + part for part in parts))
    stream.flush()


def read_part(stream: IO[bytes]) -> bytes | None:
    """The next part of a message, or None when the other side is gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    part = stream.read(length)
    return part if len(part) == length else None
