"""Paired differences: how often chance is called a difference, and how often one is found."""

import math
from itertools import combinations

import numpy as np
import pytest

from predcp.comparison import corrected_error
from predcp.comparison._folds import fold_rows
from predcp.comparison._sentence import Verdict, sentence
from predcp.comparison._statistics import MOST_GROUPS, Difference, FoldSums, differences

TABLES, ROWS = 500, 60


def splits(folds, repeats):
    return [fold_rows(np.zeros(ROWS), "regression", folds, 0, n) for n in range(folds * repeats)]


def sums(values):
    return FoldSums.of(np.asarray(values), np.ones(len(values)))


def of_folds(scores):
    """One row with its score and one beside it, in every fold."""
    return {name: [sums([v - 0.1, v + 0.1]) for v in values] for name, values in scores.items()}


def regressions(random, effects, divided):
    """Minus squared errors of the mean and of a line through each column, by fold."""
    x = random.normal(size=(ROWS, len(effects)))
    y = x @ effects + random.normal(size=ROWS)
    scores = {"base-rate": [], **{f"m{k}": [] for k in range(len(effects))}}
    for train, test in divided:
        slopes = (y[train] @ x[train]) / (x[train] ** 2).sum(axis=0)
        errors = (y[test, None] - np.c_[np.zeros(len(test)), slopes * x[test]]) ** 2
        for name, error in zip(scores, errors.T):
            scores[name].append(sums(-error))
    return scores


def rate(effects, divided, clear, tables=TABLES):
    random = np.random.default_rng(1)
    found = [clear(regressions(random, effects, divided)) for _ in range(tables)]
    return np.mean(found, axis=0)


def clear(first, second, folds):
    def called(scores):
        (pair,) = differences({name: scores[name] for name in (first, second)}, folds)
        return pair.clear

    return called


def plain(scores):
    """A t test with the usual error, over the folds of repeated cross-validation."""
    values = [a.mean - b.mean for a, b in zip(scores["m0"], scores["m1"])]
    # The 97.5% quantile of t with 14 degrees of freedom.
    return abs(np.mean(values)) > 2.145 * np.std(values, ddof=1) / math.sqrt(len(values))


# .05 and three standard errors of a rate over so many tables.
LIMIT = 0.05 + 3 * math.sqrt(0.05 * 0.95 / TABLES)


def test_chance_is_called_a_difference_as_often_as_stated():
    divided = splits(5, 3)
    ours = clear("m0", "m1", 5)
    corrected, usual = rate([0.0, 0.0], divided, lambda scores: (ours(scores), plain(scores)))
    assert corrected < LIMIT < usual


@pytest.mark.parametrize(("folds", "repeats"), [(2, 1), (3, 1), (5, 1), (5, 3)])
def test_a_model_exactly_as_good_as_the_base_rate(folds, repeats):
    """The effect pays for the error of its estimate, so that the expected difference is zero."""
    train = ROWS * (folds - 1) // folds
    effect = 1.0 / math.sqrt(train)
    assert rate([effect], splits(folds, repeats), clear("m0", "base-rate", folds)) < LIMIT


@pytest.mark.parametrize(("folds", "repeats", "power"), [(2, 1, 0.75), (3, 1, 0.88), (5, 3, 0.97)])
def test_a_real_difference_is_found(folds, repeats, power):
    """Power where a column explains seven tenths of the variance, 60 rows."""
    found = rate([1.5], splits(folds, repeats), clear("m0", "base-rate", folds), 200)
    assert found > power


def test_noise_gets_hardly_ever_a_model_recommended():
    """Five models and the base rate, none of which is of use: the whole sentence."""
    divided = splits(5, 1)

    def recommended(scores):
        means = {name: np.mean([fold.mean for fold in found]) for name, found in scores.items()}
        order = sorted(means, key=means.get, reverse=True)
        metrics = {
            name: {"log_likelihood": means[name], "r_squared": 0.0, "fit_seconds": 1.0}
            for name in order
        }
        pairs = differences(scores, 5, "base-rate")
        verdict = Verdict("regression", metrics, pairs, {n: n for n in order}, 5, ROWS)
        return not sentence(verdict).startswith(("Use none", "Too few"))

    assert rate([0.0] * 5, divided, recommended, 400) < 0.02
    assert rate([2.0] + [0.0] * 4, divided, recommended, 50) > 0.7


def test_the_error_of_nadeau_and_bengio():
    values = [0.1, 0.4, -0.2, 0.3, 0.5]
    by_hand = np.var(values, ddof=1) * (1 / 5 + 0.2 / 0.8)
    assert corrected_error(values, 5) == pytest.approx(math.sqrt(by_hand), rel=1e-14)
    assert corrected_error([1.0], 5) == math.inf
    rows = np.random.default_rng(0).normal(size=(5, 12))
    (pair,) = differences({"a": list(map(sums, rows)), "b": [sums(np.zeros(12))] * 5}, 5)
    by_hand = np.var(rows, axis=1, ddof=1).mean() / 12 * (1 / 5 + 0.2 / 0.8)
    assert pair.error == pytest.approx(math.sqrt(by_hand), rel=1e-12)
    assert pair.degrees == 55 and pair.mean == pytest.approx(rows.mean(), rel=1e-12)


def test_groups_of_rows_have_the_error_of_the_rows():
    random = np.random.default_rng(0)
    scores, weights = random.normal(size=20_000), random.uniform(0.5, 2.0, 20_000)
    found = FoldSums.of(scores, weights)
    assert len(found.scores) == MOST_GROUPS
    assert found.mean == pytest.approx(np.average(scores, weights=weights), rel=1e-10)
    exact = weights**2 @ (scores - found.mean) ** 2 / weights.sum() ** 2
    # A variance from 200 groups is known within a tenth, three times over.
    assert found.variance() == pytest.approx(exact, rel=0.3)


def test_holm_over_the_pairs_that_are_asked_for():
    random = np.random.default_rng(0)
    base = random.normal(size=15)
    scores = of_folds({f"m{k}": base + k * 0.1 + 0.3 * random.normal(size=15) for k in range(4)})
    for model in scores.values():
        model[:] = [sums(random.normal(fold.mean, 0.5, 4)) for fold in model]
    found = differences(scores, 5, "m0")
    best = max(scores, key=lambda name: np.mean([fold.mean for fold in scores[name]]))
    asked = [pair for pair in found if {best, "m0"} & {pair.first, pair.second}]
    assert len(found) == 6 and len(asked) == 5
    p = np.sort([pair.p for pair in asked])
    wanted = np.minimum(np.maximum.accumulate(p * np.arange(5, 0, -1)), 1.0)
    np.testing.assert_allclose(np.sort([pair.adjusted for pair in asked]), wanted)
    (other,) = [pair for pair in found if pair not in asked]
    assert other.adjusted >= other.p


def test_equal_models_and_models_a_constant_apart():
    (pair,) = differences(of_folds({"a": np.ones(15), "b": np.ones(15)}), 5)
    assert not pair.clear
    (pair,) = differences(of_folds({"a": np.ones(15), "b": np.zeros(15)}), 5)
    assert pair.clear and pair.reversed().mean == pytest.approx(-1.0)
    (pair,) = differences(of_folds({"a": [1.0], "b": [0.0]}), 5)
    assert not pair.clear


def verdict(means, clear):
    """Models in the order of their means, and the pairs that are clearly different."""
    metrics = {
        n: {"log_likelihood": m, "r_squared": 0.5, "fit_seconds": 1.0} for n, m in means.items()
    }
    pairs = [
        Difference(a, b, means[a] - means[b], 0.1, 50, 0.0, 0.0 if (a, b) in clear else 1.0)
        for a, b in combinations(means, 2)
    ]
    return Verdict("regression", metrics, pairs, {name: name for name in means}, 5, 100)


def test_no_model_is_called_worse_whose_mean_exceeds_a_tied_one():
    means = {"a": -1.0, "b": -1.1, "c": -1.2, "base-rate": -2.0, "d": -2.1}
    base = {(name, "base-rate") for name in "abc"}
    found = verdict(means, {("a", "b")} | base)
    assert found.tied == ["a", "b", "c"] and found.worse == ["base-rate"]
    assert verdict(means, {("a", "b"), ("a", "c")} | base).tied == ["a"]


def test_a_steady_model_is_used_where_the_best_is_not_clearly_better_than_the_base_rate():
    means = {"wild": -1.0, "steady": -1.1, "base-rate": -1.5}
    words = sentence(verdict(means, {("steady", "base-rate")}))
    assert words.startswith("Use steady: it predicts clearly better than the base rate")
    assert words.endswith("nothing separates wild and steady. Clearly worse: base-rate.")
