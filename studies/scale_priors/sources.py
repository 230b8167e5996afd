"""Read the data of the designs from the folder `hierarchical` of the data directory."""

import csv
import json
from functools import cache
from typing import Any

import numpy as np

from predcp.data import data_directory


@cache
def table(name: str) -> dict[str, Any]:
    """Columns by name, as arrays; a column of words becomes codes 0, 1, ... in order of the words."""
    path = data_directory(None) / "hierarchical" / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: set PREDCP_DATA to the folder that holds hierarchical/"
        )
    if path.suffix == ".json":
        return {key: np.asarray(value) for key, value in json.loads(path.read_text()).items()}
    with path.open() as lines:
        rows = list(csv.DictReader(lines))
    return {key: _column([row[key] for row in rows]) for key in rows[0]}


def _column(texts: list[str]) -> np.ndarray:
    try:
        return np.asarray([float(text) for text in texts])
    except ValueError:
        return codes(np.asarray(texts))


def codes(labels: np.ndarray) -> np.ndarray:
    """Labels as 0, 1, ... in their order, without gaps."""
    return np.unique(labels, return_inverse=True)[1]


def indicators(groups: np.ndarray) -> np.ndarray:
    """One column of zeros and ones for each group, shape (N, G)."""
    return np.eye(int(groups.max()) + 1)[groups]


def centred(values: np.ndarray, scaled: bool = False) -> np.ndarray:
    """Values less their mean, divided by their standard deviation if asked."""
    values = np.asarray(values, float) - np.mean(values)
    return values / np.std(values) if scaled else values
