"""A data set as arrays."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

Task = Literal["regression", "binary", "multiclass"]


@dataclass(frozen=True)
class Table:
    """Features and one target.

    **Arguments:**

    - `features`: `(rows, columns)`, double precision.
    - `target`: `(rows,)`; numbers for regression, class numbers from 0 otherwise.
    - `class_names`: what the class numbers stand for.
    """

    name: str
    features: np.ndarray
    target: np.ndarray
    feature_names: tuple[str, ...]
    task: Task
    class_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.target)

    def rows(self, index: np.ndarray) -> "Table":
        """The same table with these rows only."""
        return replace(self, features=self.features[index], target=self.target[index])
