"""Hints to install an extra work: predcp is on no package index."""

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
    ]
    monkeypatch.setattr(extras, "_CLONE", tmp_path)
    monkeypatch.setattr(metadata, "requires", lambda name: requirements)
    assert extras.install_command("explore") == "pip install 'absent-one>=3' 'absent-two>=0.25'"


@pytest.mark.parametrize("extra", ["experiments", "explore", "cluster", "plot"])
def test_every_extra_that_is_named_exists(extra):
    import tomllib

    with (extras._CLONE / "pyproject.toml").open("rb") as file:
        assert extra in tomllib.load(file)["project"]["optional-dependencies"]
