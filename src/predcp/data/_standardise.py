"""Z-scores with training statistics."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Standardiser:
    """Subtract a mean and divide by a standard deviation, column by column."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, values: np.ndarray) -> "Standardiser":
        """Statistics of the rows of `values`; a constant column keeps scale 1 and becomes 0."""
        # Rounding alone gives a constant column a tiny spread; dividing by it would invent signal.
        constant = np.ptp(values, axis=0) == 0
        scale = np.where(constant, 1.0, values.std(axis=0))
        mean = np.where(constant, values[0], values.mean(axis=0))
        return cls(mean=mean, scale=scale)

    def transform(self, values: np.ndarray) -> np.ndarray:
        """To z-scores."""
        return (values - self.mean) / self.scale

    def inverse(self, scores: np.ndarray) -> np.ndarray:
        """Back to the original units."""
        return scores * self.scale + self.mean
