import pytest

from predcp.paper import EXPERIMENTS, paper_figures

COUNTS = {
    "toy": 60,
    "table1": 3 * 2 * 3 * 20,
    "table2": 7 * 2 * 4 * 20,
    "depth": 4 * 6 * 4 * 20,
    "table3": 16 * 3,
    "table3-omniglot": 4 * 3,
    "table3-candidates": 7 * 3,
    "fewshot-search": 3 * 16 + 16,
    "table3-pooled": 2 * 7 * 5 + 5 * 3 + 2 * 5 * 5,
    "table3-pooled-search": 16 + 2 + 8 + 6 + 1,
    "table3-pooled-long": 5 + 1,
    "shift": 5 * 20 * 10 + 37 * 20,
    "switched-off": 6 * 10 * 10,
    "shift-classes": 3 * 5 * 4 * (10 + 8) + 3 * 10,
    "shift-nuts": 2 * 5 * 3 * 3,
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
