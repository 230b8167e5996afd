"""The metrics of every cell as one pyarrow table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from predcp.experiments._metrics import metric_name
from predcp.experiments._store import Store

if TYPE_CHECKING:
    import pyarrow

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


def query(
    store: Store,
    data: Sequence[str] = (),
    prior: Sequence[str] = (),
    inference: Sequence[str] = (),
    metric: Sequence[str] = (),
) -> pyarrow.Table:
    """One row per finished cell and metric, in the order of the cells' names.

    **Arguments:** names to keep; an empty choice keeps all.
    """
    import pyarrow

    choices = {"data": data, "prior": prior, "inference": inference, "metric": metric}
    rows = []
    for record in store.records().finished:
        cell = record.cell
        constant = {
            **cell.to_json(),
            "key": cell.key,
            "settings": json.dumps(dict(cell.settings), sort_keys=True),
            "seconds": record.seconds,
            "device": record.environment["device"],
        }
        for part, name, value in record.metrics:
            row = {**constant, "metric": metric_name(part, name), "value": value}
            if all(not names or row[field] in names for field, names in choices.items()):
                rows.append(row)
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in _COLUMNS.items()])
    return pyarrow.Table.from_pylist(rows, schema=schema)
