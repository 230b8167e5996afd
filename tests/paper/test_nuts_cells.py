"""Cells of small networks by NUTS."""

import numpy as np
import pytest

from predcp.experiments import Cell, Context
from predcp.paper._nuts_cells import run


def cell(data="diabetes", **settings):
    return Cell(data, "resnet-nuts", "predcp", "nuts", 1, settings=settings)


def test_unknown_settings_are_named():
    with pytest.raises(ValueError, match="resnet-nuts knows no settings epochs"):
        run(cell(epochs=5), Context())


@pytest.mark.long
@pytest.mark.parametrize("data", ["diabetes", "iris"])
def test_a_network_is_sampled_and_scored(data):
    short = {"width": 3, "tuning": 10, "draws": 10, "temperature": 0.3}
    result = run(cell(data, moved=True, **short), Context())
    assert set(result.metrics) == {"test", "noise", "shift"}
    score = "rmse" if data == "diabetes" else "accuracy"
    assert all(np.isfinite(scores[score]) for scores in result.metrics.values())
    assert result.convergence["layer1_tau"] > 0.0
