"""Hints to install an extra work: predcp is on no package index."""

import importlib
import re
import sys
import tomllib
from importlib import metadata

import pytest

from predcp._support import extras


def test_in_a_clone_the_clone_is_installed_with_the_extra():
    command = extras.install_command("explore")
    assert command.startswith("pip install -e ") and "[explore]" in command
    assert "predcp[explore]" not in command.replace(str(extras._CLONE), "")


def test_elsewhere_the_missing_packages_are_named(monkeypatch, tmp_path):
    requirements = [
        "jax>=0.5",
        "pandas>=2.1; extra == 'experiments'",
        "absent-one>=3; extra == 'experiments'",
        "predcp[experiments]; extra == 'explore'",
        "absent-two>=0.25; extra == 'explore'",
        "absent-three; extra == 'docs'",
        "absent-four<2; (python_version < '3.12') and extra == 'explore'",
    ]
    monkeypatch.setattr(extras, "_CLONE", tmp_path)
    monkeypatch.setattr(metadata, "requires", lambda name: requirements)
    found = "pip install 'absent-one>=3' 'absent-two>=0.25'"
    monkeypatch.setattr(extras.sys, "version_info", (3, 12))
    assert extras.install_command("explore") == found
    monkeypatch.setattr(extras.sys, "version_info", (3, 11))
    assert extras.install_command("explore") == f"{found} 'absent-four<2'"


def test_no_page_and_no_message_installs_from_an_index():
    """Until predcp is on an index, `pip install 'predcp[...]'` finds nothing there."""
    pages = [extras._CLONE / "README.md", *(extras._CLONE / "docs").rglob("*.md")]
    code = [path for path in (extras._CLONE / "src").rglob("*.py") if path.name != "extras.py"]
    assert len(pages) > 20 and len(code) > 100
    wrong = re.compile(r"pip install (-\S+ )*['\"]?predcp\b(?!-\d)")
    assert [path for path in (*pages, *code) if wrong.search(path.read_text())] == []


def test_every_extra_that_is_named_exists():
    named = set()
    for path in (extras._CLONE / "src").rglob("*.py"):
        found = re.findall(r"\b(?:needs|install_command)\(([^()]*)\)", path.read_text())
        named |= {name for each in found for name in re.findall(r"[\"'](\w+)[\"']", each)}
    assert named >= {"plot", "experiments", "explore", "cluster", "pymc", "bambi"}
    project = tomllib.loads((extras._CLONE / "pyproject.toml").read_text())["project"]
    assert named <= set(project["optional-dependencies"])


# What users import, a package that it needs, and the extra that has the package.
NEEDS = {
    "predcp.bridges.pymc": ("pymc", "pymc"),
    "predcp.bridges.bambi": ("bambi", "bambi"),
    "predcp.plot": ("matplotlib", "plot"),
}


@pytest.mark.parametrize("module", NEEDS)
def test_an_import_without_its_package_names_the_extra(module, monkeypatch):
    package, extra = NEEDS[module]
    for name in list(sys.modules):
        if name == package or name.startswith(f"{package}.") or name.startswith(module):
            monkeypatch.delitem(sys.modules, name)
    # None in this table makes an import fail, whether the package is installed or not.
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"extra '{extra}'.* run: pip install"):
        importlib.import_module(module)
