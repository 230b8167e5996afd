"""Every example runs, prints its results and writes its picture; none is long."""

import importlib.util
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

plt.switch_backend("Agg")

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))
# The other examples compile NUTS twice.
QUICK = {"ar1_coefficient"}


def load(name):
    spec = importlib.util.spec_from_file_location(f"examples_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short_and_names_its_reference_model(name):
    text = (FOLDER / f"{name}.py").read_text()
    assert len(text.splitlines()) < 60
    assert "\nReference model: " in text.split('"""')[1]


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in EXAMPLES],
)
def test_an_example_runs_and_leaves_a_picture(name, tmp_path, capsys):
    size = {"points": 401} if name == "ar1_coefficient" else {"draws": 20}
    load(name).main(tmp_path, **size)
    plt.close("all")
    printed = capsys.readouterr().out
    assert re.search("PredCP: |ECP: ", printed) and "nan" not in printed
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
