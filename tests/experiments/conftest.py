"""Runners in other processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)


@pytest.fixture(autouse=True)
def models_on_path(monkeypatch):
    """Worker processes find `cell_models` where this process does."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")]))


@pytest.fixture
def start_runner():
    """Start a runner in a process of its own: a grid's expression, a store, an engine."""
    running: list[subprocess.Popen[str]] = []

    def start(cells: str, store: Path, engine: str = "process") -> "subprocess.Popen[str]":
        program = (
            "import cell_models\n"
            "from predcp.experiments import run\n"
            f"tally = run('grid', {cells}, {str(store)!r}, engine={engine!r}, workers=2)\n"
            "print(tally.finished, tally.failed)\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()
