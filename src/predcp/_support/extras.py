"""How to install an optional group of dependencies."""

import contextlib
import operator
import re
import shlex
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

_CLONE = Path(__file__).parents[3]
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"extra == ['\"]([^'\"]+)['\"]")
_PYTHON = re.compile(r"python_version (<=|>=|==|<|>) ['\"](\d+)\.(\d+)['\"]")
_COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
}


def install_command(extra: str) -> str:
    """The command that adds an extra of `pyproject.toml` to this installation.

    predcp is on no package index, so `pip install 'predcp[extra]'` finds nothing. In a clone the
    command installs the clone with the extra; elsewhere it names the packages that are missing.
    """
    if (_CLONE / "pyproject.toml").is_file() and (_CLONE / "src").is_dir():
        return shlex.join(["pip", "install", "-e", f"{_CLONE}[{extra}]"])
    return shlex.join(["pip", "install", *_missing(extra)])


@contextlib.contextmanager
def needs(extra: str) -> Iterator[None]:
    """If an import in the block fails, say how to install the extra."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"{missing.name}, of the extra {extra!r}, is not installed; run: {install_command(extra)}",
            name=missing.name,
        ) from missing


def _missing(extra: str) -> list[str]:
    """Requirements of an extra for this Python that are not installed, without their markers."""
    found: list[str] = []
    for line in metadata.requires("predcp") or ():
        requirement, _, marker = line.partition(";")
        named = _EXTRA.search(marker)
        if named is None or named[1] != extra or not _is_for_this_python(marker):
            continue
        requirement = requirement.strip()
        if requirement.startswith("predcp["):
            for inner in requirement.removeprefix("predcp[").rstrip("]").split(","):
                found += _missing(inner)
        elif not _is_installed(requirement):
            found.append(requirement)
    return list(dict.fromkeys(found))


def _is_for_this_python(marker: str) -> bool:
    return all(
        _COMPARE[symbol](sys.version_info[:2], (int(major), int(minor)))
        for symbol, major, minor in _PYTHON.findall(marker)
    )


def _is_installed(requirement: str) -> bool:
    name = _NAME.match(requirement)
    try:
        return name is not None and bool(metadata.version(name[0]))
    except metadata.PackageNotFoundError:
        return False
