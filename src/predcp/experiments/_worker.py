"""A worker process: reads cells from its standard input, writes outcomes to its output."""

import os
import queue
import signal
import sys
import threading
from typing import IO, Any

from predcp.experiments._cell import Cell
from predcp.experiments._execute import execute
from predcp.experiments._frames import outcome_message, read_message, write_message
from predcp.experiments._result import Context


def main() -> None:
    """Serve until the driver closes the pipe or dies."""
    # Ctrl-C reaches the whole terminal group; stopping is the driver's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever a model prints goes to the log, not between the messages.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, requests), daemon=True).start()
    while True:
        request = requests.get()
        cell, context = Cell.from_json(request["cell"]), Context(**request["context"])
        write_message(answers, *outcome_message(execute(cell, context)))


def _receive(stream: IO[bytes], requests: queue.SimpleQueue[dict[str, Any]]) -> None:
    while (message := read_message(stream)) is not None:
        requests.put(message[0])
    # A driver that is gone takes its worker along, even in the middle of a cell.
    os._exit(0)


if __name__ == "__main__":
    main()
