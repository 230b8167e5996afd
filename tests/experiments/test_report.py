import re
from pathlib import Path

import pytest
from cell_models import cells

import predcp.experiments
from predcp.experiments import Cell, Outcome, Store, report, run, write_report
from predcp.experiments._document import Code, Grid, Heading, Paragraph, to_html, to_markdown
from predcp.experiments._numbers import plus_minus


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path, "grid")


def table1_store(path: Path) -> Store:
    """Two priors of the paper's first table on three splits, with made-up figures."""
    store = Store(path, "table1")
    for prior, value in (("half-cauchy", -0.58), ("ecp", -0.56)):
        for split in range(3):
            cell = Cell("breast", "logistic", prior, "mcmc", split)
            claim = store.claim(cell)
            assert claim is not None
            metrics = (("test", "log_likelihood", value - 0.01 * split),)
            convergence = {"rhat_max": 1.0 + 0.2 * (split == 2), "divergences": 0.0}
            environment = {"device": "CPU", "commit": "c0ffee", "python": "3", "versions": {}}
            store.publish(claim, cell, Outcome(2.0, environment, metrics, convergence), "again")
            claim.release()
    store.sweep()
    return store


def test_our_figures_stand_beside_the_papers(tmp_path):
    text = to_markdown(report(table1_store(tmp_path)))
    assert "| breast | mcmc | ecp | -0.5700 ± 0.0058 | -0.55 ± 0.01 | 3 | 1.200 |" in text
    pair = r"\| breast \| mcmc \| ecp \| half-cauchy \| 0\.020* ± 0[.0-9]* \| 3/0/0 \|"
    assert re.search(pair, text)
    assert "outperforms in four of six cases" in text
    assert text.count("R-hat 1.20") == 2
    assert len(re.findall(r"rhat_max 1 \| none", text)) == 4


def test_sampled_cells_bring_figures_flags_and_draws(store):
    grid = [Cell("nothing", "cell_models:sampled", "ecp", "mcmc", split) for split in range(3)]
    run("grid", grid, store.path, engine="pool", workers=1, keep_posterior=True)
    text = to_markdown(report(store))
    assert text.count("R-hat 1.40; 2.0% divergent") == 1
    assert len(re.findall(r"ess_min 400, rhat_max 1.003 \| none", text)) == 2
    assert "| 3 | 1.400 | 0.67% | 1 |" in text
    draws = store.cell_folder(grid[0]) / "posterior.nc"
    content = draws.read_bytes()
    draws.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert store.status(grid[0]) == "corrupt"


def test_files_of_a_report(store):
    run("grid", cells(count=3) + cells(count=3, prior="other"), store.path)
    markdown, page = write_report(store)
    names = {path.name for path in markdown.parent.iterdir()}
    assert names == {
        "report.md",
        "report.html",
        *("log_likelihood.png", "log_likelihood-paired.png", "rmse.png", "rmse-paired.png"),
    }
    for link in re.findall(r"!\[.*?\]\((.*?)\)", markdown.read_text()):
        assert (markdown.parent / link).read_bytes().startswith(b"\x89PNG")
    html = page.read_text()
    assert html.count("data:image/png;base64,") == 4
    # Self-contained: nothing is loaded from anywhere.
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", html)
    assert "<script" not in html
    # The report's folder is not taken for a cell.
    assert len(store.records().finished) == 6 and not store.records().corrupt


def test_reports_without_times_depend_on_results_alone(tmp_path):
    texts = []
    for name in ("first", "second"):
        run("grid", cells(count=3), tmp_path / name)
        paths = write_report(Store(tmp_path / name, "grid"), times=False)
        texts.append([path.read_bytes() for path in paths])
    assert texts[0] == texts[1]


def test_failed_and_damaged_cells_are_shown(store):
    grid = cells("failing", 4, cure="absent")
    run("grid", grid, store.path)
    (store.cell_folder(grid[0]) / "cell.json").unlink()
    text = to_markdown(report(store))
    assert "1 cells finished, 2 failed, 1 damaged." in text
    assert text.count("RuntimeError: split 1 is odd") == 1
    assert "cell.json is missing" in text


def test_how_to_rerun_is_exact(store):
    grid = cells(count=2)
    run("grid", grid, store.path, rerun="predcp run cell_models:grid")
    text = to_markdown(report(store))
    for cell in grid:
        assert f"predcp run cell_models:grid --cell {cell.key[:12]} |" in text
    run("other", grid, store.path)
    expression = Store(store.path, "other").read(grid[0]).rerun
    outcome = eval(expression, {"predcp": predcp})
    assert outcome.metrics == store.read(grid[0]).metrics


def test_an_empty_store_is_an_error_that_says_what_to_run(store):
    with pytest.raises(LookupError, match="holds no cells; run `predcp run grid` first"):
        report(store)


def test_texts_are_escaped():
    blocks = [Heading("a < b"), Paragraph("x & y"), Grid(("h",), [("a|b\nc",)]), Code("<tag>")]
    assert "| a\\|b c |" in to_markdown(blocks)
    html = to_html("t", blocks)
    assert "a &lt; b" in html and "x &amp; y" in html and "&lt;tag&gt;" in html


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (-0.5791, 0.0203, "-0.579 ± 0.020"),
        (54.17, 0.81, "54.17 ± 0.81"),
        (123.4, 12.3, "123 ± 12"),
        (2.0, 0.0, "2 ± 0"),
        (0.25, None, "0.25"),
        (float("nan"), 0.1, "nan"),
    ],
)
def test_plus_minus(mean, error, text):
    assert plus_minus(mean, error) == text
