"""A cell's record: `cell.json`, with checksums of the files beside it."""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from predcp.experiments._cell import Cell
from predcp.experiments._result import Outcome

CELL_FILE = "cell.json"
POSTERIOR_FILE = "posterior.nc"
_FORMAT = 1
_SEAL, _END = b',\n "sha256": "', b'"\n}\n'


class CorruptRecord(ValueError):
    """A cell's folder that is damaged or foreign; the message says what is wrong."""


@dataclass(frozen=True)
class Record:
    """A cell's stored outcome.

    **Arguments:**

    - `metrics`: `(part, metric, value)` rows; empty where the cell failed, NaN if not finite.
    - `convergence`: None stands for a figure that was not finite.
    - `rerun`: the command or expression that runs the cell again.
    """

    cell: Cell
    seconds: float
    environment: Mapping[str, Any]
    rerun: str
    metrics: tuple[tuple[str, str, float], ...] = ()
    convergence: Mapping[str, float | None] = field(default_factory=dict)
    traceback: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the cell raised."""
        return self.traceback is not None


def encode(cell: Cell, outcome: Outcome, rerun: str) -> dict[str, bytes]:
    """File name to content; `cell.json` carries checksums of the others and of itself."""
    files = {}
    if outcome.posterior is not None:
        files[POSTERIOR_FILE] = outcome.posterior
    content = {
        "format": _FORMAT,
        "key": cell.key,
        "cell": cell.to_json(),
        "status": "failed" if outcome.failed else "finished",
        "seconds": round(outcome.seconds, 6),
        "environment": dict(outcome.environment),
        "metrics": [(part, name, _finite(value)) for part, name, value in outcome.metrics],
        "convergence": {name: _finite(value) for name, value in outcome.convergence.items()},
        "traceback": outcome.traceback,
        "rerun": rerun,
        "files": {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in files.items()
        },
    }
    # Written last, so that a folder with this file is complete.
    files[CELL_FILE] = _seal(json.dumps(content, indent=1, sort_keys=True))
    return files


def decode(folder: str, every_byte: bool = False) -> Record:
    """The record in a cell's folder, verified.

    **Arguments:** `every_byte` also compares the other files' checksums, not only their sizes.
    """
    try:
        sealed = _read(folder, CELL_FILE)
    except OSError as error:
        raise CorruptRecord(f"{folder}: {CELL_FILE} is missing ({error.strerror})") from error
    content = parse(sealed, folder)
    for name, expected in content["files"].items():
        try:
            size = os.stat(f"{folder}/{name}").st_size
            intact = size == expected["bytes"]
            if intact and every_byte:
                intact = hashlib.sha256(_read(folder, name)).hexdigest() == expected["sha256"]
        except OSError as error:
            raise CorruptRecord(f"{folder}: {name} cannot be read ({error.strerror})") from error
        if not intact:
            raise CorruptRecord(f"{folder}: {name} is damaged: it does not match {CELL_FILE}")
    return _record(content)


def decode_files(files: Mapping[str, bytes], where: str) -> Record:
    """The record among the files of a cell, all of them verified.

    **Arguments:** `where` names them in errors.
    """
    content = parse(files[CELL_FILE], where)
    for name, expected in content["files"].items():
        if hashlib.sha256(files.get(name, b"")).hexdigest() != expected["sha256"]:
            raise CorruptRecord(f"{where}: {name} is damaged: it does not match {CELL_FILE}")
    return _record(content)


def read_files(folder: str) -> dict[str, bytes]:
    """The files of a cell's folder by name."""
    return {name: _read(folder, name) for name in sorted(os.listdir(folder))}


def parse(sealed: bytes, where: str) -> dict[str, Any]:
    """The content of a `cell.json`, verified by its own checksum."""
    body, _, checksum = sealed.rpartition(_SEAL)
    if checksum != _checksum(body) + _END:
        raise CorruptRecord(f"{where}: {CELL_FILE} is damaged: it does not match its checksum")
    content = json.loads(sealed)
    if content["format"] != _FORMAT:
        raise CorruptRecord(f"{where}: {CELL_FILE} has format {content['format']}, not {_FORMAT}")
    return content


def _record(content: dict[str, Any]) -> Record:
    return Record(
        cell=Cell.from_json(content["cell"]),
        seconds=content["seconds"],
        environment=content["environment"],
        rerun=content["rerun"],
        metrics=tuple(
            (part, name, math.nan if value is None else value)
            for part, name, value in content["metrics"]
        ),
        convergence=content["convergence"],
        traceback=content["traceback"],
    )


def _seal(text: str) -> bytes:
    """A JSON object whose last member is the checksum of all others."""
    body = text.removesuffix("\n}").encode()
    return body + _SEAL + _checksum(body) + _END


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def _read(folder: str, name: str) -> bytes:
    with open(f"{folder}/{name}", "rb") as file:
        return file.read()


def _finite(value: float) -> float | None:
    """JSON has neither NaN nor infinity."""
    return value if math.isfinite(value) else None
