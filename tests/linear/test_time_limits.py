"""Limits on time, by the work that is done: none of these tests depends on the speed of the machine."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from predcp.linear import (
    Auto,
    Laplace,
    LinearRegression,
    LogisticRegression,
    Ridge,
    Target,
    _gaussian,
    _laplace,
    _linear,
    _logistic,
    _quick_look,
    logistic_regression,
)
from predcp.linear import _auto as auto
from predcp.linear import _columns as columns
from predcp.linear._columns import Columns
from predcp.linear._condensed import Table, condense
from predcp.linear._convergence import Convergence
from predcp.linear._draws import Draws
from predcp.linear._long import long_of
from predcp.linear._quick_look import QuickLook

RANDOM = np.random.default_rng(0)


def table(rows, count, kind=np.float64, classes=2):
    x = RANDOM.standard_normal((rows, count)).astype(kind)
    return x, np.digitize(x[:, 0], [0.0, 0.7][: classes - 1])


CASES = {
    "twenty rows of three columns": table(20, 3),
    "wide, in single precision": table(30, 9000, np.float32),
    "long": table(30_000, 5, np.float32),
    "three classes": table(60, 4, classes=3),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", ["plain", "weights", "sparse"])
def test_without_time_no_model_is_read_and_one_fit_is_made(case, form, monkeypatch):
    """Beyond the limit: one scale, few draws, few rows or columns, and nothing is traced."""

    def traced(*given, **options):
        raise AssertionError("a model was traced after the limit on time")

    monkeypatch.setattr(_logistic, "_program", traced)
    sizes = []
    conditional = _quick_look.conditional

    def counted(likelihood, design, scales, start=None):
        sizes.append(design.size * min(design.shape))
        return conditional(likelihood, design, scales, start)

    monkeypatch.setattr(_quick_look, "conditional", counted)
    x, y = CASES[case]
    model = LogisticRegression("predcp", inference=Auto(max_seconds=1e-9))
    weights = np.ones(len(y)) if form == "weights" else None
    with pytest.warns(ConvergenceWarning, match="quick look"):
        model.fit(sparse.csr_array(x) if form == "sparse" else x, y, weights)
    assert model.draws_.figures["scales"] == len(sizes) == 1
    # Draws of few coefficients take no time.
    assert model.draws_.values["beta"].shape[1] == (20 if "wide" in case else 400)
    assert sizes[0] <= 1000 * 6 * 6
    assert model.score(x, y) > 0.5


def test_numbers_without_time(monkeypatch):
    monkeypatch.setattr(_linear, "_program", None)
    x, _ = CASES["long"]
    model = LinearRegression("predcp", inference=Auto(max_seconds=1e-9))
    with pytest.warns(ConvergenceWarning, match="quick look"):
        model.fit(x, x[:, 0] - x[:, 1])
    assert model.score(x, x[:, 0] - x[:, 1]) > 0.9


@pytest.mark.parametrize("slowness", [1.0, 10.0])
def test_beside_other_work_tracing_takes_longer(slowness, monkeypatch):
    """With five seconds left a model is traced, but not where the processor is shared by ten."""
    now = [0.0]

    def process_time():
        now[0] += 0.01
        return now[0]

    clock = SimpleNamespace(monotonic=lambda: slowness * now[0], process_time=process_time)
    monkeypatch.setattr(auto, "time", clock)
    traced = []

    def choice(self, target):
        traced.append(True)
        raise TimeoutError

    monkeypatch.setattr(Auto, "choice", choice)
    x, y = CASES["twenty rows of three columns"]
    target = Target(logistic_regression, (x, y), {"intercept": True}, family="bernoulli")
    (draws,) = Auto(max_seconds=5.0).sample(target)
    assert draws.sampler == "QuickLook"
    assert traced == ([True] if slowness == 1.0 else [])


def test_rows_are_not_read_after_the_limit(monkeypatch):
    x, y = CASES["long"]
    read = []
    arrays = Table.arrays
    monkeypatch.setattr(Table, "arrays", lambda self: (read.append(len(self.x)), arrays(self))[1])
    late = Table("bernoulli", x, y, None, True, deadline=-np.inf)
    with pytest.raises(TimeoutError, match="before the rows were read"):
        condense(late)
    assert not read

    target = Target(logistic_regression, (x, y), {}, family="bernoulli")
    long = long_of(target, target.data, 100, 0)
    long.read(True)
    centre = np.zeros(6)
    long._table = late
    assert not long.moved(centre + 5.0) and long.rounds == 1
    errors = long.errors(centre[None], {})
    assert np.isnan(errors["expansion_error"])
    values = {"beta": np.zeros((1, 20, 5))}
    found = Convergence.of(Draws(values, {}, None, 0.0, 0, errors), "Laplace")
    assert any("its error is not known" in words for words in found.warnings())
    assert any("an unknown error" in words for words in found.words())


@pytest.mark.parametrize(("seconds", "answers"), [(20_000.0, True), (3_000.0, False)])
def test_a_first_look_ends_in_time_where_each_step_takes_long(seconds, answers, monkeypatch):
    """A clock on which each fit of the coefficients takes a thousand seconds, as in a very wide table."""
    fits = []
    conditional = _laplace.conditional

    def slow(*given):
        fits.append(True)
        return conditional(*given)

    def monotonic():
        return time.monotonic() + 1000.0 * len(fits)

    clock = SimpleNamespace(monotonic=monotonic, perf_counter=time.perf_counter)
    monkeypatch.setattr(_laplace, "conditional", slow)
    for module in (_laplace, _gaussian):
        monkeypatch.setattr(module, "time", clock)
    x, y = table(20, 3)
    target = Target(logistic_regression, (x, y), {"prior": Ridge()}, family="bernoulli")
    look = Laplace(max_seconds=seconds)
    if answers:
        (draws,) = look.sample(target)
        assert 4 <= draws.values["beta"].shape[1] <= 15
        assert len(fits) <= 21
    else:
        with pytest.raises(TimeoutError, match="before the first draws"):
            look.sample(target)
        assert len(fits) <= 4


def test_more_time_is_more_rows_and_draws(monkeypatch):
    """What the quick look does grows with the limit, up to all that it can use."""
    rows = []
    conditional = _quick_look.conditional

    def counted(likelihood, design, scales):
        rows.append(len(design))
        return conditional(likelihood, design, scales)

    monkeypatch.setattr(_quick_look, "conditional", counted)
    monkeypatch.setattr(_quick_look, "_FREE", 0)
    x, y = table(30_000, 5)
    target = Target(logistic_regression, (x, y), {"intercept": True}, family="bernoulli")
    (little,) = QuickLook(max_seconds=1e-9).sample(target)
    assert rows == [1000] and little.values["beta"].shape[1] == 20
    (much,) = QuickLook(max_seconds=1e9).sample(target)
    assert rows[1:] == [20_000] * 8 and much.values["beta"].shape[1] == 400
    assert (little.figures["scales"], much.figures["scales"]) == (1, 8)


@pytest.mark.parametrize("shape", [(7, 5000), (5000, 7), (300, 300)])
@pytest.mark.parametrize("centre", [True, False])
def test_columns_are_the_same_in_tiles(shape, centre, monkeypatch):
    """Means, deviations and scores in closed form, each number read four times."""
    monkeypatch.setattr(columns, "_AT_ONCE", 1000)
    x = 1e6 + RANDOM.standard_normal(shape) * np.geomspace(1e-3, 1e3, shape[1])
    x[:, 3] = 5.0
    weights = RANDOM.integers(1, 4, shape[0]).astype(float)
    read = []
    over = columns._over

    def counted(x, work):
        for tile, found in over(x, work):
            read.append(x[tile].size)
            yield tile, found

    monkeypatch.setattr(columns, "_over", counted)
    found = Columns.fit(x, weights, centre)
    scores = found.transform(x)
    assert sum(read) == (4 if centre else 3) * x.size
    mean = np.average(x, axis=0, weights=weights) if centre else np.zeros(shape[1])
    scale = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weights))
    varying = np.ones(shape[1], bool)
    varying[3] = not centre
    np.testing.assert_array_equal(found.varying, varying)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.scale[varying], scale[varying], rtol=1e-6)
    wanted = (x - found.mean)[:, varying] / found.scale[varying]
    np.testing.assert_allclose(scores, wanted, rtol=1e-12, atol=1e-12)
