"""With no extra installed, what needs one says how to install it, and the rest works."""

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import predcp

# What to ask for, the extra that it needs and a package that is missing.
NEEDS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "PyMC": (lambda: import_module("predcp.bridges.pymc"), "pymc", "pymc"),
    "Bambi": (lambda: import_module("predcp.bridges.bambi"), "bambi", "bambi"),
    "plots": (lambda: predcp.plot, "plot", "matplotlib"),
    "the explorer": (lambda: import_module("predcp.explore"), "explore", "marimo"),
    "estimators": (
        lambda: predcp.linear.LogisticRegression,
        "experiments",
        "scikit-learn",
    ),
    "residual networks": (
        lambda: predcp.resnet.ResNetRegressor,
        "experiments",
        "scikit-learn",
    ),
    "few-shot learning": (
        lambda: import_module("predcp.fewshot"),
        "experiments",
        "optax",
    ),
    "tables of the paper": (
        lambda: predcp.paper.comparison_table,
        "experiments",
        "optax",
    ),
    "groups of ArviZ": (
        lambda: predcp.to_arviz(None),
        "experiments",
        "arviz-base",
    ),
}
for what, (ask, extra, missing) in NEEDS.items():
    try:
        ask()
    except ModuleNotFoundError as error:
        said = str(error)
        for word in ("pip install", f"extra '{extra}'", missing):
            assert word in said, (what, word, said)
    else:
        raise AssertionError(f"{what} work without {missing}")

program = f"{sys.prefix}/bin/predcp"
version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
assert version.stdout.strip() == f"predcp {predcp.__version__}", version
refused = subprocess.run([program, "audit"], capture_output=True, text=True)
assert refused.returncode == 1 and "pip install" in refused.stderr, refused
assert "Traceback" not in refused.stderr, refused
