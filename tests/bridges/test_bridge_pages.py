"""The pages about PyMC and Bambi run as written."""

from pathlib import Path

import pytest


@pytest.mark.parametrize("page", ["pymc", "bambi"])
def test_the_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip(page, reason=f"the extra `{page}` is not installed")
    from tests.test_documentation import ROOT, run

    monkeypatch.chdir(tmp_path)
    run(ROOT / "docs" / "how-to" / f"{page}.md")
