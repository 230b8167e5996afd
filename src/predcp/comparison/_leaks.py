"""Columns that tell the target by themselves: too good to be known beforehand."""

import math
from typing import Any

import numpy as np

from predcp.comparison._models import REGRESSION
from predcp.comparison._problem import Problem

# Of the squared correlation with a target of numbers.
_ALMOST_ONE = 1.0 - 1e-6
# Columns that tell the target by chance: with more of them expected, nothing is said; likewise a line
# through few rows.
_MOST_BY_CHANCE, _FEWEST_ROWS = 0.01, 4
# Numbers of a wide table that are looked at together.
_AT_ONCE = 2**21


def leaks(problem: Problem) -> list[str]:
    """Names of the columns, each of which gives away the target of every row.

    A column of numbers does so if a threshold separates each class from the others, or if the
    target is a straight line in it; a category if each of its values has one class only.
    """
    features, told = problem.features, set()
    if _by_chance(problem) > _MOST_BY_CHANCE:
        return []
    whole = _whole_numbers(features, problem.categories)
    size = max(1, _AT_ONCE // max(len(features), 1))
    for first in range(0, len(whole), size):
        names = whole[first : first + size]
        found = _numbers_tell(features[names].to_numpy(np.float64), problem)
        told |= {name for name, tells in zip(names, found) if tells}
    others = set(features.columns) - set(whole)
    told |= {name for name in others if _tells(features[name], problem)}
    return [str(name) for name in features.columns if name in told]


def leak_words(names: list[str]) -> str:
    """What to do about them."""
    if len(names) == 1:
        return (
            f"Can this be right? The column {names[0]} alone tells the target of every row. If it is known "
            "only after the target, leave it out (drop) and compare again."
        )
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        f"Can this be right? Each of the columns {listed} tells the target of every row. If they are known "
        "only after the target, leave them out (drop) and compare again."
    )


def _by_chance(problem: Problem) -> float:
    """How many columns of noise one would expect to tell the target of every row."""
    if problem.task == REGRESSION:
        return 0.0 if len(problem.target) >= _FEWEST_ROWS else math.inf
    counts = np.bincount(problem.target)
    # Of all orders of the rows, those in which each class is one stretch.
    logs = math.lgamma(len(counts) + 1) + sum(math.lgamma(count + 1) for count in counts)
    return problem.features.shape[1] * math.exp(logs - math.lgamma(len(problem.target) + 1))


def _whole_numbers(features: Any, categories: list[str]) -> list[Any]:
    """Names of the columns of numbers without gaps, which are many in a wide table."""
    gaps = features.isna().to_numpy().any(axis=0)
    texts = set(categories)
    return [name for name, gap in zip(features.columns, gaps) if not gap and name not in texts]


def _numbers_tell(values: np.ndarray, problem: Problem) -> np.ndarray:
    """`_tells` of columns of numbers without gaps `(rows, columns)`."""
    target = problem.target
    if problem.task == REGRESSION:
        size = np.abs(values).max(axis=0)
        # In units of the largest value, whose square cannot overflow.
        scores = values / np.where(size > 0.0, size, 1.0)
        scores = scores - scores.mean(axis=0)
        centred = target - target.mean()
        squares = (scores**2).sum(axis=0) * (centred @ centred)
        varying = np.ptp(values, axis=0) > 0.0
        return varying & ((centred @ scores) ** 2 > _ALMOST_ONE * squares)
    order = np.argsort(values, axis=0, kind="stable")
    changes = np.diff(target[order], axis=0) != 0
    # Along the sorted values each class is one stretch, and equal values have one class.
    stretches = changes.sum(axis=0) == len(np.unique(target)) - 1
    ordered = np.take_along_axis(values, order, axis=0)
    return stretches & ~(changes & (ordered[1:] == ordered[:-1])).any(axis=0)


def _tells(column: Any, problem: Problem) -> bool:
    import pandas

    series = pandas.Series(column).reset_index(drop=True)
    known = series.notna().to_numpy()
    values: Any = series[known]
    target = problem.target[known]
    if known.mean() < 0.5 or len(np.unique(target)) < 2:
        return False
    numeric = pandas.api.types.is_numeric_dtype(values)
    if problem.task == REGRESSION:
        if not numeric or values.nunique() < 2:
            return False
        numbers = values.to_numpy(np.float64)
        # In units of the largest value, whose square cannot overflow.
        correlation = np.corrcoef(numbers / np.abs(numbers).max(), target)[0, 1]
        return bool(correlation**2 > _ALMOST_ONE)
    groups: Any = pandas.Series(target).groupby(values.to_numpy())
    if not numeric:
        # Categories of one row each would tell every target.
        return groups.ngroups <= len(values) // 4 and bool((groups.nunique() == 1).all())
    if not (groups.nunique() == 1).all():
        return False
    # Along the sorted values each class is one stretch.
    ordered = target[np.argsort(values.to_numpy(), kind="stable")]
    return int(np.sum(ordered[1:] != ordered[:-1])) == len(np.unique(target)) - 1
