import functools
import itertools
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cell_models import cells, score

from predcp.experiments import (
    Context,
    Lines,
    Live,
    ModelUnavailable,
    Outcome,
    Runner,
    Silent,
    Store,
    make_engine,
    run,
)


def executions(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


def test_every_cell_is_run_once_and_never_again(tmp_path):
    log = tmp_path / "log"
    grid = cells(count=5, log=str(log))
    assert vars(run("grid", [*grid, grid[0]], tmp_path / "store")) == {
        "total": 5,
        "already_finished": 0,
        "finished": 5,
        "failed": 0,
    }
    tally = run("grid", grid, tmp_path / "store")
    assert (tally.already_finished, tally.finished) == (5, 0)
    assert sorted(executions(log)) == sorted(cell.key for cell in grid)
    record = Store(tmp_path / "store", "grid").read(grid[3])
    assert dict((name, value) for _, name, value in record.metrics)["rmse"] == score(grid[3])


def test_a_grid_may_grow(tmp_path):
    run("grid", cells(count=2), tmp_path)
    tally = run("grid", cells(count=5), tmp_path)
    assert (tally.already_finished, tally.finished) == (2, 3)


def test_failures_are_recorded_and_retried_on_demand(tmp_path):
    cure = tmp_path / "cure"
    grid = cells("failing", 6, cure=str(cure))
    tally = run("grid", grid, tmp_path)
    assert (tally.finished, tally.failed) == (3, 3)
    cure.touch()
    tally = run("grid", grid, tmp_path)
    assert (tally.already_finished, tally.finished, tally.failed) == (3, 0, 3)
    tally = run("grid", grid, tmp_path, retry_failed=True)
    assert (tally.already_finished, tally.finished, tally.failed) == (3, 3, 0)


def test_a_model_that_returns_something_else_is_a_failure(tmp_path):
    grid = cells("not_a_result", 1)
    assert run("grid", grid, tmp_path).failed == 1
    assert "must return predcp.experiments.Result" in (
        Store(tmp_path, "grid").read(grid[0]).traceback or ""
    )


def test_absent_models_stop_the_run_before_it_starts(tmp_path):
    with pytest.raises(ModelUnavailable, match="has no model 'nothing'"):
        run("grid", cells("nothing"), tmp_path)
    with pytest.raises(ValueError, match="lists no cells"):
        run("grid", [], tmp_path)
    with pytest.raises(ValueError, match="engine must be one of process, pool, batch, ray"):
        run("grid", cells(), tmp_path, engine="threads")  # type: ignore[arg-type]
    assert not (tmp_path / "grid").exists()


class Interrupting:
    """An engine that is interrupted after a few cells, as by Ctrl-C."""

    def __init__(self, cells_before: int) -> None:
        self._inner = make_engine("process", Context())
        self._left = cells_before
        self.capacity = 1

    def submit(self, cell) -> None:
        self._inner.submit(cell)

    def collect(self, timeout: float):
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return self._inner.collect(timeout)

    def close(self) -> None:
        self._inner.close()


def test_an_interruption_keeps_finished_cells_and_no_claims(tmp_path):
    store = Store(tmp_path, "grid")
    with pytest.raises(KeyboardInterrupt):
        Runner(store, Interrupting(2), Silent()).run(cells(count=5))
    assert len(store.records().finished) == 2
    assert [path.name for path in store.folder.iterdir() if path.name.startswith(".")] == []
    assert run("grid", cells(count=5), tmp_path).finished == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["taking", "releasing"])
def test_an_interruption_in_the_middle_of_a_claim_leaves_none(
    tmp_path, monkeypatch, request, number, moment
):
    def interrupt(*_):
        raise KeyboardInterrupt

    request.addfinalizer(functools.partial(signal.signal, number, signal.getsignal(number)))
    signal.signal(number, interrupt)
    module, name = {"taking": (os, "truncate"), "releasing": (shutil, "rmtree")}[moment]
    real, calls = getattr(module, name), itertools.count(1)

    def interrupted(*arguments, **options):
        # Locked already, known to nobody yet; or known to nobody any more, still locked.
        if next(calls) == 4:
            signal.raise_signal(number)
        return real(*arguments, **options)

    monkeypatch.setattr(module, name, interrupted)
    store = Store(tmp_path, "grid")
    with pytest.raises(KeyboardInterrupt):
        run("grid", cells(count=5), tmp_path)
    assert next(calls) > 4
    assert 0 < len(store.records().finished) < 5
    assert list(store.folder.glob(".*")) == []


def test_concurrent_runners_share_the_work_and_never_collide(tmp_path, start_runner):
    log = tmp_path / "log"
    expression = f"cell_models.cells(count=60, sleep=0.03, log={str(log)!r})"
    runners = [
        start_runner(expression, tmp_path / "store", engine)
        for engine in ("process", "process", "pool")
    ]
    outputs = [runner.communicate(timeout=60) for runner in runners]
    assert [runner.returncode for runner in runners] == [0, 0, 0], outputs
    grid = cells(count=60, sleep=0.03, log=str(log))
    assert sorted(executions(log)) == sorted(cell.key for cell in grid)
    store = Store(tmp_path / "store", "grid")
    assert len(store.records().finished) == 60
    assert not list(store.folder.glob(".*"))


def test_a_runner_takes_over_from_a_killed_one(tmp_path, start_runner):
    store = Store(tmp_path / "store", "grid")
    grid = cells(count=2, sleep=30.0)
    runner = start_runner("cell_models.cells(count=2, sleep=30.0)", store.path)
    wait_for(lambda: holds_a_claim(store))
    assert store.claim(grid[0]) is None
    runner.kill()
    runner.wait()
    claim = store.claim(grid[0])
    assert claim is not None
    claim.release()
    store.sweep()
    assert not list(store.folder.iterdir())


def test_waiting_for_another_runners_cell(tmp_path, start_runner):
    store = Store(tmp_path / "store", "grid")
    expression = "cell_models.cells(count=1, sleep=1.0)"
    runner = start_runner(expression, store.path)
    wait_for(lambda: holds_a_claim(store))
    notes: list[str] = []
    progress = Silent()
    progress.note = notes.append  # type: ignore[method-assign]
    tally = run("grid", cells(count=1, sleep=1.0), store.path, progress=progress)
    assert (tally.finished, tally.failed) == (1, 0)
    assert any(f" {runner.pid}" in note for note in notes)
    assert runner.communicate(timeout=30)[0] == "1 0\n"


def test_plain_lines_tell_what_happens(tmp_path, capsys):
    grid = cells("failing", 4, cure="absent")
    run("grid", grid, tmp_path, progress=Lines(every=0.0))
    lines = capsys.readouterr().err
    assert "4 cells, 0 already done, 0 failed before" in lines
    assert f"failed: {grid[1].name}: RuntimeError: split 1 is odd" in lines
    assert "2 of 4 done, 0 running, 2 failed" in lines


def test_lines_show_progress_within_a_cell(tmp_path, capsys):
    grid = cells("reporting", 1, sleep=0.5)
    run("grid", grid, tmp_path, progress=Lines(every=0.1))
    lines = capsys.readouterr().err.splitlines()
    moves = [line for line in lines if "nothing, plain, split 0:" in line and "of 40 steps" in line]
    assert len(moves) >= 3 and "0 of 1 done, 1 running, 0 failed;" in moves[0]


def test_a_silent_model_is_not_taken_for_a_dead_one(tmp_path, capsys):
    grid = cells(count=1, sleep=2.0)
    run("grid", grid, tmp_path, progress=Lines(every=0.1, silence=0.5))
    lines = capsys.readouterr().err.splitlines()
    assert sum("split 0: running, for" in line for line in lines) >= 2


def test_the_live_view_counts(tmp_path):
    from rich.console import Console

    console = Console(
        force_terminal=True, width=100, record=True, file=(tmp_path / "out").open("w")
    )
    run("grid", cells("failing", 4, cure="absent"), tmp_path, progress=Live(console))
    text = console.export_text()
    assert "2 of 4 done, 0 running, 2 failed" in text
    assert "RuntimeError: split 3 is odd" in text


def test_outcomes_without_a_finite_number_survive(tmp_path):
    cell = cells()[0]
    store = Store(tmp_path, "grid")
    claim = store.claim(cell)
    assert claim is not None
    metrics = (("test", "rmse", float("inf")), ("test", "mae", 1.0))
    outcome = Outcome(0.1, {"device": "d"}, metrics, {"rhat_max": float("nan")})
    store.publish(claim, cell, outcome, "again")
    claim.release()
    record = store.read(cell)
    assert record.convergence == {"rhat_max": None}
    assert str(record.metrics[0][2]) == "nan" and record.metrics[1][2] == 1.0


def holds_a_claim(store: Store) -> bool:
    """Whether a runner has locked a cell: it writes its name only after that."""
    return any(path.read_text() for path in store.folder.glob(".claims/*.claim"))


def wait_for(condition, seconds: float = 20.0) -> None:
    for _ in itertools.count():
        if condition():
            return
        seconds -= 0.02
        if seconds < 0:
            raise subprocess.TimeoutExpired("condition", 20)
        time.sleep(0.02)
