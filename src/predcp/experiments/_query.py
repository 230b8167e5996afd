"""Every cell's metrics as one pyarrow dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from predcp.experiments._metrics_file import METRICS_FILE, metrics_schema
from predcp.experiments._record import CorruptRecord
from predcp.experiments._store import Store

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset


def dataset(store: Store) -> pyarrow.dataset.Dataset:
    """The metrics files of an experiment's finished cells, to filter and join as you like."""
    import pyarrow.dataset

    files = [
        str(folder / METRICS_FILE)
        for folder in store.cell_folders()
        if (folder / METRICS_FILE).is_file()
    ]
    return pyarrow.dataset.dataset(files, schema=metrics_schema(), format="parquet")


def query(
    store: Store,
    data: Sequence[str] = (),
    prior: Sequence[str] = (),
    inference: Sequence[str] = (),
    metric: Sequence[str] = (),
) -> pyarrow.Table:
    """One row a cell and metric, in the order of the cells' names; an empty choice means all."""
    import pyarrow
    import pyarrow.dataset

    condition = pyarrow.dataset.scalar(True)
    choices = (("data", data), ("prior", prior), ("inference", inference), ("metric", metric))
    for column, names in choices:
        if names:
            condition &= pyarrow.dataset.field(column).isin(list(names))
    try:
        # Starting threads for a few hundred bytes a file takes longer than reading them.
        return dataset(store).to_table(filter=condition, use_threads=False)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise CorruptRecord(f"{store.folder} has a damaged metrics file: {error}") from error
