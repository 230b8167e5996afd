import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cell_models import cells

import predcp.experiments
import predcp.paper
from predcp.experiments import Cell, Outcome, Pair, Store, report, run, write_report
from predcp.experiments._document import Code, Grid, Heading, Paragraph, to_html, to_markdown
from predcp.experiments._headline import is_clear
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
    assert "| breast | MCMC | ECP | -0.5700 ± 0.0058 | -0.55 ± 0.01 | 3 | 1.200 |" in text
    pair = r"\| breast \| MCMC \| ECP \| half-Cauchy \| 0\.020* ± 0[.0-9]* \| 3, 0, 0 \|"
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


def store_of(path: Path, values: dict[str, list[float]], base_rate: float | None = None) -> Store:
    """A store of made-up log likelihoods, one prior per entry and one split per value."""
    store = Store(path, "own")
    grid = [
        (Cell("d", "m", prior, "nuts", split), value)
        for prior, found in values.items()
        for split, value in enumerate(found)
    ]
    if base_rate is not None:
        splits = range(len(next(iter(values.values()))))
        grid += [(Cell("d", "m", "base rate", "none", split), base_rate) for split in splits]
    for cell, value in grid:
        claim = store.claim(cell)
        assert claim is not None
        environment = {"device": "CPU", "commit": "c0ffee", "python": "3", "versions": {}}
        metrics = (("test", "log_likelihood", value), ("test", "rmse", -value))
        store.publish(claim, cell, Outcome(2.0, environment, metrics), "again")
        claim.release()
    store.sweep()
    return store


def test_the_headline_names_a_clear_winner(tmp_path):
    noise = np.random.default_rng(0).normal(0.0, 1.0, 10)
    values = {"a": list(noise), "b": list(noise - 0.5 + 0.05 * np.sin(range(10))), "c": [-5.0] * 10}
    text = to_markdown(report(store_of(tmp_path, values)))
    assert "Clearly the best in log likelihood, in 1 of 1 comparison of priors: a on d" in text
    assert re.search(r"\| d \| nuts \| a \| .* \| b \| 0\.49\d ± 0\.01\d \| yes \|", text)


def test_the_headline_does_not_celebrate_chance(tmp_path):
    generator = np.random.default_rng(1)
    values = {name: list(generator.normal(0.0, 1.0, 10)) for name in "abcd"}
    text = to_markdown(report(store_of(tmp_path, values)))
    assert "No prior is clearly the best in log likelihood" in text
    assert "(6 comparisons, paired on the same splits)" in text and "| no |" in text


def test_a_lead_of_two_errors_is_not_clear_among_many_comparisons():
    pair = Pair("d", "nuts", "rmse", "a", "b", 2.4, 1.0, 15, 0, 5)
    assert is_clear(pair, 1) and not is_clear(pair, 6)
    # Two splits say nothing about the spread of a difference.
    assert not is_clear(replace(pair, wins=2, losses=0, difference=100.0), 1)


def test_priors_are_compared_with_the_base_rate(tmp_path):
    values = {"a": [-0.5, -0.6, -0.4], "b": [-0.7, -0.8, -0.6]}
    store = store_of(tmp_path, values, base_rate=-0.55)
    text = to_markdown(report(store))
    assert "lead over the base rate" in text
    assert "| d | nuts | a | -0.500 ± 0.058 | b |" in text and "| 0.050 ± 0.058 |" in text
    # It has a row of its own, but is never called the best prior.
    assert "| d | none | base rate | -0.55 ± 0 |" in text
    assert "Not clearly better than the base rate, with any prior: d (nuts)." in text
    useful = to_markdown(report(store_of(tmp_path / "useful", values, base_rate=-2.0)))
    assert "Not clearly better" not in useful
    text = to_markdown(report(store_of(tmp_path / "other", values, base_rate=-0.1)))
    assert "| d | nuts | a |" in text and "-0.400 ± 0.058" in text


def test_columns_without_content_are_left_out():
    grid = Grid(("a", "b", "c"), [("1", "", "2"), ("3", "", "")])
    assert "| a | c |" in to_markdown([grid])
    assert "<th>b</th>" not in to_html("t", [grid])


def test_metrics_have_names_in_words(store):
    run("grid", cells(count=3), store.path)
    text = to_markdown(report(store))
    assert "### log likelihood" in text and "### RMSE" in text and "log_likelihood |" not in text
