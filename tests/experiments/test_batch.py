"""Cells of one group in one call, the others one by one."""

import sys
import types
from dataclasses import replace

import pytest

from predcp.experiments import Cell, CellModel, Context, Result, Store, run
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

    module.run, module.model = one, CellModel(one, many)
    monkeypatch.setitem(sys.modules, "grouped_model", module)
    return module


def cells(prior="a", count=3):
    return [Cell("d", "grouped_model:model", prior, "exact", split) for split in range(count)]


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
    grid = [replace(cell, model="grouped_model:run") for cell in cells()]
    outcomes = execute_many(grid, Context())
    assert model.calls == [[0], [1], [2]]
    assert [outcome.metrics[0][2] for outcome in outcomes] == [0.0, 1.0, 2.0]


def test_nothing_waiting_nothing_collected():
    assert Batch(Context()).collect(0.0) == []


def test_together_limits_the_cells_of_a_program(model, tmp_path):
    run("grid", cells(count=5), tmp_path, engine="batch", together=2)
    assert model.calls == [[0, 1], [2, 3], [4]]
    with pytest.raises(ValueError, match="together must be at least 1, got 0"):
        run("grid", cells(), tmp_path, engine="batch", together=0)


def test_a_model_may_limit_and_group_its_cells_itself(model, tmp_path):
    many = model.model.run_many
    model.model = CellModel(model.run, many, group_of=lambda cell: cell.data, together=4)
    run("grid", [*cells("a"), *cells("b")], tmp_path, engine="batch")
    assert model.calls == [[0, 1, 2, 0], [1, 2]]
