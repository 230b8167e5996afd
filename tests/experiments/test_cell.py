import pickle
from dataclasses import replace

import pytest

from predcp.experiments import Cell

CELL = Cell("boston", "ridge", "unit", "exact", 3, 1, {"width": 50, "rate": 0.001})


def test_key_is_the_same_everywhere_and_forever():
    # Pinned: a change would orphan every stored result.
    assert CELL.key == "f675a7092175448c039a592c79d4beac1861a3af8deb19ed21a03b500d2eddac"


def test_key_depends_on_every_field_but_not_on_the_order_of_settings():
    assert replace(CELL, settings={"rate": 0.001, "width": 50}) == CELL
    changed = [
        replace(CELL, data="wine"),
        replace(CELL, model="other"),
        replace(CELL, prior="wide"),
        replace(CELL, inference="vi"),
        replace(CELL, split=4),
        replace(CELL, seed=2),
        replace(CELL, settings={"width": 51, "rate": 0.001}),
        replace(CELL, settings={"width": 50}),
    ]
    assert len({CELL, *changed}) == 9


def test_cells_travel():
    assert Cell.from_json(CELL.to_json()) == CELL
    assert pickle.loads(pickle.dumps(CELL)) == CELL


def test_cells_cannot_change():
    with pytest.raises(AttributeError):
        CELL.data = "wine"  # type: ignore[misc]
    with pytest.raises(TypeError):
        CELL.settings["width"] = 51  # type: ignore[index]


def test_names_are_readable_folder_names():
    cell = Cell("my data/../x.csv", "m", "a b", "exact")
    assert "/" not in cell.name and not cell.name.startswith(".")
    assert cell.name.endswith(f"a_b-exact-0-0-{cell.key[:12]}")


def test_bad_settings_are_named():
    with pytest.raises(TypeError, match=r"settings\['rates'\] must be a plain value"):
        replace(CELL, settings={"rates": [1, 2]})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="settings must be finite"):
        _ = replace(CELL, settings={"rate": float("nan")}).key
