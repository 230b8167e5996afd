"""`inference="auto"`: the right sampler, and a limit on time that is kept and said."""

import time

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

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
    ],
)
def test_the_table_decides(rows, columns, prior, sampler):
    x = GENERATOR.standard_normal((rows, columns))
    y = GENERATOR.integers(0, 2, rows)
    target = Target(logistic_regression, (jnp.asarray(x), jnp.asarray(y)), {"prior": prior})
    chosen = Auto(draws=300, seed=3).choice(target)
    assert type(chosen) is sampler
    assert (chosen.draws, chosen.max_draws, chosen.seed) == (300, 2400, 3)
    assert ("beta" in chosen.monitor) == (columns <= 1000)


def test_it_is_the_default_and_has_a_name():
    assert LinearRegression().inference == LogisticRegression().inference == "auto"
    with pytest.raises(ValueError, match="draws must be at least 1"):
        Auto(draws=0)
    with pytest.raises(ValueError, match="max_seconds"):
        Auto(max_seconds=-1.0)


def test_too_little_time_ends_with_a_first_look_that_is_called_one():
    seen = []
    model = LinearRegression(
        "ridge",
        inference=Auto(draws=50, max_seconds=1e-3),
        progress=lambda done, total, words: seen.append(words),
    )
    with pytest.warns(ConvergenceWarning, match="first look by Laplace's method"):
        model.fit(X, Y)
    assert model.draws_.sampler == "Laplace" and not model.convergence_.sampled
    assert set(seen) == {
        "first look: compiling",
        "first look: searching for the mode",
        "first look: drawing",
    }
    same = LinearRegression("ridge", inference=Laplace(draws=50)).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, same.coef_)


def test_a_limit_on_time_cuts_chains_and_says_so(monkeypatch):
    # Compiled beforehand, so that a second is enough for a warm-up and not for all draws.
    monkeypatch.setattr(auto, "_START_SECONDS", 0.1)
    x, y = jnp.asarray(X), jnp.asarray((Y > 0).astype(int))
    target = Target(logistic_regression, (x, y), {"prior": Ridge()})
    Auto(draws=20, max_seconds=600.0).sample(target)
    limit = 6.0
    began = time.monotonic()
    (draws,) = Auto(draws=10**5, max_seconds=limit).sample(target)
    assert time.monotonic() - began < limit + 2.0
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
