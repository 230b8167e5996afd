"""Delay interruptions during the few steps that must be atomic."""

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the end of the block.

    Python runs signal handlers between any two of its instructions, so also between taking a lock
    and remembering it. Only the main thread is interrupted, so in other threads this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    try:
        with contextlib.ExitStack() as handlers:
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                # Ignored signals, and those that end the process at once, stay so.
                if callable(handler):
                    handlers.callback(signal.signal, number, handler)
                    signal.signal(number, lambda caught, _: waiting.append(caught))
            yield
    finally:
        if waiting:
            signal.raise_signal(waiting[0])
