"""`metrics.parquet`: a cell's metrics, each row complete in itself, for pyarrow and its friends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from predcp.experiments._cell import Cell
from predcp.experiments._metrics import metric_name
from predcp.experiments._result import Outcome

if TYPE_CHECKING:
    import pyarrow

METRICS_FILE = "metrics.parquet"
_COLUMNS = {
    "key": "string",
    "data": "string",
    "model": "string",
    "prior": "string",
    "inference": "string",
    "split": "int64",
    "seed": "int64",
    "settings": "string",
    "metric": "string",
    "value": "float64",
    "seconds": "float64",
    "device": "string",
}


def metrics_schema() -> pyarrow.Schema:
    """The columns of every metrics file."""
    import pyarrow

    return pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in _COLUMNS.items()])


def encode_metrics(cell: Cell, outcome: Outcome) -> bytes:
    """The Parquet file of one cell."""
    import pyarrow
    import pyarrow.parquet

    constant = {
        **cell.to_json(),
        "key": cell.key,
        "settings": json.dumps(dict(cell.settings), sort_keys=True),
        "seconds": outcome.seconds,
        "device": outcome.environment["device"],
    }
    columns = {name: [constant.get(name)] * len(outcome.metrics) for name in _COLUMNS}
    columns["metric"] = [metric_name(part, metric) for part, metric, _ in outcome.metrics]
    columns["value"] = [value for _, _, value in outcome.metrics]
    sink = pyarrow.BufferOutputStream()
    # A few rows that repeat each other: statistics and the Arrow schema would be most of the file.
    pyarrow.parquet.write_table(
        pyarrow.table(columns, schema=metrics_schema()),
        sink,
        compression="gzip",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    )
    return sink.getvalue().to_pybytes()
