"""Whole comparisons: the sentence, leakage, weights, resuming, bad input."""

import json
import time
import warnings
from dataclasses import replace

import numpy as np
import pandas
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.clock import slowness
from tests.comparison.comparison_models import Failing, Rows

import predcp
from predcp.comparison import MODEL_NAMES, _leaks, default_models
from predcp.comparison._cells import fit_fold
from predcp.comparison._leaks import leaks
from predcp.comparison._preparation import Preparation
from predcp.comparison._problem import from_arrays, from_file, load, save
from predcp.data import FileOptions
from predcp.experiments import Store

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 3))
NOISE = RANDOM.integers(0, 2, 120)
SIGNAL = (X[:, 0] + 0.3 * RANDOM.normal(size=120) > 0).astype(int)
QUICK = ["base-rate", "sklearn-l2"]


def plain():
    return LogisticRegression()


def test_the_sentence_where_nothing_separates_the_models():
    weak = (X[:, 0] + 5.0 * np.random.default_rng(1).normal(size=120) > 0).astype(int)
    models = {"base-rate": None, "logistic": plain()}
    found = predcp.compare(X, weak, models, repeats=2)
    assert found.sentence.startswith("Use none of these models yet: nothing separates logistic")
    assert found.folds_done == 10 and not found.worse


@pytest.mark.parametrize("folds", [3, 5])
def test_a_strong_signal_is_seen_in_few_folds(folds):
    """Two thirds of the variance: no model with a signal is refused, and none is called worse."""
    random = np.random.default_rng(0)
    x = random.normal(size=(90, 2))
    y = 2.0 * x[:, 0] + random.normal(size=90)
    names = ["base-rate", "sklearn-lasso", "sklearn-ridge", "sklearn-ard"]
    found = predcp.compare(x, y, names, folds=folds, repeats=1)
    assert found.sentence.startswith(f"Use {found.words[found.best]}: it has the best mean score")
    assert found.worse == ("base-rate",)


def test_a_lead_too_small_to_matter_is_no_lead():
    random = np.random.default_rng(1)
    x = random.normal(size=(200_000, 1))
    y = (random.random(200_000) < 0.5 + 0.02 * np.tanh(x[:, 0])).astype(int)
    models = {"base-rate": None, "logistic": plain()}
    found = predcp.compare(x, y, models, folds=2, repeats=1)
    assert found.difference("logistic", "base-rate").clear
    assert "leads by too little to matter (5" in found.sentence
    assert "% by the base rate)" in found.sentence


def test_models_that_shrink_to_the_base_rate_say_nothing_about_power():
    models = {"base-rate": None, "shrunk": LogisticRegression(C=1e-6)}
    found = predcp.compare(X, NOISE, models, folds=2, repeats=1)
    assert found.sentence.endswith("any column; they predict almost the same.")


def test_too_few_rows_to_tell():
    random = np.random.default_rng(1)
    x = random.normal(size=(30, 1))
    y = 1.5 * x[:, 0] + random.normal(size=30)
    found = predcp.compare(x, y, ["base-rate", "sklearn-ridge"], folds=2, repeats=1)
    assert found.sentence.startswith("Too few rows or folds to tell: scikit-learn's ridge leads")
    assert "with 30 rows in 2 folds only a model with" in found.sentence
    assert "% smaller errors would be found in 80 of 100 such tables" in found.sentence


def test_the_sentence_where_something_does(tmp_path):
    models = {"base-rate": None, "logistic": plain(), "again": plain()}
    found = predcp.compare(X, SIGNAL, models)
    assert found.best == "logistic"
    assert "Use logistic: it has the best mean score" in found.sentence
    assert "nothing separates logistic and again. Clearly worse: the base rate." in found.sentence
    assert found.difference("logistic", "again").mean == 0.0
    assert found.difference("base-rate", "logistic").clear
    values = json.loads(found.to_json())
    assert (
        values["scores"]["again"]["log_likelihood"]
        == values["scores"]["logistic"]["log_likelihood"]
    )
    assert list(found.to_frame().index) == list(found.scores)
    markdown, page = found.save(tmp_path)
    text = markdown.read_text()
    assert text.splitlines()[2] == found.sentence
    assert text.splitlines()[4].startswith("![") and (tmp_path / "comparison.png").is_file()
    assert found.sentence in page.read_text()
    assert str(found).startswith(found.sentence)


def test_one_clear_winner_among_two():
    found = predcp.compare(X, SIGNAL, QUICK, repeats=1)
    assert found.sentence.startswith("Use scikit-learn's l2: it predicts clearly best")
    right = [f"{found.scores[name]['accuracy'].mean:.1f}%" for name in QUICK]
    words = f"({right[1]} of the rows right, against {right[0]} by the base rate)"
    assert words in found.sentence


def test_a_lead_in_probabilities_of_a_rare_class_is_said_in_probabilities():
    """No row gets a probability above one half, so all models are right equally often."""
    random = np.random.default_rng(3)
    x = random.normal(size=(3000, 1))
    y = (random.random(3000) < 0.4 / (1.0 + np.exp(-4.0 * x[:, 0]))).astype(int)
    found = predcp.compare(x, y, {"base-rate": None, "logistic": plain()}, repeats=1)
    shown = [
        f"{100 * np.exp(found.scores[name]['log_likelihood'].mean):.3g}%"
        for name in ("logistic", "base-rate")
    ]
    words = "({} probability typically given to the true class, against {} by the base rate)"
    assert words.format(*shown) in found.sentence


def test_scores_are_those_of_scikit_learns_cross_validation():
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    found = predcp.compare(X, SIGNAL, {"logistic": plain()}, repeats=1)
    state = int(np.random.SeedSequence((0, 0)).generate_state(1)[0])
    folds = StratifiedKFold(5, shuffle=True, random_state=state)
    model = make_pipeline(StandardScaler(), plain())
    theirs = cross_val_score(model, X, SIGNAL, cv=folds, scoring="neg_log_loss")
    assert found.scores["logistic"]["log_likelihood"].mean == pytest.approx(theirs.mean(), rel=1e-9)


def test_every_model_gets_the_same_folds():
    Rows.fits.clear()
    predcp.compare(X, SIGNAL, {"a": Rows(), "b": Rows(C=2.0)}, folds=3, repeats=2)
    pairs = list(zip(Rows.fits[::2], Rows.fits[1::2]))
    assert len(pairs) == 6
    for (first, y_first), (second, y_second) in pairs:
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(y_first, y_second)
    assert not np.array_equal(pairs[0][0][0], pairs[3][0][0])


def test_nothing_is_learned_from_the_test_rows():
    """A fold's training columns are the same when the other rows are changed beyond recognition."""
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[::7, "a"] = np.nan
    frame["kind"] = np.where(X[:, 1] > 0, "p", np.where(X[:, 2] > 0, "q", "r"))
    from predcp.comparison._folds import fold_rows

    train, test = fold_rows(SIGNAL, "binary", 2, 0, 0)
    changed = frame.copy()
    changed.loc[test, ["a", "b", "c"]] = 1e6 * frame.loc[test, ["a", "b", "c"]] + 5e6
    changed.loc[test, "kind"] = "only here"
    fits = []
    for table in (frame, changed):
        Rows.fits.clear()
        predcp.compare(table, SIGNAL, {"rows": Rows()}, folds=2, repeats=1)
        fits.append(Rows.fits[0][0])
    assert fits[0].shape == (len(train), 6)
    np.testing.assert_array_equal(*fits)
    # Gaps have the median of the training rows.
    filled = fits[0][np.isnan(frame["a"].to_numpy()[train]), 0]
    known = frame["a"].to_numpy()[train]
    known = np.where(np.isnan(known), np.nanmedian(known), known)
    np.testing.assert_allclose(filled, (np.nanmedian(known) - known.mean()) / known.std())


def test_pipelines_and_boosting_get_the_columns_as_they_came():
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[::5, "a"] = np.nan
    frame["kind"] = np.where(X[:, 1] > 0, "p", "q")
    frame.loc[::7, "kind"] = None
    from sklearn.compose import ColumnTransformer

    first = ColumnTransformer([("numbers", SimpleImputer(), ["a", "b"])])
    models = {"own": make_pipeline(first, plain()), "trees": HistGradientBoostingClassifier()}
    found = predcp.compare(frame, SIGNAL, models, folds=2, repeats=1)
    assert not found.failed and len(found.scores) == 2


def test_a_gap_in_a_column_of_text_is_a_category_of_its_own(tmp_path):
    """The gaps tell the class; here and as a worker reads the table."""
    kinds = np.where(X[:, 1] > 0, "p", "q").astype(object)
    kinds[SIGNAL == 1] = None
    frame = pandas.DataFrame({"a": X[:, 0], "kind": kinds, "y": np.where(SIGNAL, "yes", "no")})
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    problem = from_file(tmp_path / "gaps.csv", "y", None, FileOptions(missing="impute"))
    save(problem, tmp_path / "tables", problem.fingerprint())
    again = load(str(tmp_path / "tables"), problem.fingerprint(), problem.name, problem.task)
    assert again.fingerprint() == problem.fingerprint() and problem.gaps == SIGNAL.sum()
    frame.loc[0, "kind"] = "r"
    other = from_arrays(frame[["a", "kind"]], frame["y"], None, False, "impute", "gaps")
    assert other.fingerprint() != problem.fingerprint()
    for table in (problem, again):
        prepared = Preparation.fit(table.features, table.categories, None)
        assert SIGNAL.tolist() in prepared.transform(table.features).T.tolist()


def test_a_weight_of_two_is_a_row_twice():
    """Within one fold: fits and scores are those of the table with repeated rows."""
    from predcp.comparison._cells import _Fitted

    weights = RANDOM.integers(0, 4, 120)
    y = X @ [1.0, -2.0, 0.0] + RANDOM.normal(size=120)
    once = from_arrays(X, y, weights, False, "impute", "once")
    assert len(once.target) == (weights > 0).sum()
    often = from_arrays(np.repeat(X, weights, 0), np.repeat(y, weights), None, False, "impute", "n")
    fitted = [
        _Fitted.fit(LinearRegression(), problem, np.arange(len(problem.target)))
        for problem in (once, often)
    ]
    rows = np.arange(20)
    predictions = [one.estimator.predict(one.columns(once, rows)) for one in fitted]
    np.testing.assert_allclose(*predictions, rtol=1e-9)


def test_weights_change_the_scores_and_leave_ard_out():
    y = X @ [1.0, -2.0, 0.0] + RANDOM.normal(size=120)
    weights = RANDOM.uniform(0.5, 2.0, 120)
    names = ["base-rate", "sklearn-ridge"]
    plainly = predcp.compare(X, y, names, repeats=1)
    weighted = predcp.compare(X, y, names, repeats=1, sample_weight=weights)
    r = [found.scores["sklearn-ridge"]["r_squared"].mean for found in (plainly, weighted)]
    assert r[0] != r[1] and min(r) > 0.6
    assert "sklearn-ard" not in default_models("regression", weighted=True)
    with pytest.raises(ValueError, match="takes no weights"):
        predcp.compare(X, y, ["sklearn-ard"], sample_weight=weights)


def test_our_models_of_a_regression_cover_what_they_should():
    y = X @ [1.0, -2.0, 0.0] + RANDOM.normal(size=120)
    found = predcp.compare(X, y, ["base-rate", "ridge", "sklearn-ridge"], folds=2, repeats=1)
    assert not found.failed and found.worse == ("base-rate",)
    for name in ("ridge", "sklearn-ridge", "base-rate"):
        # 120 rows: a standard error of 2.7 points.
        assert 80 < found.scores[name]["coverage_90"].mean < 99
    assert found.scores["ridge"]["r_squared"].mean > 0.6
    assert found.scores["base-rate"]["r_squared"].mean < 0.05


def test_resuming_runs_what_is_missing_only(tmp_path):
    Rows.fits.clear()
    settings = {"folds": 3, "store": tmp_path}
    first = predcp.compare(X, SIGNAL, {"rows": Rows(), "base-rate": None}, repeats=1, **settings)
    assert len(Rows.fits) == 3
    again = predcp.compare(X, SIGNAL, {"rows": Rows(), "base-rate": None}, repeats=1, **settings)
    assert len(Rows.fits) == 3 and again.to_json() == first.to_json()
    more = predcp.compare(X, SIGNAL, {"rows": Rows(), "base-rate": None}, repeats=2, **settings)
    assert len(Rows.fits) == 6 and more.folds_done == 6
    # Another table in the same folder is another comparison.
    other = predcp.compare(X + 1, SIGNAL, {"base-rate": None}, repeats=1, **settings)
    assert other.folds_done == 3 and list(other.scores) == ["base-rate"]


def test_interruptions_and_limits_keep_finished_fits(tmp_path, monkeypatch):
    import predcp.comparison._cells as cells

    def interrupted(cell, context):
        if cell.split == 2:
            raise KeyboardInterrupt
        return fit_fold(cell, context)

    monkeypatch.setattr(cells, "fit_fold", interrupted)
    with pytest.raises(KeyboardInterrupt):
        predcp.compare(X, SIGNAL, QUICK, repeats=1, store=tmp_path)
    assert len(Store(tmp_path, "cells").records().finished) == 4
    # A limit on time ends workers before they begin: what was kept is compared.
    began = time.monotonic()
    found = predcp.compare(X, SIGNAL, QUICK, repeats=1, store=tmp_path, max_seconds=0.01)
    assert time.monotonic() - began < 5.0 * slowness()
    assert found.folds_done == 2
    assert found.notes[0].startswith("The limit on time (max_seconds=0.01) ended the comparison")
    with pytest.raises(ValueError, match="max_seconds must be longer"):
        predcp.compare(X + 1, SIGNAL, QUICK, max_seconds=0.01)
    monkeypatch.undo()
    # The same call goes on from there.
    assert predcp.compare(X, SIGNAL, QUICK, repeats=1, store=tmp_path).folds_done == 5


def test_a_model_that_fails_is_said_and_left_out():
    found = predcp.compare(X, SIGNAL, {"bad": Failing(), "base-rate": None}, repeats=1)
    assert found.failed == {"bad": "RuntimeError: this model never works"}
    assert list(found.scores) == ["base-rate"] and "bad failed" in str(found)
    with pytest.raises(ValueError, match="every model failed; bad"):
        predcp.compare(X, SIGNAL, {"bad": Failing()}, repeats=1)


def test_several_classes_and_rare_ones():
    classes = np.digitize(X[:, 0], [-0.5, 0.5]).astype(str)
    found = predcp.compare(X, classes, {"logistic": plain(), "base-rate": None}, repeats=1)
    assert found.task == "multiclass" and found.best == "logistic"
    rare = np.where(np.arange(120) < 3, "rare", "common")
    with pytest.raises(ValueError, match="folds must be at most 3: the class rare has 3 rows"):
        predcp.compare(X, rare, QUICK)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": ["sklearn-lasso"]}, "model must be one of base-rate.* for a binary target"),
        ({"models": []}, "models must name at least one"),
        ({"models": "predcp"}, "models must be a list"),
        ({"models": {"x": 3}}, "must be a scikit-learn estimator"),
        ({"models": {"x": LinearRegression()}}, "must be a classifier"),
        ({"models": {"x": RidgeClassifier()}}, "has no predict_proba"),
        ({"folds": 1}, "folds must be a whole number of at least 2"),
        ({"folds": 2.5}, "folds must be a whole number of at least 2, got 2.5"),
        ({"folds": "5"}, "folds must be a whole number of at least 2, got '5'"),
        ({"seed": None}, "seed must be a whole number of at least 0, got None"),
        ({"jobs": 1.5}, "jobs must be a whole number of at least 1, got 1.5"),
        ({"max_seconds": "60"}, "max_seconds must be positive or None"),
        ({"repeats": 0}, "repeats must be a whole number of at least 1"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1"),
        ({"max_seconds": 0}, "max_seconds must be positive"),
        ({"inference": "magic"}, "inference must be one of laplace"),
        ({"missing": "guess"}, "missing must be one of"),
        ({"sample_weight": -np.ones(120)}, "weights must be finite and not negative"),
        ({"sample_weight": np.ones(3)}, "sample_weight must have shape"),
        ({"y": SIGNAL[:50]}, "y must have shape"),
        ({"y": np.where(NOISE, np.nan, 1.0)}, "y has .* missing values"),
        ({"y": np.zeros(120)}, "constant"),
        ({"y": np.where(NOISE, np.inf, 1.0)}, "the target 'y' holds an infinite value"),
        ({"y": pandas.date_range("2020-01-01", periods=120)}, "the target 'y' holds dates"),
        ({"y": np.arange(120.0)}, "if the values of the target are classes, say so: classes=True"),
        ({"X": X + 1j}, "complex numbers"),
        ({"X": np.full((120, 2), 1.0)}, "no column that varies"),
        ({"X": pandas.DataFrame({"when": ["2020-01-0" + str(k % 9 + 1) for k in range(120)]})}, "dates"),
        ({"X": np.where(X > 2, np.inf, X)}, "infinite"),
        ({"X": np.where(X > 2, np.nan, X), "missing": "refuse"}, "missing values"),
    ],
)  # fmt: skip
def test_bad_input(change, message):
    arguments = {"X": X, "y": SIGNAL, "models": QUICK} | change
    with warnings.catch_warnings(), pytest.raises(ValueError, match=message):
        warnings.simplefilter("ignore")
        predcp.compare(**arguments)


def test_every_name_has_words():
    assert set(default_models("binary")) | set(default_models("regression")) == set(MODEL_NAMES)


def table_of(**columns):
    return pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], **columns})


IDS = [f"P{number}" for number in range(len(X))]
DATES = pandas.date_range("2020-01-01", periods=len(X)).astype(str)


def test_all_columns_of_no_use_are_named_at_once_and_can_be_dropped():
    frame = table_of(patient=IDS, visit=DATES)
    with pytest.raises(ValueError, match="identifier") as error:
        predcp.compare(frame, SIGNAL, QUICK)
    assert "drop=['patient']" in str(error.value) and "drop=['visit']" in str(error.value)
    quick = {"models": QUICK, "folds": 2, "repeats": 1}
    found = predcp.compare(frame, SIGNAL, drop=["patient", "visit"], **quick)
    assert from_arrays(
        table_of(), SIGNAL, None, False, "impute", "t", drop="a"
    ).features.columns == ["b"]
    same = predcp.compare(table_of(), SIGNAL, **quick)
    for model in QUICK:
        assert found.scores[model]["brier"] == same.scores[model]["brier"]
    doubted = predcp.compare(table_of(told=SIGNAL), SIGNAL, ["base-rate"], folds=2, repeats=1)
    assert "Can this be right? The column told alone tells the target" in str(doubted)
    with pytest.raises(ValueError, match="drop names the column visits"):
        predcp.compare(frame, SIGNAL, QUICK, drop="visits")


def test_few_rows_that_a_column_tells_by_chance_raise_no_doubt():
    """Of six rows a column of noise separates the classes once in ten times; of thirty never."""
    chance = {"models": ["base-rate"], "folds": 2, "repeats": 1}
    few = predcp.compare(np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1], **chance)
    assert "Can this be right?" not in few.sentence
    many = predcp.compare(np.arange(30.0)[:, None], np.repeat([0, 1], 15), **chance)
    assert "Can this be right?" in many.sentence
    both = np.c_[np.arange(30.0), np.arange(30.0) ** 2]
    many = predcp.compare(both, np.repeat([0, 1], 15), **chance)
    assert "Each of the columns x0 and x1 tells the target of every row" in many.sentence


def test_the_report_says_what_was_left_out_and_what_the_target_is():
    counts = np.random.default_rng(0).poisson(2.0, 120)
    frame = table_of(same=1.0, empty=np.nan)
    models = {"base-rate": None, "broken": Failing()}
    with pytest.warns(UserWarning):
        found = predcp.compare(frame, counts, ["base-rate"], folds=2, repeats=1)
    assert "Left out, as they never vary: same, empty." in found.notes
    assert any("The target is taken as a number, with" in note for note in found.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = predcp.compare(X, SIGNAL, models, folds=2, repeats=1)
    assert found.sentence.endswith("Could not be fitted: broken.")


@pytest.mark.parametrize(
    ("leak", "target"),
    [
        (np.where(SIGNAL, "ill", "well"), SIGNAL),
        (SIGNAL + 0.1 * RANDOM.random(len(X)), SIGNAL),
        (3.0 - 2.0 * X[:, 2], X[:, 2]),
    ],
    ids=["category", "threshold", "line"],
)
def test_a_column_that_tells_the_target_is_doubted(leak, target):
    honest = table_of(town=["p", "q"] * (len(X) // 2))
    for frame, expected in ((table_of(outcome=leak), ["outcome"]), (honest, [])):
        assert leaks(from_arrays(frame, target, None, False, "impute", "t")) == expected


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_many_columns_at_once_tell_what_each_tells(task, monkeypatch):
    """Ties, leaks and noise, in blocks of columns; a gap takes the way of one column."""
    random = np.random.default_rng(0)
    score = random.normal(size=40)
    target = {
        "regression": score,
        "binary": score > 0,
        "multiclass": np.digitize(score, [-0.5, 0.5]),
    }
    y = target[task] if task == "regression" else target[task].astype(int)
    columns = np.column_stack(
        [score, -3.0 * score + 1.0, np.round(score), score + 0.01 * random.normal(size=40), y]
    )
    columns = np.c_[columns, random.integers(0, 3, (40, 8)), 1e300 * y]
    problem = from_arrays(columns, y, None, task != "regression", "impute", "t")
    one_by_one = [n for n, column in problem.features.items() if _leaks._tells(column, problem)]
    assert 2 < len(one_by_one) < 8
    for at_once in (1, 200, 10**6):
        monkeypatch.setattr(_leaks, "_AT_ONCE", at_once)
        assert leaks(problem) == one_by_one
    with_gap = problem.features.copy()
    with_gap.iloc[0, 0] = np.nan
    assert "x0" in leaks(replace(problem, features=with_gap))


def test_a_class_whose_rows_all_weigh_nothing_is_named():
    with pytest.raises(ValueError, match="class 1 has no row that counts"):
        predcp.compare(X, SIGNAL, QUICK, sample_weight=1.0 - SIGNAL)


def test_a_value_near_the_end_of_floating_point():
    """It is one value of a column that is scaled like any other; beyond, it is cut."""
    column = np.arange(20.0)
    column[3] = 1e300
    frame = pandas.DataFrame({"a": column, "b": np.arange(20.0)})
    for rows in (np.arange(20), np.arange(10, 20)):
        prepared = Preparation.fit(frame.iloc[rows], [], None)
        assert np.isfinite(prepared.transform(frame)).all()
    found = predcp.compare(np.c_[X, np.r_[1e300, X[1:, 0]]], SIGNAL, QUICK, folds=2, repeats=1)
    assert not found.failed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert leaks(from_arrays(frame, 2.0 * column / 1e300, None, False, "impute", "t")) == ["a"]
