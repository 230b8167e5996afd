import json
import math
import sys

import numpy as np
import pytest

from predcp.experiments import (
    Cell,
    Record,
    flags,
    mean_and_error,
    rank_normalised_rhat,
    summarise,
)

ENVIRONMENT = {"device": "CPU", "commit": "c", "python": "3", "versions": {}}
FIELDS = ["data", "prior", "inference", "metric", "mean", "se", "splits", "seconds"]
FIELDS += ["rhat_max", "divergences", "device"]


def record(
    prior: str,
    split: int,
    value: float,
    seed: int = 0,
    metric: str = "log_likelihood",
    convergence: dict[str, float | None] | None = None,
    settings: dict | None = None,
    seconds: float = 1.0,
) -> Record:
    cell = Cell("colon", "logistic", prior, "nuts", split, seed, settings or {})
    metrics = (("test", metric, value),)
    return Record(cell, seconds, ENVIRONMENT, "again", metrics, convergence or {})


def test_mean_and_standard_error_over_splits():
    values = np.random.default_rng(0).normal(size=20)
    rows = summarise([record("ecp", split, v) for split, v in enumerate(values)]).rows
    assert len(rows) == 1
    np.testing.assert_allclose(rows[0].mean, values.mean())
    np.testing.assert_allclose(rows[0].se, values.std(ddof=1) / np.sqrt(20))
    assert (rows[0].splits, rows[0].seconds) == (20, 1.0)


def test_seeds_are_averaged_within_splits_before_the_error():
    values = np.random.default_rng(1).normal(size=(5, 3))
    records = [record("ecp", s, values[s, r], seed=r) for s in range(5) for r in range(3)]
    row = summarise(records).rows[0]
    np.testing.assert_allclose(row.mean, values.mean())
    np.testing.assert_allclose(row.se, values.mean(axis=1).std(ddof=1) / np.sqrt(5))
    assert row.splits == 5


def test_seeds_are_the_unit_where_there_is_one_split():
    values = [0.40, 0.44, 0.45]
    row = summarise([record("ecp", 0, v, seed=r) for r, v in enumerate(values)]).rows[0]
    np.testing.assert_allclose(row.se, np.std(values, ddof=1) / np.sqrt(3))
    assert row.splits == 1


def test_one_value_has_no_error():
    assert mean_and_error([2.5]) == (2.5, None)


def test_convergence_of_a_row():
    figures = [{"rhat_max": 1.002, "divergences": 0.0}, {"rhat_max": 1.3, "divergences": 0.04}]
    records = [record("ecp", s, 0.0, convergence=f) for s, f in enumerate(figures)]
    summary = summarise(records)
    assert (summary.rows[0].rhat_max, summary.rows[0].divergences) == (1.3, 0.02)
    assert summary.flagged["colon", "ecp", "nuts"] == 1


def test_json_rows_have_exactly_the_documented_fields():
    unfinished = {"rhat_max": None, "divergences": 0.5}
    rows = summarise([record("ecp", 0, math.nan, convergence=unfinished)]).rows
    values = rows[0].to_json()
    assert list(values) == FIELDS
    assert (values["mean"], values["se"]) == (None, None)
    # A chain that never moved must not read as converged.
    assert values["rhat_max"] == sys.float_info.max
    json.loads(json.dumps(values, allow_nan=False))


def test_paired_differences_use_common_splits_and_the_right_sign():
    first = {0: -0.50, 1: -0.60, 2: -0.7001, 3: -0.9}
    second = {0: -0.55, 1: -0.58, 2: -0.7000, 9: -0.1}
    records = [record("a", s, v) for s, v in first.items()]
    records += [record("b", s, v) for s, v in second.items()]
    pair = summarise(records).pairs[0]
    differences = [0.05, -0.02, -0.0001]
    np.testing.assert_allclose(pair.difference, np.mean(differences))
    np.testing.assert_allclose(pair.se, np.std(differences, ddof=1) / np.sqrt(3))
    assert (pair.wins, pair.ties, pair.losses) == (1, 1, 1)
    worse = summarise(
        [record("a", 0, 3.0, metric="rmse"), record("b", 0, 2.0, metric="rmse")]
    ).pairs[0]
    assert (worse.difference, worse.wins, worse.losses) == (-1.0, 0, 1)


def test_different_settings_never_share_a_row():
    records = [record("ecp", s, float(w), settings={"width": w}) for s in (0, 1) for w in (10, 50)]
    rows = summarise(records).rows
    assert [(row.prior, row.mean) for row in rows] == [
        ("ecp[width=10]", 10.0),
        ("ecp[width=50]", 50.0),
    ]


@pytest.mark.parametrize(
    ("inference", "convergence", "expected"),
    [
        ("nuts", {"rhat_max": 1.004, "divergences": 0.0}, []),
        ("nuts", {"rhat_max": 1.4, "divergences": 0.016}, ["R-hat 1.40", "1.6% divergent"]),
        ("nuts", {}, ["no R-hat"]),
        ("nuts", {"rhat_max": None}, ["R-hat not finite"]),
        (
            "nuts",
            {"rhat_max": 1.0, "depth_saturation": 0.96},
            ["96.0% at greatest depth"],
        ),
        ("vi", {}, []),
    ],
)
def test_flags(inference, convergence, expected):
    assert flags(inference, convergence) == expected


def test_rhat_tells_mixed_chains_from_stuck_ones():
    generator = np.random.default_rng(0)
    good = generator.normal(size=(4, 1000, 2))
    assert (np.abs(rank_normalised_rhat(good) - 1) < 0.005).all()
    shifted = good + np.arange(4)[:, None, None]
    assert (rank_normalised_rhat(shifted) > 1.3).all()
    # Equal locations, different spreads: only the folded half sees it.
    spread = good * np.array([1.0, 1.0, 1.0, 6.0])[:, None, None]
    assert (rank_normalised_rhat(spread) > 1.05).all()
    # Heavy tails without a variance do not disturb ranks.
    cauchy = generator.standard_cauchy(size=(4, 1000))
    assert abs(rank_normalised_rhat(cauchy) - 1) < 0.01
    assert np.isnan(rank_normalised_rhat(np.ones((2, 10))))


def test_rhat_value_of_a_fixed_series():
    # From ArviZ (method "rank") on the same array.
    draws = np.random.default_rng(5).normal(size=(3, 101)) + np.array([[0.0], [0.2], [0.5]])
    np.testing.assert_allclose(rank_normalised_rhat(draws), 1.0616296947146044, rtol=1e-10)
    with pytest.raises(ValueError, match="draws must have shape"):
        rank_normalised_rhat(np.ones(10))
