"""The three medical classification sets."""

import os
from pathlib import Path

import numpy as np

from predcp.data._errors import DataError
from predcp.data._locate import locate_verified
from predcp.data._registry import source
from predcp.data._table import Table

# The label of class 0, the label of class 1, and what they mean.
_CLASSES = {
    "allaml": (1, 2, ("ALL", "AML")),
    "colon": (-1, 1, ("tumour", "normal")),
    "breast": (1, 2, ("healthy", "patient")),
}


def load_medical(name: str, directory: str | os.PathLike[str] | None = None) -> Table:
    """One of `allaml`, `colon` and `breast`, with classes 0 and 1."""
    entry = source(name)
    path = locate_verified(entry, directory)
    features, labels, names = _read_csv(path) if path.suffix == ".csv" else _read_matlab(path)
    negative, positive, class_names = _CLASSES[name]
    if features.shape != (entry.rows, entry.columns) or set(labels) != {negative, positive}:
        raise DataError(
            f"{name} has shape {features.shape} and labels {sorted(set(labels))}, expected "
            f"{(entry.rows, entry.columns)} and {[negative, positive]}"
        )
    target = (labels == positive).astype(np.int64)
    return Table(name, features.astype(np.float64), target, names, "binary", class_names)


def _read_matlab(path: Path) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    from scipy.io import loadmat

    content = loadmat(path)
    names = tuple(f"gene{column}" for column in range(content["X"].shape[1]))
    return content["X"], content["Y"].ravel(), names


def _read_csv(path: Path) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    with path.open(encoding="utf-8-sig") as file:
        header = file.readline().strip().split(",")
    values = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    return values[:, :-1], values[:, -1].astype(int), tuple(header[:-1])
