"""Tables in the pages are those of the stored results."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def make_tables():
    specification = importlib.util.spec_from_file_location("make_tables", DOCS / "make_tables.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_pages_are_as_the_results_have_them(make_tables):
    used = set()
    for name in make_tables.PAGES:
        text = (DOCS / name).read_text(encoding="utf-8")
        assert make_tables.filled(text) == text, f"run docs/make_tables.py: {name} is stale"
        used |= {match[2] for match in make_tables._BLOCK.finditer(text)}
    assert used == set(make_tables.TABLES)


def test_a_changed_figure_is_noticed(make_tables):
    text = (DOCS / "table-1.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| breast | ECP |"))
    changed = text.replace(row, row.replace("-0.5", "-0.4"))
    assert changed != text and make_tables.filled(changed) == text
