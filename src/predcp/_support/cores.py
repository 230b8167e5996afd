"""Which cores this process may use."""

import os


def available_cores() -> list[int]:
    """Their numbers, as the kernel allows them."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
