"""Fits longer than a job may be: where they keep their place, and how long this process may go on.

Two variables of the environment say so: `PREDCP_CHECKPOINTS`, a folder from which interrupted fits
go on, and `PREDCP_SECONDS`, after which this process stops as if interrupted.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from predcp.experiments._cell import Cell

# What `PREDCP_SECONDS` counts from.
_STARTED = time.monotonic()


def checkpoint_folder() -> Path | None:
    """Where checkpoints are kept; None for nowhere."""
    told = os.environ.get("PREDCP_CHECKPOINTS")
    return Path(told) if told else None


def cells_name(cells: Sequence[Cell]) -> str:
    """A short name of cells that are fitted together, in this order."""
    return hashlib.sha256("".join(cell.key for cell in cells).encode()).hexdigest()[:16]


def checkpoint_file(cells: Sequence[Cell]) -> Path | None:
    """The checkpoint of cells that are fitted together."""
    folder = checkpoint_folder()
    return None if folder is None else folder / f"{cells[0].data}-{cells_name(cells)}.checkpoint"


def seconds_left() -> float | None:
    """How long this process may go on, at least 0; None for as long as it takes."""
    told = os.environ.get("PREDCP_SECONDS")
    if told is None:
        return None
    try:
        seconds = float(told)
    except ValueError:
        raise ValueError(f"PREDCP_SECONDS must be a number of seconds, got {told!r}") from None
    return max(_STARTED + seconds - time.monotonic(), 0.0)
