"""Rows of `predcp results`."""

from collections.abc import Sequence
from typing import Any

from predcp.experiments._query import query
from predcp.experiments._statistics import summarise
from predcp.experiments._store import Store


def result_rows(
    store: Store,
    cells: bool = False,
    data: Sequence[str] = (),
    prior: Sequence[str] = (),
    inference: Sequence[str] = (),
    metric: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Means over splits, or with `cells` every cell's metrics; an empty choice means all."""
    if cells:
        return query(store, data, prior, inference, metric).to_pylist()
    choices = {"data": data, "prior": prior, "inference": inference, "metric": metric}
    rows = (row.to_json() for row in summarise(store.records().finished).rows)
    return [
        row
        for row in rows
        if all(not names or row[field] in names for field, names in choices.items())
    ]
