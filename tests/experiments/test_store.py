import json
import signal
import subprocess
import sys
import time

import pytest
from cell_models import cells
from tests.clock import slowness

from predcp.experiments import Cell, CorruptRecord, Outcome, Store, execute, run
from predcp.experiments._claim import Claim, holder, sweep

CELL = cells()[0]
# A cell with another file beside its record.
KEPT = cells("sampled")[0]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path, "grid")


def publish(store: Store, cell: Cell, outcome: Outcome | None = None) -> None:
    claim = store.claim(cell)
    assert claim is not None
    store.publish(claim, cell, outcome or execute(cell), "again")
    claim.release()


def test_a_published_cell_reads_back(store):
    outcome = execute(CELL)
    publish(store, CELL, outcome)
    record = store.read(CELL)
    assert record.cell == CELL
    assert record.metrics == outcome.metrics
    assert record.rerun == "again"
    assert record.environment["versions"]["predcp"]
    assert record.environment["device"].startswith("CPU")
    assert store.status(CELL) == "finished"
    assert [path.name for path in store.cell_folder(CELL).iterdir()] == ["cell.json"]


def test_cell_json_is_plain_json(store):
    publish(store, CELL)
    content = json.loads((store.cell_folder(CELL) / "cell.json").read_text())
    assert content["cell"] == CELL.to_json()
    assert content["key"] == CELL.key
    assert content["status"] == "finished"


def test_a_failed_cell_keeps_its_traceback(store):
    cell = cells("failing", 2, cure="absent")[1]
    publish(store, cell, execute(cell))
    assert store.status(cell) == "failed"
    assert "RuntimeError: split 1 is odd" in (store.read(cell).traceback or "")


def test_publishing_again_replaces(store):
    publish(store, CELL, Outcome(1.0, {"device": "d"}, traceback="first"))
    publish(store, CELL)
    assert store.status(CELL) == "finished"
    assert len(store.cell_folders()) == 1


def truncate_record(folder):
    path = folder / "cell.json"
    path.write_bytes(path.read_bytes()[:-40])


def alter_record(folder):
    path = folder / "cell.json"
    path.write_text(path.read_text().replace('"split": 0', '"split": 9'))


def empty_folder(folder):
    for path in folder.iterdir():
        path.unlink()


def alter_posterior(folder):
    path = folder / "posterior.nc"
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)


def truncate_posterior(folder):
    path = folder / "posterior.nc"
    path.write_bytes(path.read_bytes()[:-10])


def remove_posterior(folder):
    (folder / "posterior.nc").unlink()


DAMAGES = [
    truncate_record,
    alter_record,
    empty_folder,
    alter_posterior,
    truncate_posterior,
    remove_posterior,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_detected_and_the_cell_run_again(store, damage):
    run("grid", [KEPT], store.path, keep_posterior=True)
    expected = store.read(KEPT).metrics
    damage(store.cell_folder(KEPT))
    assert store.status(KEPT) == "corrupt"
    tally = run("grid", [KEPT], store.path)
    assert (tally.already_finished, tally.finished) == (0, 1)
    assert store.read(KEPT).metrics == expected


@pytest.mark.parametrize("damage", [d for d in DAMAGES if d is not alter_posterior])
def test_a_report_sets_damaged_cells_aside(store, damage):
    run("grid", cells("sampled", count=3), store.path, keep_posterior=True)
    damage(store.cell_folder(KEPT))
    records = store.records()
    assert (len(records.finished), len(records.corrupt)) == (2, 1)
    assert KEPT.name in str(records.corrupt[0])


def test_another_cells_files_are_corrupt(store):
    first, second = cells()[:2]
    publish(store, first)
    store.cell_folder(first).rename(store.cell_folder(second))
    with pytest.raises(CorruptRecord, match="holds another cell"):
        store.read(second)


def test_a_claim_excludes_others_until_released(store):
    claim = store.claim(CELL)
    assert claim is not None
    assert store.claim(CELL) is None
    assert store.claim(cells()[1]) is not None
    claim.release()
    again = store.claim(CELL)
    assert again is not None
    again.release()


def test_a_killed_holder_holds_nothing(tmp_path):
    program = (
        "import sys, time; from pathlib import Path; from predcp.experiments._claim import Claim\n"
        "claim = Claim.take(Path(sys.argv[1]), 'cell'); claim.staging.mkdir()\n"
        "print('held', flush=True); time.sleep(60)\n"
    )
    folder = tmp_path / "claims"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    assert Claim.take(folder, "cell") is None
    assert str(process.pid) in holder(folder, "cell")
    sweep(folder)
    assert (folder / "cell.new").is_dir()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    started = time.monotonic()
    sweep(folder)
    assert not folder.exists()
    assert time.monotonic() - started < 1.0 * slowness()


def test_experiment_names_are_folder_names(tmp_path):
    with pytest.raises(ValueError, match="plain folder name"):
        Store(tmp_path, "../elsewhere")
