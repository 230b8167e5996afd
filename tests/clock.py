"""Limits on time that hold on machines of any speed, and beside other work."""

import time

_ADDITIONS = 1_000_000
# Seconds of these additions on an idle core of the machine that the limits were set on.
_NOMINAL = 0.06


def slowness() -> float:
    """How many times longer this machine takes now than the one the limits were set on; at least 1."""
    return max(1.0, _additions() / _NOMINAL)


def _additions() -> float:
    began, total = time.perf_counter(), 0
    for number in range(_ADDITIONS):
        total += number
    return time.perf_counter() - began
