"""Versions, commit and device with which a result was made."""

import os
import platform
import subprocess
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from predcp._version import __version__

_RECORDED = ("numpy", "scipy", "scikit-learn", "jax", "jaxlib", "numpyro", "equinox")


def environment() -> dict[str, Any]:
    """A description of this process for a result's record."""
    return {
        "versions": versions(),
        "commit": commit(),
        "device": device(),
        "python": platform.python_version(),
    }


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of predcp and of the libraries that compute."""
    found = {"predcp": __version__}
    for name in _RECORDED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@lru_cache(maxsize=1)
def commit() -> str:
    """The commit of the checkout this file is tracked in, else the package's version.

    The variable `PREDCP_COMMIT` states it for a copy without history (on a cluster, say).
    """
    if stated := os.environ.get("PREDCP_COMMIT"):
        return stated
    here = Path(__file__)
    try:
        _git("ls-files", "--error-unmatch", here.name)
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", str(here.parents[1]))
        return _git("rev-parse", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return f"version {__version__}"


def device() -> str:
    """The accelerator JAX uses in this process, else the processor; never starts JAX."""
    jax = sys.modules.get("jax")
    if jax is not None:
        devices = jax.devices()
        if devices[0].platform != "cpu":
            return f"{len(devices)} x {devices[0].device_kind}"
    return _processor()


@lru_cache(maxsize=1)
def _processor() -> str:
    # Cores of the machine, not of this process: a pinned worker runs on the same device.
    cores = os.cpu_count()
    model = platform.processor() or platform.machine()
    description = Path("/proc/cpuinfo")
    if description.is_file():
        for line in description.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"CPU {model}, {cores} core" + ("s" if cores != 1 else "")


def _git(*arguments: str) -> str:
    here = Path(__file__).parent
    command = ["git", "-C", str(here), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
