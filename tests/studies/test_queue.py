"""The queue of studies for a device: its jobs, and a run of it from a start to a restart."""

import pytest
from studies.queue import QUEUE, Job, bring_back, missing, restore, run

from predcp.paper import EXPERIMENTS


def test_jobs_share_no_cell_and_cover_what_is_left():
    cells = [(job.experiment, cell) for job in QUEUE for cell in job.cells()]
    assert len(cells) == len(set(cells))
    for name in ("table3-pooled", "table3-pooled-long", "shift-classes", "shift-nuts"):
        assert {cell for own, cell in cells if own == name} == set(EXPERIMENTS[name]())


@pytest.mark.long
def test_a_second_call_goes_on_where_the_first_stopped(tmp_path):
    jobs = [
        Job(f"ridge-{prior}", "toy", lambda c, p=prior: c.prior == p and c.split < 2, 1, workers)
        for prior, workers in (("unit", 0), ("evidence", 1))
    ]
    stored, first, second = (tmp_path / name for name in ("stored", "first", "second"))
    # Too little time to begin anything.
    assert run(jobs, stored, first, 10.0, 2) == {"ridge-unit": 2, "ridge-evidence": 2}
    assert run(jobs[:1], stored, first, 60.0, 2) == {"ridge-unit": 0}
    (first / "checkpoints").mkdir()
    (first / "checkpoints" / "fit").write_bytes(b"state")
    bring_back(first, tmp_path / "out")
    restore(tmp_path / "out", second)
    assert (second / "checkpoints" / "fit").read_bytes() == b"state"
    assert [len(missing(job, (stored, second / "results"))) for job in jobs] == [0, 2]
    log = (second / "logs" / "ridge-unit.log").read_text()
    assert "2 of 2 cells finished" in log
    assert run(jobs, stored, second, 60.0, 1) == {"ridge-unit": 0, "ridge-evidence": 0}
    # What the first call did is not begun again.
    assert (second / "logs" / "ridge-unit.log").read_text() == log
