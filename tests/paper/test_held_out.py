"""Gaps, validation rows, noise and shifts; and fits of residual networks on them."""

import numpy as np
import pytest

from predcp.data import Split, load
from predcp.experiments import Cell, Context
from predcp.paper._held_out import SHIFT, gap_split, moved_inputs, validation_split
from predcp.paper._table2_cells import group_of, run_many

SHORT = {"width": 4, "epochs": 2, "samples": 2, "prediction_samples": 4, "batch": 128}


def test_the_middle_third_of_a_feature_is_held_out():
    table = load("diabetes")
    split = gap_split(table, 2)
    inside, outside = split.test.features[:, 2], split.train.features[:, 2]
    assert len(inside) == 294 - 147 and len(inside) + len(outside) == 442
    low = outside[outside <= inside.min()]
    assert len(low) == 147 and (outside[outside > inside.min()] >= inside.max()).all()
    # A feature of two values has no gap, but as many rows; ties are broken in the same way each time.
    sex = gap_split(table, 1)
    assert len(sex.test) == len(inside)
    np.testing.assert_array_equal(sex.test.target, gap_split(table, 1).test.target)
    with pytest.raises(ValueError, match="split must be below 10"):
        gap_split(table, 10)


def test_validation_rows_are_training_rows():
    table = load("diabetes")
    rows = np.arange(442)
    whole = Split(table.rows(rows[:400]), table.rows(rows[:0]), table.rows(rows[400:]))
    split = validation_split(whole)
    np.testing.assert_array_equal(split.test.target, table.target[360:400])
    np.testing.assert_array_equal(split.train.target, table.target[:360])


def test_inputs_move_by_half_a_deviation():
    x = np.zeros((2000, 3), np.float32)
    moved = moved_inputs(x, 1)
    assert np.std(moved["noise"]) == pytest.approx(SHIFT, rel=0.05)
    np.testing.assert_array_equal(np.abs(moved["shift"]), np.full_like(x, SHIFT))
    assert (moved["shift"] == moved["shift"][0]).all()
    np.testing.assert_array_equal(moved["noise"], moved_inputs(x, 1)["noise"])
    assert (moved["noise"] != moved_inputs(x, 2)["noise"]).any()


def test_temperatures_and_starts_share_a_program():
    def cells(prior, **changes):
        settings = SHORT | {"rows": "gap", "moved": True} | changes
        return [Cell("diabetes", "resnet", prior, "vi", 2, settings=settings)]

    own = [
        *cells("predcp"),
        *cells("predcp", temperature=0.01),
        *cells("predcp", start=0.01),
        *cells("predcp-half-cauchy", warmup=5),
    ]
    assert len({group_of(cell) for cell in own}) == 1
    results = run_many(own, Context())
    assert set(results[0].metrics) == {"test", "noise", "shift", "train"}
    taus = [result.convergence["layer1_tau"] for result in results]
    assert taus[2] == pytest.approx(0.01, rel=0.1) and taus[0] == pytest.approx(1.0, rel=0.1)
    # On two epochs the divergence counts little, and a hundredth of it less.
    kl = [result.convergence["kl"] for result in results]
    assert kl[1] != kl[0]
    with pytest.raises(ValueError, match="rows must be one of standard, gap, validation"):
        run_many([Cell("diabetes", "resnet", "predcp", "vi", settings={"rows": "all"})], Context())


def test_validation_rows_are_named_so():
    settings = SHORT | {"rows": "validation"}
    cell = Cell("diabetes", "resnet", "fixed-1", "vi", settings=settings)
    (result,) = run_many([cell], Context())
    assert set(result.metrics) == {"validation", "train"}
