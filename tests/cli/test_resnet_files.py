"""`predcp fit --model resnet`: residual networks fitted to a file and kept in one."""

import numpy as np
import pytest

from predcp.cli._file_models import fit_file, predict_file


@pytest.fixture
def table(tmp_path):
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(2, 64))
    lines = [f"{x},{y},{2 * x},{'high' if x > 0 else 'low'}" for x, y in zip(a, b)]
    path = tmp_path / "table.csv"
    path.write_text("a,b,number,kind\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.long
def test_numbers(table, tmp_path):
    path = tmp_path / "m.safetensors"
    fitted = fit_file(table, "number", path, "resnet", "inverse-gamma", seed=1)
    assert (fitted.estimator, fitted.task, fitted.rows) == ("resnet", "regression", 64)
    assert (
        fitted.summary is not None and "hidden layers above the first are alive" in fitted.summary
    )
    frame = predict_file(path, table)
    assert list(frame.columns) == ["prediction", "standard_deviation"]
    target = np.loadtxt(table, delimiter=",", skiprows=1, usecols=2)
    assert np.corrcoef(frame["prediction"], target)[0, 1] > 0.9


@pytest.mark.long
def test_classes(table, tmp_path):
    path = tmp_path / "m.safetensors"
    fit_file(table, "kind", path, "resnet")
    frame = predict_file(path, table)
    kinds = np.loadtxt(table, delimiter=",", skiprows=1, usecols=3, dtype=str)
    assert np.mean(frame["prediction"] == kinds) > 0.9
    assert list(frame.columns) == ["prediction", "probability_high", "probability_low"]


def test_what_a_network_does_not_take(table, tmp_path):
    with pytest.raises(
        ValueError, match="'resnet' takes no --inference; it takes: --prior, --seed"
    ):
        fit_file(
            table, "number", tmp_path / "m.safetensors", "resnet", sampling={"inference": "nuts"}
        )
    with pytest.raises(
        ValueError, match="'linear' does not fit a binary target; these do: logistic"
    ):
        fit_file(table, "kind", tmp_path / "m.safetensors", "linear")
