"""The demo ends in a table, a picture and a report."""

import re

import pytest

from predcp.experiments import Cell
from predcp.paper import _demo


def test_demo_compares_the_three_priors(tmp_path, capsys, monkeypatch):
    # The whole of it in small: two chains of forty steps on one split.
    short = {"chains": 2, "warmup": 20, "draws": 20, "chunk": 20, "max_depth": 4}
    grid = [
        Cell(cell.data, cell.model, cell.prior, cell.inference, cell.split, settings=short)
        for cell in _demo.cells()
        if cell.split == 0
    ]
    monkeypatch.setattr(_demo, "cells", lambda: grid)
    _demo.demo(output=tmp_path)
    printed = capsys.readouterr().out
    rows = re.findall(r"^(\S+) +(-\d\.\d+) ± \S+ +(\d+\.\d)%", printed, re.MULTILINE)
    assert [name for name, _, _ in rows] == list(_demo.PRIORS)
    assert all(float(accuracy) > 80.0 for _, _, accuracy in rows)
    assert (tmp_path / _demo.PICTURE).read_bytes().startswith(b"\x89PNG")
    assert "half-cauchy" in (tmp_path / "demo" / "report" / "report.md").read_text()


@pytest.mark.long
def test_demo_as_it_is_given(tmp_path, capsys):
    _demo.demo(output=tmp_path)
    assert "nan" not in capsys.readouterr().out
