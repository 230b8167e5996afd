import os
import signal
import subprocess
import time
from itertools import pairwise

import pytest
from cell_models import cells

from predcp.experiments import Context, Runner, Silent, Store, run
from predcp.experiments._pool import ProcessPool


def metrics(store: Store) -> dict[str, tuple]:
    return {record.cell.key: record.metrics for record in store.records().finished}


def values(store: Store, name: str) -> list[float]:
    return [v for rows in metrics(store).values() for _, metric, v in rows if metric == name]


def test_the_pool_gives_what_one_process_gives(tmp_path):
    run("grid", cells(count=12), tmp_path / "one")
    run("grid", cells(count=12), tmp_path / "pool", engine="pool", workers=2)
    one, pool = Store(tmp_path / "one", "grid"), Store(tmp_path / "pool", "grid")
    assert metrics(one) == metrics(pool) and len(metrics(one)) == 12


def test_workers_have_one_core_and_one_thread_each(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    run("grid", cells("placed", 4), tmp_path, engine="pool", workers=2)
    store = Store(tmp_path, "grid")
    assert set(values(store, "cores")) == {1.0}
    assert set(values(store, "threads")) == {1.0}
    assert os.getpid() not in values(store, "process")


def test_what_a_model_prints_does_not_disturb(tmp_path, capfd):
    assert run("grid", cells("talkative", 3), tmp_path, engine="pool", workers=1).finished == 3
    assert "and so does its library" in capfd.readouterr().err


def test_a_cell_that_kills_its_worker_is_a_failure_not_the_end(tmp_path):
    grid = cells("deadly", 4)
    tally = run("grid", grid, tmp_path, engine="pool", workers=2)
    assert (tally.finished, tally.failed) == (3, 1)
    assert "signal 9" in (Store(tmp_path, "grid").read(grid[1]).traceback or "")


def test_killed_workers_are_replaced_and_their_cells_run_again(tmp_path):
    grid = cells(count=20, sleep=0.1)
    pool = ProcessPool(Context(), workers=2)
    victims: list[int] = []

    class Killing(Silent):
        def ended(self, cell, failed, elsewhere=False):
            # Two cells may end before the pool has seen the first death.
            if len(victims) < 2 and pool.process_ids[0] not in victims:
                victims.append(pool.process_ids[0])
                os.kill(victims[-1], signal.SIGKILL)

    tally = Runner(Store(tmp_path, "grid"), pool, Killing()).run(grid)
    assert (tally.finished, tally.failed) == (20, 0)
    assert len(set(victims)) == 2


def test_workers_that_cannot_live_are_an_error(tmp_path, monkeypatch):
    pool = ProcessPool(Context(), workers=1)
    monkeypatch.setattr("sys.executable", "/bin/false")
    os.kill(pool.process_ids[0], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="keep ending before any cell"):
        for _ in range(100):
            pool.collect(1.0)
    pool.close()


def test_workers_end_with_their_driver(tmp_path, start_runner):
    driver = start_runner("cell_models.cells(count=4, sleep=30.0)", tmp_path / "store", "pool")
    children: list[int] = []
    deadline = time.monotonic() + 20
    while len(children) < 2 and time.monotonic() < deadline:
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(driver.pid)], capture_output=True, text=True
        )
        children = [int(line) for line in found.stdout.split()]
        time.sleep(0.05)
    assert len(children) == 2
    time.sleep(0.5)
    driver.kill()
    driver.wait()
    while any(alive(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(child) for child in children)


@pytest.mark.parametrize("engine", ["process", "pool", "batch"])
def test_progress_within_a_cell_is_shown(tmp_path, engine):
    seen = {0: [], 1: []}

    class Heard(Silent):
        def moved(self, cells, done, total, words):
            seen[cells[0].split].append((time.monotonic(), done, total, words))

    run("grid", cells("reporting", 2, sleep=2.0), tmp_path, engine=engine, progress=Heard())
    for moves in seen.values():
        assert [done for _, done, *_ in moves] == sorted(done for _, done, *_ in moves)
        assert moves[-1][2:] == (40, "steps")
        gaps = [after[0] - before[0] for before, after in pairwise(moves)]
        assert len(moves) >= 3 and max(gaps) < 2.0


def test_bad_number_of_workers():
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        ProcessPool(Context(), workers=0)


def alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().split(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False
