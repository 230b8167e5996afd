"""The driver of studies on a device: its jobs select cells, and what has ended is packed."""

import tarfile

from studies.device import JOBS, collect, run_job

from predcp.experiments import select
from predcp.paper import EXPERIMENTS


def chosen(step):
    name, *words = step
    given = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        given.setdefault(option, []).append(value)
    seeds = given.get("--seeds", [None])[0]
    return select(
        EXPERIMENTS[name](), given.get("--data", ()), keys=given.get("--cell", ()), seeds=seeds
    )


def test_jobs_cover_the_searches_and_small_studies_once():
    for name in ("table3-pooled-search", "shift", "switched-off"):
        steps = [step for steps in JOBS.values() for step in steps if step[0] == name]
        cells = [cell for step in steps for cell in chosen(step)]
        assert len(cells) == len(set(cells))
        assert set(cells) == set(EXPERIMENTS[name]())


def test_no_run_of_the_table_is_in_two_jobs():
    steps = [step for name, steps in JOBS.items() if name.startswith("pooled") for step in steps]
    cells = [cell for step in steps for cell in chosen(step)]
    assert len(cells) == len(set(cells)) and set(cells) <= set(EXPERIMENTS["table3-pooled"]())


def test_a_failing_step_does_not_stop_a_job(tmp_path, monkeypatch):
    commands = []

    class Ended:
        returncode = 1

    def run(command, check):
        commands.append(command)
        return Ended

    monkeypatch.setattr("studies.device.subprocess.run", run)
    (tmp_path / "logs").mkdir()
    run_job(tmp_path, "shift-1")
    assert [command[6] for command in commands] == ["yacht", "boston"]
    assert (tmp_path / "logs" / "shift-1.ended").exists()


def test_what_has_ended_is_packed(tmp_path, capsys):
    for path in (
        "results/shift/cell/record.json",
        "results/shift/.claims/cell",
        "logs/shift-1.log",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("words")
    collect(tmp_path, 0.0, tmp_path / "out")
    assert "running: shift-1" in capsys.readouterr().out
    (tmp_path / "logs" / "shift-1.ended").touch()
    collect(tmp_path, 60.0, tmp_path / "out")
    assert "running: nothing" in capsys.readouterr().out
    with tarfile.open(tmp_path / "out" / "shift.tar.gz") as archive:
        files = [name for name in archive.getnames() if "." in name]
    assert files == ["shift/cell/record.json"]
