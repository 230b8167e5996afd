"""Cells of one group in one call, the others one by one."""

import sys
import types

import pytest

from predcp.experiments import Cell, Context, Result, Store, run
from predcp.experiments._batch import Batch, execute_many


@pytest.fixture
def model(monkeypatch):
    """A model that records how its cells were run."""
    module = types.ModuleType("grouped_model")
    module.calls = []

    def one(cell, context):
        module.calls.append([cell.split])
        return Result({"test": {"value": float(cell.split)}})

    def many(cells, context):
        module.calls.append([cell.split for cell in cells])
        if any(cell.prior == "bad" for cell in cells):
            raise RuntimeError("no such prior")
        return [Result({"test": {"value": float(cell.split)}}) for cell in cells]

    one.__module__ = many.__module__ = "grouped_model"
    module.run, module.run_many = one, many
    monkeypatch.setitem(sys.modules, "grouped_model", module)
    return module


def cells(prior="a", count=3):
    return [Cell("d", "grouped_model:run", prior, "exact", split) for split in range(count)]


def test_groups_differ_in_their_split_alone(model, tmp_path):
    grid = [*cells("a"), *cells("b")]
    tally = run("grid", grid, tmp_path, engine="batch")
    assert (tally.finished, tally.failed) == (6, 0)
    assert model.calls == [[0, 1, 2], [0, 1, 2]]
    values = {
        record.cell.split: record.metrics for record in Store(tmp_path, "grid").records().finished
    }
    assert values[2] == (("test", "value", 2.0),)


def test_a_group_that_fails_is_recorded_and_the_grid_goes_on(model, tmp_path):
    tally = run("grid", [*cells("bad"), *cells("a")], tmp_path, engine="batch")
    assert (tally.finished, tally.failed) == (3, 3)
    assert "no such prior" in (Store(tmp_path, "grid").records().failed[0].traceback or "")


def test_a_model_without_run_many_runs_one_by_one(model):
    del model.run_many
    outcomes = execute_many(cells(), Context())
    assert model.calls == [[0], [1], [2]]
    assert [outcome.metrics[0][2] for outcome in outcomes] == [0.0, 1.0, 2.0]


def test_nothing_waiting_nothing_collected():
    assert Batch(Context()).collect(0.0) == []
