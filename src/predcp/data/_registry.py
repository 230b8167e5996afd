"""The data sets predcp knows, with pinned addresses and hashes (`registry.toml`)."""

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Literal

from predcp.data._errors import DataError

Build = Literal["plain", "zip-member", "cifar100", "omniglot", "folder"]


@dataclass(frozen=True)
class Download:
    """One address and the hash of what it serves (`algorithm:digest`; None: see the file's)."""

    url: str
    hash: str | None = None


@dataclass(frozen=True)
class Source:
    """One registered data set.

    **Arguments:**

    - `file`: its path below the data directory (of several files, the one that names the rest).
    - `sha256`: of that file; for CIFAR-100, of the pixels.
    - `build`: how the downloads become the file.
    - `member`: the file's name inside a downloaded zip.
    - `layout`: of a folder that users bring themselves.
    """

    name: str
    title: str
    kind: Literal["regression", "classification", "few-shot"]
    rows: int
    columns: int
    file: str
    sha256: str | None = None
    build: Build = "plain"
    member: str | None = None
    layout: str | None = None
    downloads: tuple[Download, ...] = ()


@lru_cache(maxsize=1)
def registry() -> dict[str, Source]:
    """Every registered data set by name."""
    text = resources.files("predcp.data").joinpath("registry.toml").read_text("utf-8")
    sources = {}
    for name, entry in tomllib.loads(text).items():
        downloads = tuple(Download(**download) for download in entry.pop("downloads"))
        sources[name] = Source(name=name, downloads=downloads, **entry)
    return sources


def source(name: str) -> Source:
    """The registered data set of that name."""
    try:
        return registry()[name]
    except KeyError:
        known = ", ".join(registry())
        raise DataError(f"no registered data set is called {name!r}; there are: {known}") from None
