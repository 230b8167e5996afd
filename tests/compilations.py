"""Count the programs that XLA compiles."""

from contextlib import contextmanager

import jax


@contextmanager
def count_compilations():
    """A list whose one number is how many programs were compiled so far in the block."""
    counts = [0]

    def listen(event, *_, **__):
        counts[0] += event == "/jax/core/compile/backend_compile_duration"

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield counts
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
