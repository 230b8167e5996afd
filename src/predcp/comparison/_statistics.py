"""Paired differences between models, with errors that allow for overlapping training sets."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from jaxtyping import Float

LEVEL = 0.05
# One training set says nothing about others.
FEWEST_FOLDS = 2
# Rows of a fold are summed in at most so many groups: enough for their variance, few to store.
MOST_GROUPS = 200


@dataclass(frozen=True)
class FoldSums:
    """Log scores of the test rows of one fold, summed in groups of rows.

    **Arguments:** `scores`, the weighted sum of each group; `weights`, their sums.
    """

    scores: Float[np.ndarray, " groups"]
    weights: Float[np.ndarray, " groups"]

    @classmethod
    def of(cls, scores: np.ndarray, weights: np.ndarray) -> "FoldSums":
        """Sums of rows, in random groups where there are many; the same groups for every model.

        **Arguments:** `scores` and `weights`, one per row.
        """
        groups = np.random.default_rng(0).permutation(len(scores)) % MOST_GROUPS
        return cls(np.bincount(groups, weights * scores), np.bincount(groups, weights))

    @property
    def mean(self) -> float:
        """The mean score of a row."""
        return float(self.scores.sum() / self.weights.sum())

    def minus(self, other: "FoldSums") -> "FoldSums":
        """The differences of two models on the same rows."""
        return FoldSums(self.scores - other.scores, self.weights)

    def variance(self) -> float:
        """Variance of the mean over the rows of the fold."""
        count = len(self.scores)
        residual = self.scores - self.mean * self.weights
        return float(residual @ residual / self.weights.sum() ** 2) * count / (count - 1)


@dataclass(frozen=True)
class Difference:
    """First model minus second on the same folds; positive where the first is better.

    **Arguments:** `error`, see `paired_error`, and its `degrees` of freedom; `p`, of a two-sided t
    test; `adjusted`, after Holm's correction for several pairs, see `differences`.
    """

    first: str
    second: str
    mean: float
    error: float
    degrees: int
    p: float
    adjusted: float = 1.0

    @property
    def clear(self) -> bool:
        """Whether the difference is more than chance."""
        return self.adjusted < LEVEL

    def reversed(self) -> "Difference":
        """The same difference with the second model first."""
        return replace(self, first=self.second, second=self.first, mean=-self.mean)


def corrected_error(values: Sequence[float], folds: int) -> float:
    """Standard error of a mean over the folds of repeated cross-validation.

    Training sets overlap, so the plain error is too small. Nadeau and Bengio (2003) replace 1 / J by
    1 / J + (test rows) / (training rows), here 1 / (folds - 1).

    **Arguments:** `values`, one per fold of every repeat; infinite for fewer than two.
    """
    if len(values) < 2:
        return math.inf
    spread = float(np.var(np.asarray(values, np.float64), ddof=1))
    return _corrected(spread, len(values), folds)


def paired_error(sums: Sequence[FoldSums], folds: int) -> float:
    """`corrected_error` with the variance of a fold's mean from the rows of the fold.

    There are many more rows than folds, so it is known well from few folds.

    **Arguments:** `sums` of a difference, one per fold of every repeat.
    """
    return _corrected(float(np.mean([fold.variance() for fold in sums])), len(sums), folds)


def _corrected(variance: float, count: int, folds: int) -> float:
    return math.sqrt(variance * (1.0 / count + 1.0 / (folds - 1)))


def differences(
    sums: Mapping[str, Sequence[FoldSums]], folds: int, base: str | None = None
) -> list[Difference]:
    """Every pair of models, higher scores being better.

    Holm's correction is for the pairs that answer the question: those with the best model and those
    with the base rate. Any other pair is corrected for all pairs.

    **Arguments:** `sums`, one per fold of every repeat, in the same order for each model; `base`, the
    name of the base rate, if it is among them.
    """
    pairs = [
        _difference(first, second, [a.minus(b) for a, b in zip(sums[first], sums[second])], folds)
        for first, second in combinations(sums, 2)
    ]
    best = max(sums, key=lambda model: float(np.mean([fold.mean for fold in sums[model]])))
    asked = [bool({best, base} & {pair.first, pair.second}) for pair in pairs]
    corrected = iter(_holm([pair for pair, wanted in zip(pairs, asked) if wanted]))
    return [next(corrected) if wanted else pair for pair, wanted in zip(_holm(pairs), asked)]


def _difference(first: str, second: str, sums: Sequence[FoldSums], folds: int) -> Difference:
    from scipy.stats import t

    mean, error = float(np.mean([fold.mean for fold in sums])), paired_error(sums, folds)
    # Repeats test the same rows again.
    once = sums[:folds]
    degrees = sum(len(fold.scores) - 1 for fold in once)
    if len(sums) < FEWEST_FOLDS or mean == 0.0:
        p = 1.0
    else:
        p = 0.0 if error == 0.0 else float(2.0 * t.sf(abs(mean) / error, degrees))
    return Difference(first, second, mean, error, degrees, p)


def _holm(pairs: list[Difference]) -> list[Difference]:
    """Adjusted p-values: the chance that any pair is called different by mistake stays below one."""
    order = sorted(range(len(pairs)), key=lambda place: pairs[place].p)
    adjusted, largest = [1.0] * len(pairs), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min((len(pairs) - rank) * pairs[place].p, 1.0))
        adjusted[place] = largest
    return [replace(pair, adjusted=value) for pair, value in zip(pairs, adjusted)]
