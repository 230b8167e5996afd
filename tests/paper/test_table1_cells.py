"""Cells of Table 1 on a table that needs no download."""

import jax
import numpy as np
import pytest

from predcp.experiments import (
    Cell,
    Context,
    is_baseline,
    place_on_data,
    registered_experiments,
    resolve_model,
    select,
)
from predcp.linear import Gibbs, MeanField, Nuts, PredCP
from predcp.paper import EXPERIMENTS
from predcp.paper._class_scores import scores
from predcp.paper._table1_cells import coefficient_prior, inference, run_many

SHORT = {"chains": 2, "warmup": 50, "draws": 50, "chunk": 50}


def test_several_splits_in_one_program():
    cells = [
        Cell(
            "breast-wisconsin", "logistic", "ecp", "nuts", split, settings=SHORT | {"max_depth": 3}
        )
        for split in range(2)
    ]
    with jax.enable_x64(False):
        first, second = run_many(cells, Context(keep_posterior=True))
    assert first.metrics["test"]["accuracy"] > 80.0
    assert first.metrics["test"] != second.metrics["test"]
    figures = first.convergence
    assert {"ess_tau", "divergences", "depth_saturation"} <= set(figures)
    parts = ("rhat_probability", "rhat_tau", "rhat_log_density")
    assert figures["rhat_max"] == max(figures[name] for name in parts)
    assert first.posterior is not None and first.posterior["log_tau"].shape == (2, 50)
    assert first.posterior["log_tau"].dtype == np.float64


def test_settings_reach_the_sampler():
    cells = EXPERIMENTS["table1"]()
    made = {cell.inference: inference(cell) for cell in cells}
    assert isinstance(made["mcmc"], Gibbs) and made["mcmc"].max_draws == 32000
    assert isinstance(made["vi"], MeanField) and made["vi"].rule == "advi"
    assert isinstance(inference(Cell("d", "logistic", "ecp", "nuts")), Nuts)
    # Gibbs sweeps cost the square of the rows: a tall table is for NUTS.
    mcmc = next(cell for cell in cells if cell.inference == "mcmc")
    tall = inference(mcmc, tall=True)
    assert isinstance(tall, Nuts) and (tall.chains, tall.draws) == (4, 2000)
    draws = {
        cell.data: coefficient_prior(cell).noise_draws for cell in cells if cell.prior == "predcp"
    }
    assert draws == {"allaml": 1, "colon": 10, "breast": 10}
    assert isinstance(coefficient_prior(Cell("d", "logistic", "predcp", "mcmc")), PredCP)
    with pytest.raises(ValueError, match="inference must be"):
        inference(Cell("d", "logistic", "ecp", "guessing"))


def test_precision_is_single_or_double():
    cell = Cell("breast-wisconsin", "logistic", "ecp", "nuts", settings={"precision": "half"})
    with pytest.raises(ValueError, match="precision"):
        run_many([cell], Context())


def test_a_numeric_target_is_refused():
    cell = Cell("diabetes", "logistic", "ecp", "mcmc", settings=SHORT)
    with pytest.raises(ValueError, match="two classes"):
        run_many([cell], Context())


def test_scores_survive_huge_logits():
    logits = np.array([[[1e4, -1e4], [1e4, 1e4]]])
    found = scores(logits, np.array([1, 1]))
    np.testing.assert_allclose(found["log_likelihood"], np.log(0.5) / 2)
    assert found["accuracy"] == 50.0


def test_rare_events_on_a_users_file_are_not_a_coin_toss(tmp_path):
    """Without an intercept every prior predicts about one half and scores log(1/2)."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(400, 3))
    y = generator.uniform(size=400) < 0.035
    rows = [f"{a:.3f},{b:.3f},{c:.3f},{int(event)}" for (a, b, c), event in zip(x, y)]
    path = tmp_path / "rare.csv"
    path.write_text("a,b,c,event\n" + "\n".join(rows) + "\n")
    known = registered_experiments()["table1"]
    cells = place_on_data(
        known.cells(), [str(path)], "event", None, known.file_settings, known.baseline
    )
    assert {cell.settings["intercept"] for cell in cells if not is_baseline(cell)} == {True}
    assert sum(map(is_baseline, cells)) == 20
    chosen = select(cells, prior=["half-cauchy"], inference=["vi"], splits="1")
    base, fitted = (resolve_model(cell.model).run(cell, Context()) for cell in chosen)
    assert base.metrics["test"]["accuracy"] > 90 and fitted.metrics["test"]["accuracy"] > 90
    gap = fitted.metrics["test"]["log_likelihood"] - base.metrics["test"]["log_likelihood"]
    assert abs(gap) < 0.1


def test_the_papers_own_tables_stay_as_they_are():
    assert all("intercept" not in cell.settings for cell in EXPERIMENTS["table1"]())
