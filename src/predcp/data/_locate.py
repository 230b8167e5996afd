"""Find a registered file on disk; a damaged one is an error."""

import os
from pathlib import Path

from predcp.data._directory import data_directory
from predcp.data._errors import DataError
from predcp.data._hashes import file_sha256
from predcp.data._registry import Source


def locate(source: Source, directory: str | os.PathLike[str] | None = None) -> Path:
    """The path of a data set's file, or an error that says how to get it."""
    path = data_directory(directory) / source.file
    if not path.is_file():
        raise DataError(
            f"{source.name} is not at {path}; run `predcp data fetch {source.name}`, "
            "or set PREDCP_DATA to the folder that holds your data files"
        )
    return path


def locate_verified(source: Source, directory: str | os.PathLike[str] | None = None) -> Path:
    """As `locate`, and the file's hash is the pinned one."""
    path = locate(source, directory)
    found = file_sha256(path)
    if found != source.sha256:
        raise DataError(
            f"{path} ({path.stat().st_size} bytes) is damaged or is another file: its SHA-256 "
            f"is {found}, expected {source.sha256}; delete it and run "
            f"`predcp data fetch {source.name}`"
        )
    return path
