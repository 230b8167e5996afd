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
# The core of one component and the first families had 6,000 lines; budgets, limits of other
# families, joint divergences and the remaining families come on top.
# Quadrature, covariances that move, Weibull shapes and gates of any kind take 500 of them.
MOST_CORE_LINES = 7700


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


def test_the_core_is_small_enough_to_read_in_an_afternoon():
    files = [path for path in FILES if room_of(path) in CORE]
    files += [SOURCE / name for name in CORE_FILES]
    assert sum(len(path.read_text().splitlines()) for path in files) <= MOST_CORE_LINES


def test_the_list_of_long_tests_names_tests_that_exist():
    root = SOURCE.parent.parent
    lines = (root / "tests" / "long.txt").read_text().splitlines()
    for line in lines:
        if line and not line.startswith("#"):
            path, function = line.split("[")[0].split("::")
            assert f"def {function}(" in (root / path).read_text(), line
