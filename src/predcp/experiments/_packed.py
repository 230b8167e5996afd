"""A packed experiment: all its cells in one Parquet file.

One row per cell. The column `record` holds `cell.json` and the column `files` the cell's other
files, byte for byte; the others repeat fields that are useful in queries.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from predcp.experiments._record import CELL_FILE, CorruptRecord, parse

SUFFIX = ".parquet"
_FORMAT = b"predcp-packed-1"
_REPEATED = ["data", "model", "prior", "inference", "settings", "environment"]


@dataclass(frozen=True)
class PackedCell:
    """The files of one cell; `files` has `cell.json` too."""

    name: str
    files: Mapping[str, bytes]


def read_packed(path: Path) -> Mapping[str, PackedCell]:
    """The packed cells by folder name, in the order of the names; empty if there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return {}
    return _read(str(path), status.st_mtime_ns, status.st_size)


def is_foreign(path: Path) -> bool:
    """Whether a file is a sound Parquet file that something else than `predcp store pack` wrote."""
    import pyarrow
    import pyarrow.parquet

    try:
        schema = pyarrow.parquet.read_schema(path)
    except (pyarrow.ArrowException, OSError):
        return False
    return (schema.metadata or {}).get(b"format") != _FORMAT


@lru_cache(maxsize=8)
def _read(path: str, modified: int, size: int) -> Mapping[str, PackedCell]:
    import pyarrow
    import pyarrow.parquet

    try:
        found = pyarrow.parquet.ParquetFile(path)
        if (found.schema_arrow.metadata or {}).get(b"format") != _FORMAT:
            raise CorruptRecord(f"{path} was not written by `predcp store pack`")
        rows = found.read(columns=["name", "record", "files"]).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise CorruptRecord(f"{path} is damaged: {error}") from error
    return {
        row["name"]: PackedCell(
            row["name"],
            {CELL_FILE: row["record"]} | {file["name"]: file["bytes"] for file in row["files"]},
        )
        for row in rows
    }


def write_packed(path: Path, cells: Sequence[PackedCell]) -> None:
    """Write a packed file atomically: an older one is replaced only by a complete one."""
    import pyarrow
    import pyarrow.parquet

    columns = _schema()
    rows = [_row(cell) for cell in sorted(cells, key=lambda cell: cell.name)]
    table = pyarrow.Table.from_pylist(rows, schema=columns)
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with staging.open("wb") as file:
            # A high compression level takes a second and saves a third; dictionaries do not help.
            write: Any = pyarrow.parquet.write_table
            write(
                table,
                file,
                compression="zstd",
                compression_level=19,
                use_dictionary=_REPEATED,  # pyright: ignore[reportArgumentType]
                write_statistics=False,
            )
            file.flush()
            os.fsync(file.fileno())
        staging.replace(path)
    finally:
        staging.unlink(missing_ok=True)


def _row(cell: PackedCell) -> dict[str, Any]:
    content = parse(cell.files[CELL_FILE], cell.name)
    described = content["cell"]
    return {
        "name": cell.name,
        "key": content["key"],
        **{name: described[name] for name in ("data", "model", "prior", "inference")},
        "split": described["split"],
        "seed": described["seed"],
        "settings": json.dumps(described["settings"], sort_keys=True),
        "status": content["status"],
        "seconds": content["seconds"],
        "environment": json.dumps(content["environment"], sort_keys=True),
        "metrics": [
            {"part": part, "metric": metric, "value": value}
            for part, metric, value in content["metrics"]
        ],
        "record": cell.files[CELL_FILE],
        "files": [
            {"name": name, "bytes": content}
            for name, content in sorted(cell.files.items())
            if name != CELL_FILE
        ],
    }


def _schema() -> Any:
    import pyarrow as pa

    metric = pa.struct([("part", pa.string()), ("metric", pa.string()), ("value", pa.float64())])
    file = pa.struct([("name", pa.string()), ("bytes", pa.binary())])
    return pa.schema(
        [
            ("name", pa.string()),
            ("key", pa.string()),
            ("data", pa.string()),
            ("model", pa.string()),
            ("prior", pa.string()),
            ("inference", pa.string()),
            ("split", pa.int64()),
            ("seed", pa.int64()),
            ("settings", pa.string()),
            ("status", pa.string()),
            ("seconds", pa.float64()),
            ("environment", pa.string()),
            ("metrics", pa.list_(metric)),
            ("record", pa.binary()),
            ("files", pa.list_(file)),
        ],
        metadata={"format": _FORMAT},
    )
