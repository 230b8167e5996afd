"""The files of one cell: `cell.json` says what and how, `metrics.parquet` how well."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from predcp.experiments._cell import Cell
from predcp.experiments._result import Outcome

CELL_FILE = "cell.json"
METRICS_FILE = "metrics.parquet"
POSTERIOR_FILE = "posterior.nc"
_FORMAT = 1


class CorruptRecord(ValueError):
    """A cell's folder that no runner could have written; the message says what is wrong."""


@dataclass(frozen=True)
class Record:
    """A cell's stored outcome.

    **Arguments:**

    - `metrics`: `(part, metric, value)` rows; empty where the cell failed.
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
    if not outcome.failed:
        files[METRICS_FILE] = _encode_metrics(outcome.metrics)
    if outcome.posterior is not None:
        files[POSTERIOR_FILE] = outcome.posterior
    content = {
        "format": _FORMAT,
        "key": cell.key,
        "cell": cell.to_json(),
        "status": "failed" if outcome.failed else "finished",
        "seconds": round(outcome.seconds, 6),
        "environment": dict(outcome.environment),
        "convergence": {
            name: value if math.isfinite(value) else None
            for name, value in outcome.convergence.items()
        },
        "traceback": outcome.traceback,
        "rerun": rerun,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    content["checksum"] = _checksum(content)
    # Last, so that a folder with this file has the others too.
    files[CELL_FILE] = (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()
    return files


def decode(folder: Path, every_file: bool = False) -> Record:
    """The record in a cell's folder, verified.

    **Arguments:** `every_file` also reads files that only a user needs (the posterior).
    """
    content = _read_content(folder)
    metrics = ()
    for name, expected in content["files"].items():
        if name != METRICS_FILE and not every_file:
            continue
        try:
            data = (folder / name).read_bytes()
        except OSError as error:
            raise CorruptRecord(f"{folder}: {name} cannot be read ({error.strerror})") from error
        if hashlib.sha256(data).hexdigest() != expected:
            raise CorruptRecord(f"{folder}: {name} does not match its checksum")
        if name == METRICS_FILE:
            metrics = _decode_metrics(data)
    if content["traceback"] is None and not metrics:
        raise CorruptRecord(f"{folder}: a finished cell without metrics")
    return Record(
        cell=Cell.from_json(content["cell"]),
        seconds=content["seconds"],
        environment=content["environment"],
        rerun=content["rerun"],
        metrics=metrics,
        convergence=content["convergence"],
        traceback=content["traceback"],
    )


def _read_content(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / CELL_FILE).read_bytes())
        claimed = content.pop("checksum")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise CorruptRecord(f"{folder}: {CELL_FILE} is missing or damaged ({error})") from error
    if claimed != _checksum(content):
        raise CorruptRecord(f"{folder}: {CELL_FILE} does not match its checksum")
    if content["format"] != _FORMAT:
        raise CorruptRecord(f"{folder}: {CELL_FILE} has format {content['format']}, not {_FORMAT}")
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _encode_metrics(rows: tuple[tuple[str, str, float], ...]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    parts, metrics, values = zip(*rows)
    table = pyarrow.table({"part": parts, "metric": metrics, "value": values})
    sink = pyarrow.BufferOutputStream()
    # A few rows: dictionaries, statistics and the Arrow schema would be most of the file.
    pyarrow.parquet.write_table(
        table,
        sink,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    )
    return sink.getvalue().to_pybytes()


def _decode_metrics(data: bytes) -> tuple[tuple[str, str, float], ...]:
    import pyarrow
    import pyarrow.parquet

    reader = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data))
    # Starting threads for a few hundred bytes takes longer than reading them.
    columns = reader.read(use_threads=False).to_pydict()
    return tuple(zip(columns["part"], columns["metric"], columns["value"]))
