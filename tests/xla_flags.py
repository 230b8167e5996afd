"""XLA flags that make the tests compile faster, as far as the installed XLA knows them.

XLA ends the process at a flag it does not know, so each is tried in a process of its own.
"""

import os
import subprocess
import sys

# A test runs a program once or twice: compiling it without optimisations takes a quarter of the
# time. A program in 32 parts is for 32 threads to compile; on one core, one part is faster.
_WANTED = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
)


def accepted() -> str:
    """The flags to set."""
    together = " ".join(_WANTED)
    if _starts(together):
        return together
    return " ".join(flag for flag in _WANTED if _starts(flag))


def _starts(flags: str) -> bool:
    command = [sys.executable, "-c", "import jax; jax.numpy.zeros(1)"]
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    return subprocess.run(command, env=environment, capture_output=True).returncode == 0
