"""Which rows are for training and which for testing: the published rules, and one of our own."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Row numbers of one split; `validation` is empty where the rule sets none aside."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


Rule = Callable[[int, int], Rows]


def _checked(rows: int, split: int) -> None:
    if rows < 4:
        raise ValueError(f"rows must be at least 4 to be split, got {rows}")
    if split < 0:
        raise ValueError(f"split counts from 0, got {split}")


def standard_split(rows: int, split: int) -> Rows:
    """The published 90/10 splits of the UCI regression sets: one legacy stream, seed 1."""
    _checked(rows, split)
    stream = np.random.RandomState(1)
    permutation = [stream.choice(rows, rows, replace=False) for _ in range(split + 1)][-1]
    cut = round(0.9 * rows)
    return Rows(permutation[:cut], permutation[:0], permutation[cut:])


def medical_split(rows: int, split: int) -> Rows:
    """The paper's rule for small medical sets: 80/20, then a tenth of the 80 set aside."""
    _checked(rows, split)
    permutation = np.random.default_rng(1000 + split).permutation(rows)
    development = int(0.8 * rows)
    cut = int(0.9 * development)
    return Rows(permutation[:cut], permutation[cut:development], permutation[development:])


def random_split(rows: int, split: int) -> Rows:
    """80/20 by a seeded permutation: the rule for every set without a published one."""
    _checked(rows, split)
    permutation = np.random.default_rng(1000 + split).permutation(rows)
    cut = int(0.8 * rows)
    return Rows(permutation[:cut], permutation[:0], permutation[cut:])
