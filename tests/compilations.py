"""Count the programs that XLA compiles."""

from contextlib import contextmanager

import jax

_active: list[list[int]] = []


def _listen(event, *_, **__):
    for counts in _active:
        counts[0] += event == "/jax/core/compile/backend_compile_duration"


# JAX 0.8 has no way to take a listener back.
jax.monitoring.register_event_duration_secs_listener(_listen)


@contextmanager
def count_compilations():
    """A list whose one number is how many programs were compiled so far in the block."""
    counts = [0]
    _active.append(counts)
    try:
        yield counts
    finally:
        _active.remove(counts)
