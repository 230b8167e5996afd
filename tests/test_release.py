"""What a release says of itself in several files is the same in each."""

import re
import tomllib
from pathlib import Path

import predcp

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def found(file: str, pattern: str) -> list[str]:
    return re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)


def test_every_file_has_the_same_version_and_date():
    version = predcp.__version__
    assert found("CITATION.cff", r"^version: (\S+)$") == [version]
    assert found("conda/recipe.yaml", r'^  version: "(\S+)"$') == [version]
    assert found("README.md", r"predcp-([\d.]+)-py3-none-any\.whl") == [version]
    newest = found("CHANGELOG.md", r"^## (\S+), (\S+)$")[0]
    assert newest == (version, *found("CITATION.cff", r"^date-released: (\S+)$"))


def test_the_conda_recipe_has_the_dependencies_of_the_package():
    text = (ROOT / "conda" / "recipe.yaml").read_text()
    run = text.split("  run:\n")[1].split("tests:")[0]
    wanted = [f"python {PROJECT['requires-python']}"]
    wanted += [re.sub(r"(>=)", r" \1", line, count=1) for line in PROJECT["dependencies"]]
    assert sorted(re.findall(r"^    - (.*)$", run, re.MULTILINE)) == sorted(wanted)


def test_the_workflows_call_targets_that_exist():
    targets = set(found("Makefile", r"^([a-z-]+):"))
    called = set()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for target in re.findall(r"run: make (\S+.*)$", path.read_text(), re.MULTILINE):
            called.add(target)
    [extras] = found(".github/workflows/tests.yml", r"extra: \[(.*)\]")
    called.remove("test-${{ matrix.extra }}")
    called |= {f"test-{extra}" for extra in extras.split(", ")}
    assert called <= targets
    # Every extra that users may install has tests of its own there, a real browser and the site apart.
    public = set(PROJECT["optional-dependencies"]) - {"all", "dev", "docs", "browser"}
    assert set(extras.split(", ")) == public


def test_the_oldest_python_and_every_classifier_are_tested():
    [pythons] = found(".github/workflows/tests.yml", r'^        python: \["(3\.11", "3\.12.*)\]$')
    tested = set(re.findall(r"3\.\d+", pythons))
    said = {line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if ":: 3." in line}
    assert (
        tested == said and f">={min(said, key=lambda v: int(v[2:]))}" == PROJECT["requires-python"]
    )
