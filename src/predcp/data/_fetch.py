"""Download a registered data set, check it, and put it in place in one step."""

import os
import shutil
import tempfile
import zipfile
from pathlib import Path

from predcp.data._cifar100 import build_cifar100
from predcp.data._directory import data_directory
from predcp.data._errors import DataError
from predcp.data._omniglot import build_omniglot
from predcp.data._registry import Download, Source
from predcp.data._verify import verify


def fetch(
    entry: Source,
    directory: str | os.PathLike[str] | None = None,
    urls: tuple[str, ...] = (),
) -> Path:
    """The path of a data set's file, downloaded if it is not there yet.

    **Arguments:** `urls` replace the registered addresses (a mirror); the hashes stay pinned.
    """
    root = data_directory(directory)
    if (root / entry.file).is_file():
        verify(entry, root)
        return root / entry.file
    if not entry.downloads:
        raise DataError(
            f"{entry.name} has no public address; put your own copy in "
            f"{(root / entry.file).parent}: {entry.layout}"
        )
    if urls and len(urls) != len(entry.downloads):
        raise DataError(f"{entry.name} needs {len(entry.downloads)} addresses, got {len(urls)}")
    try:
        root.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".fetch-", dir=root))
    except OSError as error:
        raise DataError(
            f"cannot write to the data directory {root}: {error.strerror}; set PREDCP_DATA"
        ) from error
    try:
        downloads = entry.downloads
        if urls:
            downloads = tuple(Download(url, old.hash) for url, old in zip(urls, entry.downloads))
        archives = [_download(entry, item, staging, root) for item in downloads]
        built = staging / "built"
        _build(entry, archives, built)
        verify(entry, built)
        _move_into_place(built, root)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return root / entry.file


def _download(entry: Source, item: Download, staging: Path, root: Path) -> Path:
    import logging

    import pooch
    import requests

    pooch.get_logger().setLevel(logging.WARNING)
    try:
        path = pooch.retrieve(
            item.url,
            known_hash=item.hash,
            path=staging,
            fname=item.url.rsplit("/", 1)[-1],
            # pooch's protocol is narrower than its own downloader's signature.
            downloader=pooch.HTTPDownloader(timeout=30),  # pyright: ignore[reportArgumentType]
        )
    except requests.RequestException as error:
        raise DataError(
            f"cannot download {entry.name} from {item.url} ({type(error).__name__}): check the "
            f"network, or copy the file by hand to {root / entry.file}"
        ) from error
    except ValueError as error:
        raise DataError(
            f"{item.url} does not serve the pinned {entry.name}: {error}; nothing was kept"
        ) from error
    return Path(path)


def _build(entry: Source, archives: list[Path], built: Path) -> None:
    target = built / entry.file
    target.parent.mkdir(parents=True)
    if entry.build == "cifar100":
        build_cifar100(entry, archives, built)
    elif entry.build == "omniglot":
        build_omniglot(entry, archives, built)
    elif entry.build == "zip-member":
        try:
            with zipfile.ZipFile(archives[0]) as archive:
                target.write_bytes(archive.read(str(entry.member)))
        except (zipfile.BadZipFile, KeyError) as error:
            raise DataError(
                f"the download of {entry.name} does not hold {entry.member}: {error}"
            ) from error
    else:
        archives[0].replace(target)


def _move_into_place(built: Path, root: Path) -> None:
    files = sorted(path for path in built.rglob("*") if path.is_file())
    # classes.json marks a complete folder of shards, so it moves last.
    for path in sorted(files, key=lambda path: path.suffix == ".json"):
        target = root / path.relative_to(built)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
