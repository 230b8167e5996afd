"""Double precision by default; single precision is asked for where a test needs it."""

import atexit
import ctypes
import gc
import os
import re
import shutil
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# JAX writes ten frames of the stack into each operation it compiles, which takes time.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")

# The processes of a run share what they compile, and nothing outlives the run.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _programs = tempfile.mkdtemp(prefix="predcp-programs-")
    atexit.register(shutil.rmtree, _programs, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _programs
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

import jax
import pytest
from jaxtyping import install_import_hook

from tests import (
    quick_validation,
    shapecheck,  # noqa: F401  (the hook below finds it by name)
)
from tests.xla_flags import accepted

# Shapes in annotations are checked wherever a test goes.
install_import_hook("predcp", "tests.shapecheck.shapes")
quick_validation.install()

jax.config.update("jax_enable_x64", True)

# Each process of the tests keeps to a core: the threads of two programs that share both cores wait
# for each other, and small programs then take five times as long.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if _worker.startswith("gw") and hasattr(os, "sched_setaffinity"):
    _cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {_cores[int(_worker[2:]) % len(_cores)]})

# Read when the first program is compiled, so not too late here. Workers inherit the controller's;
# an empty variable asks for the optimisations that users get.
if "XLA_FLAGS" not in os.environ:
    os.environ["XLA_FLAGS"] = accepted()


_MAPS, _PAGES = Path("/proc/self/maps"), Path("/proc/self/statm")
# Linux allows a process 65,530 pieces of memory by default, and ends it at one more.
_MOST_MAPS = 30_000
# Two processes of the tests should leave room on a machine of 8 GiB.
_MOST_BYTES = 3 * 2**30
# What is freed goes back to the system only when it is asked for (glibc).
_give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
_done = 0


def pytest_runtest_teardown(item):
    """Forget compiled programs before they take too many pieces of memory, or too much of it."""
    global _done
    _done += 1
    if _done % 20 or not _MAPS.exists():
        return
    resident = int(_PAGES.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if resident > _MOST_BYTES or _MAPS.read_bytes().count(b"\n") > _MOST_MAPS:
        jax.clear_caches()
        if _give_back is not None:
            _give_back(0)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of `long.txt` before pytest leaves the long ones out."""
    lines = Path(__file__).with_name("long.txt").read_text().splitlines()
    prefixes = [re.escape(line).replace(r"\*", ".*") for line in lines if line and line[0] != "#"]
    listed = re.compile("|".join(prefixes))
    for item in items:
        if listed.match(item.nodeid):
            item.add_marker("long")
            item.add_marker("listed")


def pytest_collection_finish(session):
    """Tracing makes objects by the million; let the collector leave what is here for good alone."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
