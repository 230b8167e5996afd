"""Columns in standard units, and coefficients back in their own."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

# Outside, a coefficient per unit of the column leaves floating point.
_SMALLEST_SCALE = 1e-280
# A value so far out is as good as infinite, and can still be added to another.
_FURTHEST = 1e100


@dataclass(frozen=True)
class Columns:
    """Location and scale of every column in the training rows.

    **Arguments**
    - `mean`, `scale`: `(D,)`.
    - `varying`: `(D,)`, false for columns that tell rows apart in nothing: coefficient 0.
    """

    mean: Float[np.ndarray, " columns"]
    scale: Float[np.ndarray, " columns"]
    varying: Bool[np.ndarray, " columns"]

    @classmethod
    def fit(cls, x: np.ndarray, weights: np.ndarray, centre: bool) -> "Columns":
        """Weighted means and standard deviations of `x` `(N, D)`.

        **Arguments**: `centre`, false for a model through the origin: no means are taken out, and
        a constant column is then as good as any.
        """
        size = np.abs(x).max(axis=0)
        # In units of the largest value, whose square cannot overflow.
        unit = np.where(size > 0.0, size, 1.0)
        shares = weights / weights.sum()
        scores = x / unit
        mean = shares @ scores if centre else np.zeros(x.shape[1])
        spread = np.sqrt(shares @ (scores - mean) ** 2)
        rounding = 8.0 * np.finfo(np.float64).eps
        range_ = np.ptp(scores, axis=0) if centre else np.abs(scores).max(axis=0)
        varying = (range_ > rounding) & (spread > 0.0) & (spread * unit > _SMALLEST_SCALE)
        return cls(mean * unit, np.where(varying, spread * unit, 1.0), varying)

    def transform(self, x: np.ndarray) -> Float[np.ndarray, "rows varying"]:
        """Standard units, columns that vary only."""
        kept = self.varying
        with np.errstate(over="ignore"):
            scores = (x[:, kept] - self.mean[kept]) / self.scale[kept]
        return np.clip(scores, -_FURTHEST, _FURTHEST)

    def coefficients(self, beta: np.ndarray) -> np.ndarray:
        """Coefficients `(..., D, [K])` of the columns as they came, from those `(..., d, [K])`.

        **Arguments**: `beta` has its columns on axis 2, after chains and draws.
        """
        tail = (1,) * (beta.ndim - 3)
        full = np.zeros((*beta.shape[:2], len(self.scale), *beta.shape[3:]))
        full[:, :, self.varying] = beta / self.scale[self.varying].reshape(-1, *tail)
        return full

    def shift(self, beta: np.ndarray) -> np.ndarray:
        """What centring the columns took out of the intercept, `(chains, draws, [K])`."""
        ratio = self.mean[self.varying] / self.scale[self.varying]
        return np.einsum("cdp...,p->cd...", beta, ratio)
