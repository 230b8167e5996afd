"""Packed experiments: nothing is lost, everything reads them."""

import shutil
from pathlib import Path

import pyarrow.parquet
import pytest
from cell_models import cells

from predcp.experiments import (
    CorruptRecord,
    Store,
    experiments,
    pack,
    query,
    result_rows,
    run,
    unpack,
)

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def store(tmp_path):
    """Finished cells with posterior draws, and failed ones."""
    run("grid", cells("sampled", count=3), tmp_path, keep_posterior=True)
    run("grid", cells("failing", 4, cure="absent"), tmp_path)
    return Store(tmp_path, "grid")


def files(store: Store) -> dict[str, bytes]:
    return {
        str(path.relative_to(store.folder)): path.read_bytes()
        for path in store.folder.rglob("*")
        if path.is_file()
    }


def test_unpacking_restores_every_byte(store):
    before = files(store)
    assert pack(store) == 7
    assert [path.name for path in store.path.iterdir()] == ["grid.parquet"]
    assert unpack(store) == 7
    assert files(store) == before and not store.packed_file.exists()


def test_everything_reads_packed_cells(store):
    records, rows, table = store.records(), result_rows(store), query(store)
    pack(store)
    assert store.exists and experiments(store.path) == ["grid"]
    assert store.records() == records
    assert result_rows(store) == rows
    assert query(store).equals(table)
    assert {store.status(cell) for cell in cells("sampled", count=3)} == {"finished"}
    assert store.status(cells("failing", 4, cure="absent")[1]) == "failed"


def test_a_run_resumes_from_a_packed_file(store):
    pack(store)
    grid = cells("sampled", count=5)
    tally = run("grid", grid, store.path)
    assert (tally.already_finished, tally.finished) == (3, 2)
    assert len(store.cell_folders()) == 2
    assert pack(store) == 9 and not store.folder.exists()
    assert run("grid", grid, store.path).already_finished == 5


def test_a_folder_is_newer_than_the_packed_cell(store, tmp_path):
    pack(store)
    cure = tmp_path / "absent"
    grid = cells("failing", 4, cure=str(cure))
    run("grid", grid, store.path)
    pack(store)
    cure.touch()
    assert run("grid", grid, store.path, retry_failed=True).failed == 0
    assert store.status(grid[1]) == "finished"
    pack(store)
    assert store.status(grid[1]) == "finished"


def test_damaged_folders_stay(store):
    folder = store.cell_folder(cells("sampled")[0])
    (folder / "posterior.nc").write_bytes(b"no")
    assert pack(store) == 6
    assert store.cell_folders() == [folder]
    assert len(store.records().corrupt) == 1


def test_a_claimed_cell_stays(store):
    cell = cells("sampled")[0]
    claim = store.claim(cell)
    pack(store)
    assert store.cell_folders() == [store.cell_folder(cell)]
    claim.release()


def test_foreign_and_damaged_files_are_named(store):
    pack(store)
    content = store.packed_file.read_bytes()
    store.packed_file.write_bytes(content[:100])
    with pytest.raises(CorruptRecord, match=r"grid.parquet is damaged"):
        store.records()
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), store.packed_file)
    with pytest.raises(CorruptRecord, match="was not written by `predcp store pack`"):
        store.records()
    # A damaged file is still listed, so that asking for it says what is wrong.
    assert experiments(store.path) == []
    store.packed_file.write_bytes(content[:100])
    assert experiments(store.path) == ["grid"]


def test_the_packed_file_is_a_plain_table(store):
    pack(store)
    table = pyarrow.parquet.read_table(store.packed_file).to_pylist()
    assert [row["status"] for row in table].count("failed") == 2
    first = next(row for row in table if row["metrics"])
    assert first["metrics"][0]["part"] == "test" and first["data"] == "nothing"


def test_the_repositorys_results_survive_packing(tmp_path):
    name = "table3"
    shutil.copy(RESULTS / f"{name}.parquet", tmp_path)
    store = Store(tmp_path, name)
    records = Store(RESULTS, name).records()
    assert len(records.finished) == 24 and not records.corrupt
    unpack(store)
    before = files(store)
    assert len(before) == 48 and store.records() == records
    pack(store)
    assert store.records() == records
    unpack(store)
    assert files(store) == before
