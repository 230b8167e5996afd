"""`inference="auto"`: the right sampler, and a limit on time that is kept and said."""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.clock import slowness

from predcp.linear import (
    Auto,
    Gibbs,
    Laplace,
    LinearRegression,
    LogisticRegression,
    Nuts,
    Ridge,
    Target,
    logistic_regression,
)
from predcp.linear import _auto as auto
from predcp.linear._columns import Columns
from predcp.linear._priors import PRESETS

GENERATOR = np.random.default_rng(0)
X = GENERATOR.standard_normal((30, 3))
Y = X @ [2.0, 0.0, -1.0] + GENERATOR.standard_normal(30)


@pytest.mark.parametrize(
    ("rows", "columns", "prior", "sampler"),
    [
        (30, 3, PRESETS["predcp"], Nuts),
        (8, 8, PRESETS["predcp"], Gibbs),
        (8, 2000, PRESETS["half-cauchy"], Gibbs),
        (8, 20, Ridge(), Nuts),
        (50_000, 2, PRESETS["predcp"], Laplace),
    ],
)
def test_the_table_decides(rows, columns, prior, sampler):
    x = GENERATOR.standard_normal((rows, columns))
    y = GENERATOR.integers(0, 2, rows)
    data = jnp.asarray(x), jnp.asarray(y)
    target = Target(logistic_regression, data, {"prior": prior}, family="bernoulli")
    chosen = Auto(draws=300, seed=3).choice(target)
    assert type(chosen) is sampler
    if sampler is Laplace:
        assert (chosen.draws, chosen.seed) == (1200, 3)
        # A model that is no regression is not condensed.
        assert type(Auto().choice(replace(target, family=None))) is Nuts
        return
    assert (chosen.draws, chosen.max_draws, chosen.seed) == (300, 2400, 3)
    assert ("beta" in chosen.monitor) == (columns <= 1000)


def test_the_rule_is_what_was_measured():
    """Wherever one sampler needed clearly less time than the other, the rule takes it."""
    path = Path(__file__).parents[2] / "benchmarks" / "results" / "auto.json"
    stored = json.loads(path.read_text())
    needed = {}
    for name, cell in stored.items():
        family, table, sampler = name.split(", ")
        needed.setdefault((family, *map(int, table.split(" x "))), {})[sampler] = cell["needed"]
    assert len(needed) > 8
    for (family, rows, columns), seconds in needed.items():
        quicker, slower = sorted(seconds, key=seconds.get)
        if seconds[slower] > 1.2 * seconds[quicker]:
            outcome = "normal" if family == "linear" else "bernoulli"
            lines = [rule for rule in auto.RULES if rule.applies(rows, columns, outcome)]
            assert lines[0].sampler.__name__ == quicker, (family, rows, columns)


def test_it_is_the_default_and_has_a_name():
    assert LinearRegression().inference == LogisticRegression().inference == "auto"
    with pytest.raises(ValueError, match="draws must be at least 1"):
        Auto(draws=0)
    with pytest.raises(ValueError, match="max_seconds"):
        Auto(max_seconds=-1.0)


def test_without_time_to_compile_the_answer_is_a_quick_look():
    model = LinearRegression("predcp", inference=Auto(draws=200, max_seconds=1e-3))
    began = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="quick look with one scale"):
        model.fit(X, Y)
    assert time.monotonic() - began < 2.0 * slowness()
    assert model.draws_.sampler == "QuickLook" and not model.convergence_.sampled
    # Thirty rows of unit noise.
    assert np.abs(model.coef_ - [2.0, 0.0, -1.0]).max() < 0.6
    assert model.posterior_["posterior"]["coef"].shape == (1, 200, 3)
    assert "quick look" in str(model.summary())


def test_the_clock_starts_with_the_fit(monkeypatch):
    limits = []

    @dataclass(frozen=True)
    class Asked(Laplace):
        def sample(self, target, progress=None):
            limits.append(self.max_seconds)
            raise TimeoutError

    fit = Columns.fit.__func__

    def slow(cls, *given):
        time.sleep(0.2)
        return fit(cls, *given)

    monkeypatch.setattr(Columns, "fit", classmethod(slow))
    for limit in (100.0, 0.1, None):
        with pytest.raises(TimeoutError):
            LogisticRegression("ridge", inference=Asked(max_seconds=limit)).fit(X, Y > 0)
    assert 90.0 < limits[0] <= 99.8 and 0.0 < limits[1] < 0.01 and limits[2] is None


def test_no_first_look_is_begun_that_would_be_late(monkeypatch):
    """Reading a wide table takes a part of the time that a search for the mode has no use for."""
    monkeypatch.setattr(auto, "_READINGS", 1e12)
    monkeypatch.setattr(Laplace, "sample", None)
    x = GENERATOR.standard_normal((20, 300))
    model = LogisticRegression("predcp", inference=Auto(draws=20, max_seconds=60.0))
    with pytest.warns(ConvergenceWarning, match="quick look"):
        model.fit(x, x[:, 0] > 0)


def test_a_first_look_is_called_one(monkeypatch):
    monkeypatch.setattr(auto, "_PREPARATIONS", 1e9)
    seen = []
    model = LinearRegression(
        "ridge",
        inference=Auto(draws=50, max_seconds=600.0),
        progress=lambda done, total, words: seen.append(words),
    )
    with pytest.warns(ConvergenceWarning, match="first look by Laplace's method"):
        model.fit(X, Y)
    assert model.draws_.sampler == "Laplace" and not model.convergence_.sampled
    assert set(seen) == {
        "quick look",
        "first look: compiling",
        "first look: searching for the mode",
        "first look: drawing",
    }
    same = LinearRegression("ridge", inference=Laplace(draws=50)).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, same.coef_)


def test_a_limit_on_time_cuts_chains_and_says_so():
    # Compiled beforehand, so that a second is enough for a warm-up and not for all draws.
    x, y = jnp.asarray(X), jnp.asarray((Y > 0).astype(int))
    target = Target(logistic_regression, (x, y), {"prior": Ridge()})
    Auto(draws=20, max_seconds=600.0).sample(target)
    limit = 6.0
    began = time.monotonic()
    (draws,) = Auto(draws=10**5, max_seconds=limit).sample(target)
    assert time.monotonic() - began < limit + 2.0 * slowness()
    assert draws.sampler == "Nuts" and draws.missing > 0
    assert draws.values["beta"].shape[1] + draws.missing == 10**5


@pytest.mark.long
@pytest.mark.parametrize("model", [LinearRegression, LogisticRegression])
def test_four_hundred_rows_of_ten_columns(model):
    """R-hat below 1.01 in under 20 seconds on two cores: 40 of a processor."""
    generator = np.random.default_rng(1)
    x = generator.standard_normal((400, 10))
    predictor = x[:, 0] - 0.5 * x[:, 1]
    noisy = predictor + generator.logistic(size=400)
    y = noisy if model is LinearRegression else noisy > 0
    began = time.process_time()
    fitted = model().fit(x, y)
    assert time.process_time() - began < 40.0
    assert fitted.convergence_.rhat < 1.01 and not fitted.convergence_.missing
