"""The pages about experiments do what they say: their code runs, in order, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r'^```(\w+)(?: title="(\S+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.fixture
def script_folder(tmp_path):
    """A folder with a `predcp` command that runs this Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "predcp"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m predcp "$@"\n')
    script.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    "page", ["run-your-own-comparison.md", pytest.param("on-a-cluster.md", marks=pytest.mark.long)]
)
def test_page(page, tmp_path, script_folder):
    environment = {**os.environ, "PATH": f"{script_folder}{os.pathsep}{os.environ['PATH']}"}
    work = tmp_path / "work"
    work.mkdir()
    blocks = BLOCK.findall((DOCS / page).read_text())
    executed = 0
    for language, title, code in blocks:
        if title:
            (work / title).write_text(code)
        elif language in ("python", "bash"):
            command = (
                [sys.executable, "-c", code] if language == "python" else ["bash", "-ec", code]
            )
            result = subprocess.run(
                command, cwd=work, env=environment, capture_output=True, text=True
            )
            assert result.returncode == 0, f"{code}\n{result.stdout}\n{result.stderr}"
            executed += 1
    assert executed >= 2
    assert list(work.glob("*/*/*/cell.json"))


def test_the_comparison_takes_twenty_lines():
    text = (DOCS / "run-your-own-comparison.md").read_text()
    code = next(code for _, title, code in BLOCK.findall(text) if title)
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
