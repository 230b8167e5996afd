"""What a checkpoint says of its runs."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from predcp.cli import app
from predcp.fewshot import DenseNet, FewShotClassifier
from predcp.paper import Training, read_training, training_lines, training_picture


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model trained for a few iterations, and its checkpoint."""
    folder = tmp_path_factory.mktemp("checkpoints")
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), 8)
    x = rng.normal(size=(6, 4))[labels] + 0.3 * rng.normal(size=(48, 4))
    model = FewShotClassifier(
        prior="predcp-gem-1e-2",
        network=DenseNet(ways=2, widths=(8,)),
        ways=2,
        shots=1,
        queries=2,
        iterations=6,
        validate_every=2,
        checkpoint=folder / "run.checkpoint",
    )
    return model.fit(x, labels, validation=(x, labels)), folder / "run.checkpoint"


def test_the_history_is_that_of_the_module_report(fitted):
    model, path = fitted
    (run,) = read_training(path)
    report = model.summary()
    assert (run.prior, run.seed, run.shots) == ("predcp-gem-1e-2", 0, 1)
    assert run.modules == report.modules
    np.testing.assert_array_equal(run.iteration, report.iteration)
    np.testing.assert_array_equal(run.sigma, report.sigma)
    np.testing.assert_array_equal(run.kappa, report.kappa)


def test_runs_survive_json_and_are_drawn_and_told(fitted):
    _, path = fitted
    runs = read_training(path)
    again = [Training.from_json(json.loads(json.dumps(run.to_json()))) for run in runs]
    np.testing.assert_allclose(again[0].kappa, runs[0].kappa, rtol=1e-4)
    assert again[0].selected == runs[0].selected
    assert len(training_picture(again).axes) == 3
    assert f"at iteration {runs[0].selected} of 6" in training_lines(again)


def test_the_command_says_what_is_wrong(fitted, tmp_path):
    _, path = fitted

    def training(*arguments):
        return CliRunner().invoke(app, ["fewshot", "training", *map(str, arguments)])

    shown = training(path, "--json", "--picture", tmp_path / "runs.png")
    assert json.loads(shown.stdout)[0]["prior"] == "predcp-gem-1e-2"
    assert (tmp_path / "runs.png").stat().st_size > 10_000
    broken = tmp_path / "broken.checkpoint"
    broken.write_bytes(path.read_bytes()[:1000])
    for arguments, words in (
        ([str(broken)], "broken.checkpoint"),
        ([str(tmp_path / "none.checkpoint")], "none.checkpoint"),
        ([str(path), "--seed", "7"], "--seed 7: no run has this seed"),
    ):
        refused = training(*arguments)
        assert refused.exit_code in (2, 3) and words in refused.stderr
