"""Columns as numbers, learned from the training rows of a fold alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    import pandas

_GAP = "missing"
# Larger values, in units of the largest of the training rows, act as infinite and are cut here.
_FURTHEST = 1e100


@dataclass(frozen=True)
class Preparation:
    """Medians for gaps, standard units, and one indicator per category.

    A gap in a column of text is a separate category. A category that the training rows lack has no
    indicator: all indicators of the column are 0. Fitted by `Preparation.fit`.
    """

    numbers: list[str]
    texts: list[str]
    imputer: Any
    units: Float[np.ndarray, " numbers"]
    scaler: Any
    encoder: Any

    @classmethod
    def fit(
        cls, frame: pandas.DataFrame, texts: list[str], weights: np.ndarray | None
    ) -> Preparation:
        """Learn from the training rows.

        **Arguments:** `texts`, names of the columns with categories; `weights` of the rows.
        """
        from sklearn.impute import SimpleImputer
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        numbers = [str(name) for name in frame.columns if name not in texts]
        imputer = SimpleImputer(strategy="median", keep_empty_features=True)
        scaler = StandardScaler()
        encoder = OneHotEncoder(drop="if_binary", handle_unknown="ignore", sparse_output=False)
        units = np.ones(len(numbers))
        if numbers:
            filled = imputer.fit_transform(frame[numbers].to_numpy())
            # In units of the largest value, whose square cannot overflow.
            size = np.abs(filled).max(axis=0)
            units = np.where(size > 0.0, size, 1.0)
            scaler.fit(filled / units, sample_weight=weights)
        if texts:
            encoder.fit(_texts(frame, texts))
        return cls(numbers, texts, imputer, units, scaler, encoder)

    def transform(self, frame: pandas.DataFrame) -> np.ndarray:
        """`(rows, columns)` without gaps."""
        parts = []
        if self.numbers:
            filled = self.imputer.transform(frame[self.numbers].to_numpy())
            # A value far beyond those of the training rows.
            with np.errstate(over="ignore"):
                furthest = _FURTHEST * self.units
                filled = np.clip(filled, -furthest, furthest)
            parts.append(self.scaler.transform(filled / self.units))
        if self.texts:
            parts.append(self.encoder.transform(_texts(frame, self.texts)))
        return np.concatenate(parts, axis=1)


def _texts(frame: pandas.DataFrame, names: list[str]) -> np.ndarray:
    return frame[names].astype(object).where(frame[names].notna(), _GAP).to_numpy()
