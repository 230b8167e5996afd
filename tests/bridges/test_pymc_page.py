"""The page about PyMC and Bambi runs as written."""

from pathlib import Path

import pytest
from tests.test_documentation import ROOT, run


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("pymc", reason="the extra `pymc` is not installed")
    pytest.importorskip("bambi", reason="the extra `bambi` is not installed")
    monkeypatch.chdir(tmp_path)
    run(ROOT / "docs" / "how-to" / "pymc-and-bambi.md")
