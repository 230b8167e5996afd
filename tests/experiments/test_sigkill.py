"""A driver killed with SIGKILL at random moments loses nothing but the cells in flight."""

import random
import time

import pytest
from cell_models import cells

from predcp.experiments import Store, report, run
from predcp.experiments._document import to_markdown

GRID = {"count": 500, "sleep": 0.004}
EXPRESSION = f"cell_models.cells(count={GRID['count']}, sleep={GRID['sleep']})"


def kill_and_resume(kills: int, path, start_runner) -> int:
    """Kill drivers at random points, then finish the grid; how many had finished a cell."""
    generator = random.Random(2021)
    store = Store(path, "grid")
    lives_with_progress = 0
    done = 0
    for life in range(kills):
        driver = start_runner(EXPRESSION, path, "pool" if life % 5 == 4 else "process")
        deadline = time.monotonic() + 20
        # Half of them die soon after their first claim, half after their first result.
        while time.monotonic() < deadline:
            if at_work(store, driver.pid) if life % 2 else len(store.cell_folders()) > done:
                break
            time.sleep(0.002)
        time.sleep(generator.uniform(0.0, 0.1))
        driver.kill()
        driver.wait()
        now = len(store.cell_folders())
        lives_with_progress += now > done
        done = now
    assert done < GRID["count"], "the grid was finished before the last kill"
    driver = start_runner(EXPRESSION, path, "process")
    output, error = driver.communicate(timeout=120)
    assert driver.returncode == 0, error
    assert output.split() == [str(GRID["count"] - done), "0"]
    return lives_with_progress


def at_work(store: Store, process: int) -> bool:
    """Whether that process holds a claim."""
    for path in store.folder.glob(".claims/*.claim"):
        try:
            if path.read_text().endswith(f" {process}\n"):
                return True
        except FileNotFoundError:
            continue
    return False


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed")
    run("grid", cells(**GRID), path)
    return Store(path, "grid")


def test_fifty_kills_leave_the_store_of_an_undisturbed_run(tmp_path, start_runner, undisturbed):
    assert kill_and_resume(50, tmp_path, start_runner) >= 25
    store = Store(tmp_path, "grid")
    assert files(store) == files(undisturbed)
    ours, theirs = store.records(), undisturbed.records()
    assert not ours.corrupt and not ours.failed
    assert [record.metrics for record in ours.finished] == [
        record.metrics for record in theirs.finished
    ]
    assert to_markdown(report(store, times=False)) == to_markdown(report(undisturbed, times=False))


def files(store: Store) -> list[str]:
    """Every file and folder of the store, hidden ones and leftovers too."""
    return sorted(str(path.relative_to(store.folder)) for path in store.folder.rglob("*"))
