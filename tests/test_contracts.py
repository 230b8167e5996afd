"""The house rules that no linter knows: private files stay in their room, and files stay short."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "predcp"
FILES = sorted(SOURCE.rglob("*.py"))
# Files of these rooms are public to the library, though the rooms are private to users.
OPEN_ROOMS = ("_support", "_numerics")
MOST_LINES = 500
CORE = ("_divergence_priors", "_divergences", "_maps")
CORE_FILES = ("_prior.py", "_budget.py", "_diagnose.py", "_summaries.py", "plot.py")
# What a newcomer reads: the protocol, the maps, the first families, priors, diagnoses, pictures.
MOST_CORE_LINES = 6000
# One family or one kind of map per file, which nobody has to read who does not change it.
LATER = {
    "_divergences": (
        "beta_binomial bounded_counts dirichlet gamma hurdle hurdle_distances laplace mixture "
        "monte_carlo multivariate_distances multivariate_normal negative_binomial ordered quadrature "
        "register transformed weibull"
    ),
    "_maps": "joint limits row_nodes tabulated",
    "": "budget",
}
MOST_LATER_LINES = 3800


def room_of(path: Path) -> str:
    """The room a file lies in: a folder of the package, or the file itself."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def private_imports(path: Path) -> list[str]:
    """Imports of another room's private files."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] != "predcp" or len(parts) < 3 or parts[1] == room_of(path):
                continue
            inside = parts[2:]
            if parts[1] not in OPEN_ROOMS and any(part.startswith("_") for part in inside):
                found.append(name)
    return found


def test_no_room_imports_another_rooms_private_files():
    broken = {
        str(path.relative_to(SOURCE)): found for path in FILES if (found := private_imports(path))
    }
    assert not broken


@pytest.mark.parametrize("path", [*FILES, *sorted(Path(__file__).parent.rglob("*.py"))], ids=str)
def test_no_file_is_longer_than_500_lines(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES


def lines_of(files: list[Path]) -> int:
    return sum(len(path.read_text().splitlines()) for path in files)


def test_the_core_is_small_enough_to_read_in_an_afternoon():
    later = [SOURCE / room / f"_{name}.py" for room in LATER for name in LATER[room].split()]
    files = [path for path in FILES if room_of(path) in CORE]
    files += [SOURCE / name for name in CORE_FILES]
    assert set(later) <= set(files)
    assert lines_of(later) <= MOST_LATER_LINES
    assert lines_of(files) - lines_of(later) <= MOST_CORE_LINES


def test_a_map_and_a_divergence_from_outside_take_under_forty_lines():
    """The page's code is run with the other pages."""
    page = SOURCE.parent.parent / "docs" / "how-to" / "your-own-map.md"
    blocks = page.read_text().split("```python\n")[1:]
    lines = [line for block in blocks for line in block.split("```")[0].splitlines()]
    assert any("ScalarComplexity" in line for line in lines)
    assert any("register_divergence" in line for line in lines)
    assert len(lines) < 40


def test_the_list_of_long_tests_names_tests_that_exist():
    root = SOURCE.parent.parent
    lines = (root / "tests" / "long.txt").read_text().splitlines()
    for line in lines:
        if line and not line.startswith("#"):
            path, function = line.split("[")[0].split("::")
            assert f"def {function}(" in (root / path).read_text(), line


def test_test_files_outside_of_packages_have_names_of_their_own():
    """Pytest imports them by their name alone: with two of one name it collects nothing."""
    names = [
        path.name
        for path in Path(__file__).parent.rglob("test_*.py")
        if not (path.parent / "__init__.py").exists()
    ]
    assert sorted(names) == sorted(set(names))


def test_no_file_has_marks_of_an_unfinished_merge():
    root = SOURCE.parent.parent
    folders = ("docs", "src", "tests", "studies", "benchmarks", "examples", ".ci", ".github")
    files = [path for folder in folders for path in (root / folder).rglob("*")]
    texts = {".md", ".yml", ".toml", ".py", ".txt", ".json", ".css", ""}
    files = [path for path in (*files, *root.iterdir()) if path.suffix in texts and path.is_file()]
    marks = ("<" * 7 + " ", ">" * 7 + " ")
    assert not [
        str(path.relative_to(root))
        for path in files
        if any(line.startswith(marks) for line in path.read_text("utf-8", "replace").splitlines())
    ]
