"""The grid of the pooled network: what a search chooses, and which cells follow."""

from pathlib import Path

import pytest

from predcp.experiments import Store
from predcp.paper._pooled_grids import (
    CHOSEN,
    PRIORS,
    SEARCHED,
    TABLES,
    chosen_by,
    table3_pooled,
    table3_pooled_search,
)
from predcp.paper._table3_cells import cell_network, cell_settings, group_of

RESULTS = Path(__file__).parents[2] / "results"


def test_the_best_validation_accuracy_chooses_the_setting():
    cells = [cell for cell in table3_pooled_search() if cell.data == "fc100-1shot"]
    exact = next(cell for cell in cells if cell.settings["precision"] == "default")
    wanted = next(
        cell
        for cell in cells
        if (cell.settings["inner_rate"], cell.settings["final_rate"]) == (0.1, 1.0)
    )
    scores = {cell: 30.0 for cell in cells} | {wanted: 31.0, exact: 40.0}
    chosen = chosen_by(scores.items(), "fc100-1shot")
    assert chosen == {
        **{"inner_rate": 0.1, "final_rate": 1.0, "weight_decay": 0.0},
        **{"inner_steps": 5, "inner_steps_test": 10},
    }
    with pytest.raises(ValueError, match="no cells of omniglot-1shot"):
        chosen_by(scores.items(), "omniglot-1shot")


def test_settings_are_those_that_the_stored_search_chose():
    found = Store(RESULTS, "table3-pooled-search").records().finished
    accuracy = [
        (record.cell, value)
        for record in found
        for part, name, value in record.metrics
        if (part, name) == ("validation", "accuracy")
    ]
    for data in SEARCHED:
        assert chosen_by(accuracy, data).items() <= dict(CHOSEN[data]).items()
    for shots in ("1shot", "5shot"):
        assert CHOSEN[f"cifar100-by-class-{shots}"] == CHOSEN[f"fc100-{shots}"]


def test_all_priors_have_the_chosen_setting():
    cells = table3_pooled({"fc100-1shot": {"inner_rate": 0.1, "iterations": 6000}})
    assert len(cells) == len(PRIORS) * 5 and len({group_of(cell) for cell in cells}) == 1
    assert {cell_settings(cell).inner_rate for cell in cells} == {0.1}
    assert set(CHOSEN) <= set(TABLES)


def test_networks_pool():
    by_data = {cell.data: cell_network(cell) for cell in table3_pooled_search()}
    assert {network.pool for network in by_data.values()} == {True}
    assert by_data["omniglot-1shot"].channels == 64 and by_data["fc100-5shot"].channels == 32
