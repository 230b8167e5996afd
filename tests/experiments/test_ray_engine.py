"""The ray engine on a real local cluster of several nodes, one of which is killed mid-run."""

import time

import pytest
from cell_models import cells, score

from predcp.experiments import Context, Runner, Silent, Store, run
from predcp.experiments._ray_engine import RayEngine


@pytest.fixture
def cluster():
    """A head without processors and two nodes with two slots each."""
    pytest.importorskip("ray", reason="ray is not installed (extra `cluster`)")
    import ray
    from ray.cluster_utils import Cluster

    memory = {"object_store_memory": 80 * 2**20}
    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **memory})
    nodes = [started.add_node(num_cpus=2, **memory) for _ in range(2)]
    started.wait_for_nodes()
    yield started, nodes
    ray.shutdown()
    started.shutdown()


@pytest.mark.long
def test_a_lost_node_loses_no_cell(tmp_path, cluster):
    started, nodes = cluster
    grid = cells(count=24, sleep=0.5) + cells("failing", 2, cure="absent")
    killed: list[float] = []

    class Killing(Silent):
        """Kills a node, processes and all, once a few cells are done."""

        ended_cells = 0

        def ended(self, cell, failed, elsewhere=False):
            self.ended_cells += 1
            if self.ended_cells == 3:
                started.remove_node(nodes[0], allow_graceful=False)
                killed.append(time.monotonic())

    engine = RayEngine(Context(), address=started.address)
    assert engine.capacity == 8
    store = Store(tmp_path, "grid")
    tally = Runner(store, engine, Killing()).run(grid)
    assert killed
    assert (tally.finished, tally.failed) == (25, 1)
    for record in store.records().finished:
        values = {name: value for _, name, value in record.metrics}
        assert values["rmse"] == score(record.cell)
    assert "RuntimeError: split 1 is odd" in (store.records().failed[0].traceback or "")
    assert not list(store.folder.glob(".*"))
    # The same grid again, by name and address as the command line does: nothing is left to do.
    again = run("grid", grid, tmp_path, engine="ray", address=started.address)
    assert (again.already_finished, again.finished, again.failed) == (25, 0, 1)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nonsense"])
def test_no_cluster_is_a_clear_error(tmp_path, address):
    pytest.importorskip("ray", reason="ray is not installed (extra `cluster`)")
    with pytest.raises(ConnectionError, match=f"no Ray cluster answers at {address}"):
        run("grid", cells(), tmp_path, engine="ray", address=address)


@pytest.mark.long
def test_progress_comes_back_from_the_nodes(tmp_path, cluster):
    seen = []

    class Heard(Silent):
        def moved(self, cells, done, total, words):
            seen.append((cells[0].split, done, total, words))

    started, _ = cluster
    run(
        *("grid", cells("reporting", 2, sleep=4.0), tmp_path),
        engine="ray",
        address=started.address,
        progress=Heard(),
    )
    assert {split for split, *_ in seen} == {0, 1}
    assert all(total == 40 and words == "steps" for _, _, total, words in seen)


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .*\[cluster\]"):
        run("grid", cells(), tmp_path, engine="ray")
