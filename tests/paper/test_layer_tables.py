"""The depth experiment's tables and picture, and Table 2's cells on several devices."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import predcp
from predcp.experiments import Cell, Store, run
from predcp.paper import EXPERIMENTS, depth_picture, depth_table, layer_table

RESULTS = Path(__file__).parents[2] / "results"


def test_the_stored_depth_experiment_has_a_table_and_a_picture(tmp_path):
    with pytest.raises(LookupError, match="no cells with a depth"):
        depth_table(Store(tmp_path, "depth"))
    with pytest.raises(LookupError, match="no residual networks"):
        layer_table(Store(tmp_path, "depth"))
    store = Store(RESULTS, "depth")
    table = depth_table(store)
    cells = EXPERIMENTS["depth"]()
    assert set(table["layers"]) == {cell.settings["layers"] for cell in cells}
    # Every stored cell is one of the grid's, half of whose splits are run.
    assert {record.cell for record in store.records().finished} <= set(cells)
    assert (table["splits"] == 10).all() and len(table) == 4 * (4 * 4 + 2)
    assert (table["live_layers"] <= table["layers"]).all()
    layers = layer_table(store)
    # Four priors: 2 + 5 + 10 + 25 layers on four data sets, 50 on one, 100 on one.
    assert len(layers) == 4 * (4 * 42 + 50 + 100) and layers["alive"].between(0.0, 1.0).all()
    assert (layers["acting_scale"] > 0.0).all()
    assert len(depth_picture(store).axes) == 8


@pytest.mark.long
def test_the_depth_experiment_has_a_table_and_a_picture(tmp_path):
    settings = {"width": 4, "epochs": 1, "samples": 1, "prediction_samples": 4, "batch": 200}
    cells = [
        Cell("diabetes", "resnet", prior, "vi", split, settings=settings | {"layers": layers})
        for prior in ("inverse-gamma", "fixed-1")
        for layers in (1, 2)
        for split in range(2)
    ]
    store = Store(tmp_path, "depth")
    run("depth", cells, tmp_path, engine="batch")
    table = depth_table(store)
    assert len(table) == 4 and set(table["layers"]) == {1, 2} and (table["splits"] == 2).all()
    assert (table["live_layers"] <= table["layers"]).all()
    layers = layer_table(store)
    # Two priors with one layer and with two: six layers in all.
    assert len(layers) == 6 and layers["alive"].between(0.0, 1.0).all()
    assert (layers["acting_scale"] > 0.0).all()
    figure = depth_picture(store)
    assert len(figure.axes) == 2


_SHARDED = """
import jax
from predcp.experiments import Cell, Context
from predcp.paper import _table2_cells as cell
from predcp.resnet import _sharding
assert jax.device_count() == 8
settings = {"width": 5, "epochs": 2, "samples": 2, "prediction_samples": 8, "batch": 64}
cells = [Cell("diabetes", "resnet", prior, "vi", split, settings=settings)
         for prior in ("inverse-gamma", "predcp") for split in range(5)]
spread = _sharding.over_devices
seen = []
def watched(tree, devices=None):
    tree = spread(tree, devices)
    seen.append(len(jax.tree.leaves(tree)[0].sharding.device_set))
    return tree
for devices in (jax.devices()[:1], jax.devices()):
    cell.over_devices = lambda tree: watched(tree, devices)
    for result in cell.run_many(cells, Context()):
        print(*(float(v).hex() for v in result.metrics["test"].values()))
assert seen == [1, 8], seen
"""


@pytest.mark.long
def test_eight_devices_give_the_result_of_one():
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(Path(predcp.__file__).parents[1]),
    }
    done = subprocess.run(
        [sys.executable, "-c", _SHARDED],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = np.array(
        [[float.fromhex(v) for v in line.split()] for line in done.stdout.splitlines()]
    )
    assert found.shape == (20, 5)
    # Batched products may add in another order on fewer fits.
    np.testing.assert_allclose(found[10:], found[:10], rtol=1e-4, atol=1e-5)
