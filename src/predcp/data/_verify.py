"""Is a data set on disk the one the registry means?"""

import os
from pathlib import Path

from predcp.data._cifar100 import content_sha256
from predcp.data._directory import data_directory
from predcp.data._errors import DataError
from predcp.data._hashes import file_sha256
from predcp.data._locate import locate, locate_verified
from predcp.data._omniglot import read_omniglot
from predcp.data._registry import Source


def verify(entry: Source, directory: str | os.PathLike[str] | None = None) -> str:
    """How the data set was verified, in words; a damaged or missing one is a `DataError`."""
    path = locate(entry, directory)
    if entry.build == "cifar100":
        found = content_sha256(path.parent)
        if found != entry.sha256:
            raise DataError(
                f"the images below {path.parent} hash to {found}, expected {entry.sha256}; delete "
                f"the folder and run `predcp data fetch {entry.name}`"
            )
        return "all images match the pinned hash"
    if entry.build == "omniglot" and file_sha256(path) != entry.sha256:
        # Compression differs between zlib versions, so a file built here is known by its content.
        read_omniglot(path)
        return "built here; sizes and counts are right"
    if entry.build == "folder":
        return f"a folder of yours; {_count_images(path.parent)} images"
    locate_verified(entry, directory)
    return "matches the pinned hash"


def is_present(entry: Source, directory: str | os.PathLike[str] | None = None) -> bool:
    """Whether the data set's file exists (not whether it is intact)."""
    return (data_directory(directory) / entry.file).is_file()


def _count_images(folder: Path) -> int:
    return sum(1 for _ in (folder / "images").glob("*.jpg"))
