"""The folder of data files."""

import os
from pathlib import Path

ENVIRONMENT_VARIABLE = "PREDCP_DATA"


def data_directory(directory: str | os.PathLike[str] | None = None) -> Path:
    """The folder of data files: the argument, else `PREDCP_DATA`, else the user's cache."""
    chosen = directory or os.environ.get(ENVIRONMENT_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "predcp" / "data"
