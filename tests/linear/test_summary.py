"""The summary's table, and words for what went wrong."""

import numpy as np
import pandas
import pytest
from sklearn.exceptions import ConvergenceWarning

from predcp._numerics.chains import bulk_ess, rank_normalised_rhat
from predcp.linear import Draws, Laplace, LinearRegression, LogisticRegression
from predcp.linear._convergence import Convergence

GENERATOR = np.random.default_rng(0)
FRAME = pandas.DataFrame(GENERATOR.standard_normal((40, 15)), columns=list("abcdefghijklmno"))
Y = 100.0 + 5.0 * FRAME["c"] - 3.0 * FRAME["k"] + GENERATOR.standard_normal(40)


class Replay:
    """An inference that hands back draws made beforehand."""

    def __init__(self, chains=4, draws=500, apart=0.0, depth=10, **statistics):
        generator = np.random.default_rng(1)
        noise = generator.standard_normal((chains, draws, 15))
        beta = np.eye(15)[2] * 2.0 - np.eye(15)[10] + 0.1 * noise
        beta[0] += apart
        values = {
            "beta": beta,
            "alpha": 0.1 * generator.standard_normal((chains, draws)),
            "log_tau": generator.standard_normal((chains, draws)),
            "sigma": np.exp(0.1 * generator.standard_normal((chains, draws))),
        }
        quiet = {
            "diverging": np.zeros((chains, draws), bool),
            "n_steps": np.full((chains, draws), 7),
        }
        self.draws = Draws(values, {**quiet, **statistics}, depth, 1.0, 100)

    def sample(self, target, progress=None):
        return [self.draws]


def test_the_table_is_in_the_units_of_the_data():
    model = LinearRegression(inference=Replay()).fit(FRAME, Y)
    table = model.summary(3).table
    assert list(table.index[:4]) == ["intercept", "sigma", "tau", "c"]
    assert table.index[4] == "k" and len(table) == 6
    draws = 2.0 * Y.std(ddof=0) / FRAME["c"].std(ddof=0)
    assert table.loc["c", "median"] == pytest.approx(draws, rel=0.01)
    coefficient = model._original_units()["coef"][:, :, 2]
    assert table.loc["c", "5%"] == pytest.approx(np.quantile(coefficient, 0.05))
    assert table.loc["c", "rhat"] == pytest.approx(rank_normalised_rhat(coefficient))
    assert table.loc["c", "ess"] == pytest.approx(bulk_ess(coefficient))


def test_a_few_far_draws_move_neither_the_figures_nor_the_ranks():
    """A heavy tail: the mean leaves its own interval, and would put a column of noise first."""
    inference = Replay()
    inference.draws.values["beta"][0, :3, 7] = 1e6
    model = LinearRegression(inference=inference).fit(FRAME, Y)
    table = model.summary(3, size=0.5).table
    assert list(table.index[3:5]) == ["c", "k"]
    coefficients = model._original_units()["coef"]
    low, high = np.quantile(coefficients[:, :, 7], [0.05, 0.95])
    assert not low < coefficients[:, :, 7].mean() < high
    for name, row in table.iterrows():
        assert row["5%"] <= row["median"] <= row["95%"], name
    beta = inference.draws.values["beta"][:, :, 10]
    assert table.loc["k", "P(>0)"] == np.mean(beta > 0.0)
    assert table.loc["k", "P(large)"] == np.mean(np.abs(beta) > 0.5)
    assert np.isnan(table.loc["tau", "P(>0)"])
    with pytest.raises(ValueError, match="size must be a positive number"):
        model.summary(size=0.0)


def test_the_true_columns_of_a_wide_table_are_shown():
    """30 x 2000, two columns that matter: both are among the ten shown."""
    generator = np.random.default_rng(3)
    x = generator.standard_normal((30, 2000))
    y = 5.0 * x[:, 11] - 4.0 * x[:, 1234] + 0.5 * generator.standard_normal(30)
    model = LinearRegression("half-cauchy", inference=Laplace(draws=200)).fit(x, y)
    assert {"x11", "x1234"} <= set(model.summary().table.index)


def test_which_class_a_coefficient_favours_is_said():
    x = FRAME.to_numpy()
    model = LogisticRegression("ridge", inference=Laplace(draws=50))
    summary = model.fit(x, np.where(Y > 100, "well", "ill")).summary()
    assert "a positive coefficient favours class well over class ill" in str(summary)
    assert summary.table.loc["x2", "P(>0)"] > 0.9
    several = model.fit(x, np.digitize(Y, np.quantile(Y, [0.3, 0.7]))).summary()
    assert "favours that class" in str(several) and "x2[0]" in several.table.index
    assert "larger outcome" in str(
        LinearRegression("ridge", inference=Laplace(draws=50)).fit(x, Y).summary()
    )


def test_a_good_fit_has_no_warnings_and_says_so(recwarn):
    model = LinearRegression(inference=Replay()).fit(FRAME, Y)
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]
    summary = model.summary()
    assert summary.warnings == ()
    for words in (
        "4 chains of 500 draws",
        "R-hat at most 1.0",
        "0% divergent steps",
        "10 of 15 coefficients are shown",
    ):
        assert words in str(summary), words
    assert "<table" in summary._repr_html_()


BAD = {
    "R-hat": (Replay(apart=1.0), "have not settled on the same answer"),
    "divergences": (
        Replay(diverging=np.arange(2000).reshape(4, 500) % 50 == 0),
        r"2.0% of the steps went astray .*target_acceptance=0.95",
    ),
    "depth": (Replay(n_steps=np.full((4, 500), 1023)), "100% of the steps were cut .*max_depth=12"),
    "few": (Replay(draws=3), "3 draws a chain are too few"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_goes_wrong_is_said_with_a_cure(name):
    inference, words = BAD[name]
    with pytest.warns(ConvergenceWarning, match=words):
        model = LinearRegression(inference=inference).fit(FRAME, Y)
    assert model.summary().warnings
    assert "Warning: " in str(model.summary())


def test_chains_that_never_move_are_not_called_converged():
    draws = Replay().draws
    draws.values["beta"][:] = 1.0
    convergence = Convergence.of(draws)
    assert np.isnan(convergence.rhat)
    assert any("have not settled" in words for words in convergence.warnings())


def test_an_approximation_is_called_one():
    y = np.where(Y > 100, "yes", "no")
    model = LogisticRegression("ridge", inference=Laplace(draws=20)).fit(FRAME, y)
    assert "approximation" in str(model.summary())
    assert "rhat" not in model.summary().table.columns


def test_too_few_effective_draws_are_told_with_how_many_to_take():
    words = Convergence(True, 4, 1000, 1.005, ess_bulk=240.0, ess_tail=300.0).warnings()
    assert len(words) == 1
    assert "worth only 240 independent ones" in words[0] and "Nuts(draws=2000)" in words[0]


def test_a_limit_on_time_is_said():
    words = Convergence(True, 4, 300, 1.001, 500.0, 500.0, missing=1700).warnings()
    assert len(words) == 1 and "1700 steps early, with 300 draws kept" in words[0]


def test_an_unfinished_search_is_told():
    few = Convergence(True, 4, 1000, 1.02, 240.0, 300.0, sampler="Gibbs").warnings()
    assert "inference=Gibbs(warmup=2000, draws=2000)" in few[0]
    words = Convergence(False, 1, 100, slope=0.5).warnings()
    assert len(words) == 1 and "did not finish" in words[0]


def test_a_quantity_that_left_floating_point_is_an_error_not_a_nan():
    inference = Replay()
    inference.draws.values["beta"][0, 0, 0] = np.nan
    with pytest.raises(FloatingPointError, match="draws of beta left floating point"):
        LinearRegression(inference=inference).fit(FRAME, Y)
