"""Work that cannot be cut short, such as a compilation, under a limit on time."""

import math
import queue
import threading
import time
from collections.abc import Callable
from typing import Any


def done_by(work: Callable[[], Any], deadline: float, late: str) -> Any:
    """The result of `work`, which runs in a thread of its own; a TimeoutError at the deadline.

    Work that is late goes on by itself, and what it keeps can serve the next call. Python waits for it
    before it exits.

    **Arguments:** `deadline`, on `time.monotonic()`, infinite for none: the work then runs in this
    thread; `late`, what the error says.
    """
    if math.isinf(deadline):
        return work()
    results: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put((True, work()))
        except BaseException as error:
            results.put((False, error))

    threading.Thread(target=run).start()
    try:
        succeeded, value = results.get(timeout=max(deadline - time.monotonic(), 0.0))
    except queue.Empty:
        raise TimeoutError(late) from None
    if not succeeded:
        raise value
    return value
