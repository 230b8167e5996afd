"""Tables in the pages are those of the stored results."""

import importlib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SCRIPTS = ("make_tables", "make_appendix", "make_depth")


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
