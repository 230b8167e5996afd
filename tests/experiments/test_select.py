import pytest

from predcp.data import DataError
from predcp.experiments import (
    SelectionError,
    experiment_cells,
    parse_numbers,
    place_on_data,
    select,
    with_network,
)
from predcp.paper import EXPERIMENTS


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("3", [0, 1, 2]), ("0,3", [0, 3]), ("2-4", [2, 3, 4]), ("0,5-6", [0, 5, 6]), ("7-7", [7])],
)
def test_numbers(text, numbers):
    assert parse_numbers(text, "splits") == numbers


@pytest.mark.parametrize("text", ["", "a", "0", "4-2", "-1", "1,,2"])
def test_bad_numbers_are_refused(text):
    with pytest.raises(SelectionError, match="splits must be like 5, 0,3 or 2-4"):
        parse_numbers(text, "splits")


def test_selection():
    cells = EXPERIMENTS["table1"]()
    chosen = select(cells, data=["c*"], prior=["ecp"], inference=["mcmc"], splits="3")
    assert [(cell.data, cell.split) for cell in chosen] == [("colon", s) for s in range(3)]
    seeded = select(chosen, seeds="1-2")
    assert {cell.seed for cell in seeded} == {1, 2} and len(seeded) == 6
    assert select(cells, keys=[chosen[1].key[:10]]) == [chosen[1]]
    with pytest.raises(SelectionError, match=r"no prior is called 'epc' here; there are: ecp"):
        select(cells, prior=["epc"])
    with pytest.raises(SelectionError, match="splits go from 0 to 19"):
        select(cells, splits="30")
    with pytest.raises(SelectionError, match="no cell's key begins with zz"):
        select(cells, keys=["zz"])


def test_a_grid_on_other_data(tmp_path):
    cells = EXPERIMENTS["table1"]()
    moved = place_on_data(cells, ["breast-wisconsin", "colon"], None)
    assert {cell.data for cell in moved} == {"breast-wisconsin", "colon"}
    assert len(moved) == 2 * 2 * 3 * 20
    path = tmp_path / "mine.csv"
    path.write_text("a,y\n1,0\n2,1\n")
    on_file = place_on_data(cells, [str(path)], "y")
    assert len(on_file) == 2 * 3 * 20
    path.write_text("a,y\n1,0\n2,1\n3,1\n")
    assert not set(on_file) & set(place_on_data(cells, [str(path)], "y"))
    with pytest.raises(DataError, match="name its target column"):
        place_on_data(cells, [str(path)], None)
    with pytest.raises(DataError, match="there is no file"):
        place_on_data(cells, ["absent.csv"], "y")
    with pytest.raises(DataError, match="lacks the column z; it has: a, y"):
        place_on_data(cells, [str(path)], "z")
    with pytest.raises(DataError, match="needs two classes in the target 'a', got numbers"):
        place_on_data(cells, [str(path)], "a", file_task="binary")
    path.write_text("a,y\n1,u\n2,v\n3,w\n")
    with pytest.raises(DataError, match="needs two classes in the target 'y', got 3 classes"):
        place_on_data(cells, [str(path)], "y", file_task="binary")
    with pytest.raises(DataError, match="needs numbers in the target 'y', got 3 classes"):
        place_on_data(cells, [str(path)], "y", file_task="regression")
    with pytest.raises(SelectionError, match="no data set is called 'nothing'"):
        place_on_data(cells, ["nothing"], None)


def test_importable_experiments():
    assert experiment_cells("cell_models:grid")[0] == "grid"
    with pytest.raises(SelectionError, match=r"no experiment is called 'tabel1'.*table1"):
        experiment_cells("tabel1")
    with pytest.raises(SelectionError, match="cannot find the experiment"):
        experiment_cells("cell_models:absent")
    with pytest.raises(SelectionError, match="must return a list of"):
        experiment_cells("cell_models:score_of_nothing")


def test_another_network_is_another_experiment():
    assert with_network("table3", "pooled") == "table3-pooled"
    with pytest.raises(
        SelectionError, match="table3 has no network 'candidates'; there are: pooled"
    ):
        with_network("table3", "candidates")
    with pytest.raises(SelectionError, match="toy has no network 'pooled'; .* none but its own"):
        with_network("toy", "pooled")
