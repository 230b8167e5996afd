"""The store as one long table, asked with pyarrow expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from predcp.experiments._labels import prior_labels
from predcp.experiments._metrics import metric_name
from predcp.experiments._record import CorruptRecord, Record
from predcp.experiments._store import Store

if TYPE_CHECKING:
    import pyarrow


def finished_records(store: Store) -> tuple[list[Record], list[Record], list[CorruptRecord]]:
    """The store's finished records, its failed ones, and its damaged folders."""
    finished, failed, corrupt = [], [], []
    for record in store.records():
        if isinstance(record, CorruptRecord):
            corrupt.append(record)
        else:
            (failed if record.failed else finished).append(record)
    return finished, failed, corrupt


def query(
    store: Store,
    data: Sequence[str] = (),
    prior: Sequence[str] = (),
    inference: Sequence[str] = (),
    metric: Sequence[str] = (),
) -> pyarrow.Table:
    """One row a cell and metric: `key, data, model, prior, inference, split, seed, metric, value,
    seconds, device, commit`; an empty choice means all."""
    import pyarrow.dataset

    dataset = pyarrow.dataset.dataset(as_table(finished_records(store)[0]))
    condition = pyarrow.dataset.scalar(True)
    choices = (("data", data), ("prior", prior), ("inference", inference), ("metric", metric))
    for column, names in choices:
        if names:
            condition &= pyarrow.dataset.field(column).isin(list(names))
    return dataset.to_table(filter=condition)


def as_table(records: Sequence[Record]) -> pyarrow.Table:
    """Finished records as a long table."""
    import pyarrow

    labels = prior_labels([record.cell for record in records])
    columns: dict[str, list[object]] = {name: [] for name in _SCHEMA}
    for record in records:
        cell, environment = record.cell, record.environment
        for part, metric, value in record.metrics:
            row = (
                *(cell.key, cell.data, cell.model, labels[cell], cell.inference),
                *(cell.split, cell.seed, metric_name(part, metric), value),
                *(record.seconds, environment["device"], environment["commit"]),
            )
            for name, item in zip(_SCHEMA, row):
                columns[name].append(item)
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in _SCHEMA.items()])
    return pyarrow.table(columns, schema=schema)


_SCHEMA = {
    "key": "string",
    "data": "string",
    "model": "string",
    "prior": "string",
    "inference": "string",
    "split": "int64",
    "seed": "int64",
    "metric": "string",
    "value": "float64",
    "seconds": "float64",
    "device": "string",
    "commit": "string",
}
