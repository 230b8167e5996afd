"""Paired differences between priors, and what counts."""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from studies.scale_priors.priors import OTHERS, OURS
from studies.scale_priors.store import PRIMARY, cells, simulated

LEVEL = 0.05
# Beyond so many errors a difference counts.
COUNTS = 2.0
# Larger is better.
_GAINS = ("new_score",)


class Difference(NamedTuple):
    """Mean of ours less theirs over simulations, its standard error, and their number."""

    mean: float
    error: float
    count: int

    @property
    def ratio(self) -> float:
        """The mean in errors; 0 where all differences are 0."""
        if self.error > 0.0:
            return self.mean / self.error
        return float(np.copysign(np.inf, self.mean)) if self.mean else 0.0


def difference(ours: np.ndarray, theirs: np.ndarray) -> Difference:
    """The paired difference of two scores of the same simulations."""
    gaps = np.asarray(ours, float) - np.asarray(theirs, float)
    error = float(gaps.std(ddof=1) / np.sqrt(len(gaps)))
    return Difference(float(gaps.mean()), error, len(gaps))


def limit(comparisons: int, count: int) -> float:
    """Errors beyond which a difference over so many simulations survives the correction."""
    return max(float(student.ppf(1.0 - LEVEL / (2 * comparisons), count - 1)), COUNTS)


def verdict(found: Difference, score: str, comparisons: int) -> tuple[int, bool]:
    """1 where ours is better, -1 where worse, 0 within two errors; and whether it survives correction."""
    sign = 1 if score in _GAINS else -1
    if abs(found.ratio) <= COUNTS:
        return 0, False
    return sign * int(np.sign(found.mean)), abs(found.ratio) > limit(comparisons, found.count)


def comparisons() -> int:
    """How many comparisons the page makes between ours and other priors."""
    return len(cells()) * len(OURS) * len(OTHERS) * len(PRIMARY)


@cache
def paired(design: str, scale: str, ours: str, theirs: str, score: str) -> Difference:
    """The difference of two priors in a cell."""
    each = simulated()[f"{score}_each"]
    return difference(each[design, scale, ours], each[design, scale, theirs])


def tally(ours: str, theirs: str, score: str) -> dict[str, int]:
    """Numbers of cells that are better, alike and worse, and of those that survive correction."""
    found = dict.fromkeys(("better", "alike", "worse", "surely better", "surely worse"), 0)
    for design, scale in cells():
        side, sure = verdict(paired(design, scale, ours, theirs, score), score, comparisons())
        word = {1: "better", 0: "alike", -1: "worse"}[side]
        found[word] += 1
        if sure:
            found[f"surely {word}"] += 1
    return found


def pooled(places: list[tuple[str, str]], ours: str, theirs: str, score: str) -> Difference:
    """The mean difference over several cells, which are independent."""
    found = [paired(design, scale, ours, theirs, score) for design, scale in places]
    mean = float(np.mean([each.mean for each in found]))
    error = float(np.sqrt(np.sum([each.error**2 for each in found]))) / len(found)
    return Difference(mean, error, sum(each.count for each in found))
