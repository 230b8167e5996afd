"""Tables in the pages are those of the stored results."""

import importlib
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS.parent / "results"
SCRIPTS = (
    "make_tables",
    "make_appendix",
    "make_depth",
    "make_shift",
    "make_pooled",
    "make_summary",
    "make_classes",
    "make_speed",
)


@pytest.fixture
def scripts(monkeypatch):
    """The scripts that fill pages, by name."""
    monkeypatch.syspath_prepend(str(DOCS))
    return {name: importlib.import_module(name) for name in SCRIPTS}


@pytest.mark.parametrize("name", SCRIPTS)
def test_pages_are_as_the_results_have_them(scripts, name):
    script, make_tables = scripts[name], scripts["make_tables"]
    used = set()
    for page in script.PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        fresh = make_tables.filled(text, script.TABLES)
        assert fresh == text, f"run docs/{name}.py: {page} is stale"
        used |= {match[2] for match in make_tables.BLOCK.finditer(text)}
    assert used == set(script.TABLES)


def test_a_changed_figure_is_noticed(scripts):
    make_tables = scripts["make_tables"]
    text = (DOCS / "table-1.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| breast | ECP |"))
    changed = text.replace(row, row.replace("-0.5", "-0.4"))
    assert changed != text and make_tables.filled(changed) == text


def test_errors_over_seeds_have_the_degrees_of_freedom_of_the_seeds(scripts):
    """The stored comparison of tasks, against the accuracies of the seeds."""
    pooled, make_tables = scripts["make_pooled"], scripts["make_tables"]
    found = {}
    for record in make_tables.records(pooled.EXPERIMENT):
        place = record.cell.data, record.cell.prior
        found.setdefault(place, {})[record.cell.seed] = make_tables.metric(
            record, "test", "accuracy"
        )
    over_seeds = 0
    for row in pooled.compared()["test"]:
        for reference in {"maml", "flat"} - {row["prior"]}:
            ours, theirs = (found[row["data"], prior] for prior in (row["prior"], reference))
            gaps = np.asarray([ours[seed] - theirs[seed] for seed in ours])
            spread = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
            error, degrees = (row[f"less_{reference}_{each}"] for each in ("error", "degrees"))
            if degrees == len(gaps) - 1:
                assert error == pytest.approx(spread, abs=1e-6)
                over_seeds += 1
            else:
                assert degrees == row["tasks"] - 1 and error > spread
    assert over_seeds > 20


def test_a_difference_of_few_seeds_must_be_large(scripts):
    pooled = scripts["make_pooled"]
    row = {"less_maml": -2.0, "less_maml_error": 0.2, "less_maml_degrees": 999, "seeds": 2}
    assert pooled.beyond(row, "maml") == (True, True)
    assert pooled.beyond({**row, "less_maml_degrees": 1}, "maml") == (True, False)
    assert pooled.beyond({**row, "seeds": 1}, "maml") == (True, False)


def test_a_row_is_decided_by_differences_that_matter(scripts):
    summary = scripts["make_summary"]
    large, small, worse, lone = (
        summary.Difference(mean, abs(mean) / 10.0, count)
        for mean, count in ((0.05, 10), (0.005, 10), (-0.05, 10), (-0.05, None))
    )
    rows = {
        "helps": [large, small],
        "no clear difference": [small, lone],
        "hurts": [small, worse],
        "mixed": [large, worse],
    }
    for words, found in rows.items():
        row = summary.Row("setting", "page.md", found, 20, summary.NATS, 3)
        assert row.verdict == words
    assert summary.Row("setting", "page.md", [large, lone], 20, summary.NATS, 3).cells()[3:5] == (
        "1 (1)",
        "1 (0)",
    )


def test_a_prior_is_no_rival_of_itself(scripts):
    rivals = {"fixed-0.1", "fixed-1", "inverse-gamma"}
    study, summary = scripts["make_classes"].CLASSES, scripts["make_summary"]
    assert set(study.rivals()) - {"predcp rises"} == rivals
    assert len(summary.classes().differences) % len(rivals) == 0


def test_every_store_is_told_with_its_cells():
    """`results/README.md`: a line for each, and how many cells it holds."""
    lines = (RESULTS / "README.md").read_text(encoding="utf-8").splitlines()
    told = {}
    for line in lines:
        if line.startswith("| `"):
            names, cells = line.split(" | ")[:2]
            counts = re.findall(r"(?<!of )\b\d+\b", cells)
            told |= dict(zip(re.findall(r"`([a-z0-9-]+)`", names), counts, strict=False))
    stores = {path.stem for path in RESULTS.glob("*.parquet")}
    assert set(told) == stores
    for name in stores - {"scale-priors"}:
        assert pq.read_metadata(RESULTS / f"{name}.parquet").num_rows == int(told[name]), name


def test_a_single_split_has_no_error(scripts):
    assert scripts["make_depth"].marked([0.5], 2, 15) == "+0.50"
    assert scripts["make_tables"].pm([0.5], 2) == "0.50"
    texts = scripts["make_shift"].against_temperature({0.1: {0: -1.0}, 1.0: {0: -2.0}}, [0.1, 1.0])
    assert texts == ("**-1.000**", "-2.000", "-1.000")
