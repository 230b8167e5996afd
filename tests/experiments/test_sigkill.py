"""A driver killed with SIGKILL at random moments loses nothing but the cells in flight."""

import random
import time

import pytest
from cell_models import cells

from predcp.experiments import Store, report, run
from predcp.experiments._document import to_markdown

SLEEP = 0.004


def kill_and_resume(kills: int, count: int, path, start_runner) -> int:
    """Kill drivers at random points, then finish the grid; how many had finished a cell."""
    generator = random.Random(2021)
    store = Store(path, "grid")
    expression = f"cell_models.cells(count={count}, sleep={SLEEP})"
    lives_with_progress = 0
    done = 0
    for life in range(kills):
        driver = start_runner(expression, path, "pool" if life % 5 == 4 else "process")
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
    assert done < count, "the grid was finished before the last kill"
    driver = start_runner(expression, path, "process")
    output, error = driver.communicate(timeout=120)
    assert driver.returncode == 0, error
    assert output.split() == [str(count - done), "0"]
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


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.long)])
def test_kills_leave_the_store_of_an_undisturbed_run(kills, tmp_path, start_runner):
    count = 20 * kills
    run("grid", cells(count=count, sleep=SLEEP), tmp_path / "undisturbed")
    undisturbed = Store(tmp_path / "undisturbed", "grid")
    disturbed = tmp_path / "disturbed"
    assert kill_and_resume(kills, count, disturbed, start_runner) >= kills // 2
    store = Store(disturbed, "grid")
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
