"""Rows and inputs that differ from those trained on: gaps, validation rows, noise and shifts."""

from typing import Literal

import numpy as np

from predcp.data import Split, Table

Rows = Literal["standard", "gap", "validation"]
ROWS: tuple[Rows, ...] = ("standard", "gap", "validation")
# In standard deviations of a feature.
SHIFT = 0.5


def gap_split(table: Table, feature: int) -> Split:
    """Test rows are the middle third by one feature, the others are trained on; ties at random."""
    if not 0 <= feature < table.features.shape[1]:
        raise ValueError(
            f"split must be below {table.features.shape[1]}, the features of {table.name}, got "
            f"{feature}: a gap is made in one of them"
        )
    count = len(table)
    ties = np.random.default_rng(1000 + feature).permutation(count)
    order = np.lexsort((ties, table.features[:, feature]))
    low, high = count // 3, 2 * count // 3
    outside = np.sort(np.concatenate([order[:low], order[high:]]))
    return Split(table.rows(outside), table.rows(outside[:0]), table.rows(order[low:high]))


def validation_split(split: Split) -> Split:
    """Use the last tenth of the training rows as test rows; the real test rows are not read."""
    cut = round(0.9 * len(split.train))
    rows = np.arange(len(split.train))
    train, held = split.train.rows(rows[:cut]), split.train.rows(rows[cut:])
    return Split(train, split.validation, held)


def moved_inputs(x: np.ndarray, split: int) -> dict[str, np.ndarray]:
    """Standardised inputs with normal noise, and shifted all by the same vector of random signs."""
    generator = np.random.default_rng(2000 + split)
    noise = SHIFT * generator.standard_normal(x.shape)
    signs = SHIFT * generator.choice((-1.0, 1.0), x.shape[1])
    return {"noise": (x + noise).astype(x.dtype), "shift": (x + signs).astype(x.dtype)}
