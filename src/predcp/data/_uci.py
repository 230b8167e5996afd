"""The seven UCI regression sets."""

import os

import numpy as np

from predcp.data._errors import DataError
from predcp.data._locate import locate_verified
from predcp.data._registry import source
from predcp.data._table import Table


def load_uci(name: str, directory: str | os.PathLike[str] | None = None) -> Table:
    """A whitespace table whose last column is the target."""
    entry = source(name)
    values = np.loadtxt(locate_verified(entry, directory), ndmin=2)
    if values.shape != (entry.rows, entry.columns + 1):
        raise DataError(
            f"{name} has shape {values.shape}, expected {(entry.rows, entry.columns + 1)}"
        )
    names = tuple(f"x{column}" for column in range(entry.columns))
    return Table(name, values[:, :-1], values[:, -1], names, "regression")
