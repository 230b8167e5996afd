import pytest
from cell_models import cells, score

from predcp.experiments import Store, query, result_rows, run


@pytest.fixture
def store(tmp_path):
    run("grid", cells(count=4) + cells(count=4, prior="other"), tmp_path)
    return Store(tmp_path, "grid")


def test_query_filters(store):
    table = query(store, prior=["other"], metric=["rmse"])
    assert table.num_rows == 4
    assert set(table["prior"].to_pylist()) == {"other"}
    by_key = {cell.key: score(cell) for cell in cells(count=4, prior="other")}
    for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist()):
        assert by_key[key] == value
    assert query(store).num_rows == 16
    assert query(store, data=["absent"]).num_rows == 0


def test_rows_of_results(store):
    means = result_rows(store, metric=["rmse"])
    assert [row["prior"] for row in means] == ["other", "plain"]
    assert means[0]["splits"] == 4
    expected = sum(score(cell) for cell in cells(count=4, prior="other")) / 4
    assert means[0]["mean"] == pytest.approx(expected)
    assert len(result_rows(store, cells=True, prior=["plain"])) == 8
