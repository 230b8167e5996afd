"""Cells of Table 2 on a table that needs no download."""

import numpy as np
import pytest
from scipy import stats

from predcp.experiments import Cell, Context, Silent, Store, run
from predcp.paper import EXPERIMENTS
from predcp.paper._table2_cells import group_of, run_many, settings_of
from predcp.resnet.programs import class_scores, regression_scores

SHORT = {"width": 5, "epochs": 2, "samples": 2, "prediction_samples": 8, "batch": 64}


def grid(splits=2, **settings):
    return [
        Cell("diabetes", "resnet", prior, inference, split, settings=SHORT | settings)
        for inference in ("vi", "vi-tempered")
        for prior in ("fixed-0.1", "inverse-gamma", "predcp")
        for split in range(splits)
    ]


def test_the_whole_grid_of_a_data_set_is_one_program(tmp_path):
    cells = grid()
    assert len({group_of(cell) for cell in cells}) == 1
    moves = []

    class Heard(Silent):
        def moved(self, cells, done, total, words):
            moves.append((len(cells), done, total, words))

    tally = run("grid", cells, tmp_path, engine="batch", progress=Heard())
    assert (tally.finished, tally.failed) == (12, 0)
    assert moves == [(12, 0, 2, "epochs, compiling"), (12, 1, 2, "epochs"), (12, 2, 2, "epochs")]
    records = Store(tmp_path, "grid").records().finished
    metrics = {name for _, name, _ in records[0].metrics}
    assert metrics == {"rmse", "mae", "log_likelihood", "coverage_90", "calibration_error"}
    figures = records[0].convergence
    for name in ("tau", "acting_scale", "kappa", "kl", "mean_size", "effect"):
        assert np.isfinite(figures[f"layer1_{name}"])
    # Fits of different priors and objectives differ, and the same cell alone is the same fit.
    values = {
        record.cell: dict((m, v) for p, m, v in record.metrics if p == "test") for record in records
    }
    assert len({scores["rmse"] for scores in values.values()}) == 12
    (alone,) = run_many([cells[-1]], Context())
    assert alone.metrics["test"]["rmse"] == pytest.approx(values[cells[-1]]["rmse"], rel=1e-4)


def test_time_used_up_leaves_no_record_and_the_fits_go_on(tmp_path):
    cells = grid(1)
    folder = str(tmp_path / "checkpoints")
    with pytest.raises(KeyboardInterrupt, match="diabetes: time was up at epoch 1 of 2"):
        run("grid", cells, tmp_path / "results", engine="batch", checkpoints=folder, seconds=0)
    assert not Store(tmp_path / "results", "grid").cell_folders()
    resumed = run_many(cells, Context(checkpoints=folder))
    for one, other in zip(resumed, run_many(cells, Context())):
        assert one.metrics == other.metrics


@pytest.mark.long
def test_classes_and_deeper_networks():
    settings = SHORT | {"layers": 2, "epochs": 6, "learning_rate": 0.02}
    cells = [
        Cell("breast-wisconsin", "resnet", prior, "vi", settings=settings)
        for prior in ("predcp", "inverse-gamma")
    ]
    first, _ = run_many(cells, Context(keep_posterior=True))
    assert first.metrics["test"]["accuracy"] > 80.0
    assert {"layer2_kappa", "live_layers"} <= set(first.convergence)
    assert first.posterior is not None and first.posterior["outputs"].shape[:2] == (1, 8)


def test_what_a_cell_may_say():
    with pytest.raises(ValueError, match="resnet knows no settings depht"):
        settings_of(Cell("diabetes", "resnet", "predcp", "vi", settings={"depht": 3}))
    with pytest.raises(ValueError, match="inference must be one of 'vi'"):
        run_many([Cell("diabetes", "resnet", "predcp", "nuts", settings=SHORT)], Context())
    with pytest.raises(ValueError, match="share their data set and settings"):
        run_many([*grid(1)[:1], *grid(1, width=6)[:1]], Context())
    for cell in EXPERIMENTS["table2"]():
        settings_of(cell)


def test_regression_scores_against_their_definitions():
    generator = np.random.default_rng(0)
    outputs, y, noise = generator.normal(size=(7, 50)), generator.normal(size=50), 0.7
    found = regression_scores(outputs, y, noise)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((y - outputs.mean(0)) ** 2)))
    assert found["mae"] == pytest.approx(np.mean([np.abs(y - row).mean() for row in outputs]))
    density = stats.norm.pdf(y, outputs, noise).mean(0)
    assert found["log_likelihood"] == pytest.approx(np.log(density).mean())
    low, high = (
        np.array([_quantile(outputs[:, n], noise, q) for n in range(50)]) for q in (0.05, 0.95)
    )
    assert found["coverage_90"] == pytest.approx(np.mean((low < y) & (y < high)))


def _quantile(means, noise, q):
    from scipy.optimize import brentq

    return brentq(lambda y: stats.norm.cdf(y, means, noise).mean() - q, -50.0, 50.0)


def test_calibrated_predictions_have_no_calibration_error():
    generator = np.random.default_rng(1)
    truth = generator.normal(size=4000)
    exact = regression_scores(truth[None], truth + 0.5 * generator.normal(size=4000), 0.5)
    narrow = regression_scores(truth[None], truth + 0.5 * generator.normal(size=4000), 0.1)
    assert exact["calibration_error"] < 0.02 and abs(exact["coverage_90"] - 0.9) < 0.02
    assert narrow["calibration_error"] > 0.1 and narrow["coverage_90"] < 0.5
    far = regression_scores(np.zeros((3, 2)), np.array([1e3, -1e3]), 0.1)
    assert np.isfinite(far["log_likelihood"])


def test_class_scores():
    generator = np.random.default_rng(2)
    logits = 2.0 * generator.normal(size=(5000, 3))
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    y = np.array([generator.choice(3, p=row) for row in shares])
    honest = class_scores(logits[None], y)
    sure = class_scores(5.0 * logits[None], y)
    assert honest["calibration_error"] < 0.03 < sure["calibration_error"]
    assert honest["log_likelihood"] == pytest.approx(np.log(shares[np.arange(5000), y]).mean())
    assert np.isfinite(class_scores(np.array([[[1e4, -1e4]]]), np.array([1]))["log_likelihood"])
