import pytest

from predcp.data import DataError
from predcp.experiments import (
    EXPERIMENTS,
    SelectionError,
    experiment_cells,
    paper_figures,
    parse_numbers,
    place_on_data,
    select,
)

COUNTS = {
    "toy": 60,
    "table1": 3 * 2 * 3 * 20,
    "table2": 7 * 2 * 4 * 20,
    "depth": 4 * 4 * 4 * 10,
    "table3": 16 * 3,
    "table3-omniglot": 4 * 3,
    "table3-candidates": 7 * 3,
    "fewshot-search": 3 * 16 + 16,
    "appendix-fc100": 2 * 42,
    "appendix-mini-imagenet": 2 * 42,
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_grids_have_the_papers_sizes(name):
    cells = EXPERIMENTS[name]()
    assert len(set(cells)) == len(cells) == COUNTS[name]
    assert len({cell.name for cell in cells}) == len(cells)


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if paper_figures(name)])
def test_every_printed_figure_has_its_cells_and_every_cell_its_figure(name):
    declared = {(cell.data, cell.prior, cell.inference) for cell in EXPERIMENTS[name]()}
    printed = {key[:3] for key in paper_figures(name)}
    assert declared == printed


def test_some_printed_figures():
    table1, table2 = paper_figures("table1"), paper_figures("table2")
    assert vars(table1["colon", "ecp", "mcmc", "log_likelihood"]) == {"mean": -0.52, "error": 0.05}
    assert vars(table2["yacht", "predcp", "vi", "rmse"]) == {"mean": 0.57, "error": 0.03}
    table3 = paper_figures("table3")
    assert table3["mini-imagenet-5shot", "predcp-exponential-1e-2", "map", "accuracy"].mean == 61.9
    grid = paper_figures("appendix-fc100")
    assert grid["fc100-1shot", "predcp-gem-1e-3", "map", "accuracy"].mean == 38.8
    assert grid["fc100-5shot", "shrinkage-exponential-1e-4", "map", "accuracy"].mean == 51.4
    assert paper_figures("toy") == {}


def test_table1_settings_follow_the_paper():
    cells = EXPERIMENTS["table1"]()
    draws = {
        cell.data: cell.settings["complexity_draws"] for cell in cells if cell.prior == "predcp"
    }
    assert draws == {"allaml": 1, "colon": 10, "breast": 10}
    mcmc = next(cell for cell in cells if cell.inference == "mcmc")
    # Four chains as in the paper, of twice as many draws.
    assert (mcmc.settings["chains"], mcmc.settings["draws"]) == (4, 2000)


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
