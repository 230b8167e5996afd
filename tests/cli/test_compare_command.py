"""`predcp compare` on files."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from predcp.cli import _compare, app
from predcp.comparison import MODEL_NAMES

MODELS = ["--model", "base-rate", "--model", "sklearn-l2", "--repeats", "1", "--jobs", "1"]


@pytest.fixture
def loans(tmp_path, monkeypatch):
    """A file with a gap, a category and weights; the working folder is its folder."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    income = random.normal(size=90)
    paid = np.where(income + 0.4 * random.normal(size=90) > 0, "yes", "no")
    with open("loans.csv", "w") as file:
        file.write("income,town,weight,paid\n")
        for k in range(90):
            shown = "" if k % 11 == 0 else f"{income[k]:.3f}"
            file.write(f"{shown},{'abc'[k % 3]},{1 + k % 2},{paid[k]}\n")
    return tmp_path


def compare(*words):
    return CliRunner().invoke(app, ["compare", "loans.csv", *words])


def test_a_file(loans):
    result = compare("--target", "paid", *MODELS, "--weights", "weight")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Use scikit-learn's l2: it predicts clearly best")
    assert "report: comparison/report.html" in result.stdout
    text = (loans / "comparison" / "report.md").read_text()
    assert "90 rows and 2 columns, 1 of them categories." in text
    assert "9 missing values: inside each fold" in text and "Rows count as often" in text
    again = compare("--target", "paid", *MODELS, "--weights", "weight", "--json")
    assert json.loads(again.stdout)["sentence"] == result.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--target", "none"], 3, "lacks the column none; it has: income, town"),
        (["--target", "paid", "--weights", "heavy"], 3, "--weights heavy"),
        (["--target", "paid", "--model", "magic"], 2, "--model must be one of base-rate"),
        (["--target", "paid", "--folds", "60"], 2, "--folds must be at most"),
        (["--target", "paid", "--max-seconds", "-1"], 2, "--max-seconds must be positive"),
        (["--target", "paid", "--missing", "refuse"], 3, "--missing impute"),
        (["--target", "paid", "--inference", "magic"], 2, "--inference must be one of"),
    ],
)
def test_bad_options(loans, words, code, message):
    result = compare(*words)
    assert result.exit_code == code, result.output
    assert message in result.output


def test_help_lists_every_model():
    assert all(name in _compare._MODELS for name in MODEL_NAMES)
