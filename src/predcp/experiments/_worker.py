"""A worker process: reads cells from its standard input, writes progress and outcomes."""

import os
import queue
import signal
import threading
import time
from dataclasses import replace
from typing import IO, Any

from predcp._support.workers import worker_pipes
from predcp.experiments._cell import Cell
from predcp.experiments._execute import execute
from predcp.experiments._frames import outcome_message, read_message, write_message
from predcp.experiments._models import register_model
from predcp.experiments._result import Context

# Seconds between two messages about the progress of one cell.
_PAUSE = 0.5


def main() -> None:
    """Serve until the driver closes the pipe or dies."""
    # Ctrl-C reaches all processes of the terminal; the driver decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, answers = worker_pipes()
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(source, requests), daemon=True).start()
    while True:
        request = requests.get()
        for name, model in request["models"].items():
            register_model(name, model)
        context = replace(Context(**request["context"]), progress=_Progress(answers))
        outcome = execute(Cell.from_json(request["cell"]), context)
        write_message(answers, *outcome_message(outcome))


class _Progress:
    """Sends the progress of a cell, at most a few times a second."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._sent = stream, float("-inf")

    def __call__(self, done: int, total: int, words: str) -> None:
        if time.monotonic() - self._sent >= _PAUSE:
            self._sent = time.monotonic()
            write_message(self._stream, {"progress": [done, total, words]})


def _receive(stream: IO[bytes], requests: queue.SimpleQueue[dict[str, Any]]) -> None:
    while (message := read_message(stream)) is not None:
        requests.put(message[0])
    # If the driver has ended, end too, even in the middle of a cell.
    os._exit(0)


if __name__ == "__main__":
    main()
