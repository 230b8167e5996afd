"""Double precision by default; single precision is asked for where a test needs it."""

import atexit
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
