"""Double precision by default; single precision is asked for where a test needs it."""

import gc
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

jax.config.update("jax_enable_x64", True)

# Each process of the tests keeps to a core: the threads of two programs that share both cores wait
# for each other, and small programs then take five times as long.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if _worker.startswith("gw") and hasattr(os, "sched_setaffinity"):
    _cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {_cores[int(_worker[2:]) % len(_cores)]})

# A test runs a program once or twice: compiling it without optimisations takes a quarter of the
# time. `make test-long` leaves XLA_FLAGS empty, for the optimisations that users get.
_flags = "--xla_backend_optimization_level=0"
# XLA ends the process at a flag it does not know, and older releases do not know these. A program
# in 32 parts is for 32 threads to compile; on one core in one part it takes two thirds of the time.
if jax.__version_info__ >= (0, 10):
    _flags += " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
# Read when the first program is compiled, so not too late here.
os.environ.setdefault("XLA_FLAGS", _flags)


_MAPS = "/proc/self/maps"
# Linux allows a process 65,530 pieces of memory by default, and ends it at one more.
_MOST_MAPS = 30_000
_done = 0


def pytest_runtest_teardown(item):
    """Compiled programs are pieces of memory each: forget them before there are too many."""
    global _done
    _done += 1
    if _done % 20 or not os.path.exists(_MAPS):
        return
    with open(_MAPS, "rb") as maps:
        if sum(1 for _ in maps) > _MOST_MAPS:
            jax.clear_caches()


def pytest_collection_finish(session):
    """Tracing makes objects by the million; let the collector leave what is here for good alone."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
