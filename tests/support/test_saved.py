import json
import pickle
import struct

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import predcp.fewshot
import predcp.linear
import predcp.resnet
from predcp._support.saved import SavedModel, SavedModelError, load_model, save_model

MODEL = SavedModel(
    "toy",
    {"weights": np.array([1.5, -2.0]), "counts": np.arange(6, dtype=np.int32).reshape(2, 3).T},
    {"prior": "unit", "levels": ["a", "b"], "noise": 0.1},
)


@pytest.fixture
def path(tmp_path):
    target = tmp_path / "model.safetensors"
    save_model(target, MODEL)
    return target


def test_round_trip(path):
    loaded = load_model(path, "toy")
    assert loaded.config == MODEL.config
    assert set(loaded.arrays) == set(MODEL.arrays)
    for name, values in MODEL.arrays.items():
        np.testing.assert_array_equal(loaded.arrays[name], values)
        assert loaded.arrays[name].dtype == values.dtype
    assert [item.name for item in path.parent.iterdir()] == ["model.safetensors"]


def test_every_altered_byte_is_noticed(path):
    content = path.read_bytes()
    for position in range(0, len(content), 7):
        altered = bytearray(content)
        altered[position] ^= 1
        path.write_bytes(altered)
        try:
            loaded = load_model(path, "toy")
        except SavedModelError:
            continue
        # Only what is not the model's own content may differ: the writer's version.
        assert loaded.config == MODEL.config
        for name, values in MODEL.arrays.items():
            np.testing.assert_array_equal(loaded.arrays[name], values)


def test_an_altered_configuration_is_refused(path):
    content = path.read_bytes()
    path.write_bytes(content.replace(b"unit", b"wide"))
    with pytest.raises(SavedModelError, match="was altered or damaged"):
        load_model(path, "toy")


@pytest.mark.parametrize("kept", [0, 4, 100, -8])
def test_a_truncated_file_is_refused(path, kept):
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(SavedModelError, match="not a saved model of predcp"):
        load_model(path, "toy")


def test_a_pickle_is_refused_and_not_executed(tmp_path):
    witness = tmp_path / "witness"

    class Dangerous:
        def __reduce__(self):
            return (witness.touch, ())

    target = tmp_path / "model.safetensors"
    target.write_bytes(pickle.dumps(Dangerous()))
    with pytest.raises(SavedModelError, match="not a saved model of predcp"):
        load_model(target, "toy")
    assert not witness.exists()


def test_foreign_and_wrong_files_are_refused(path, tmp_path):
    with pytest.raises(SavedModelError, match="holds a 'toy', expected a 'other'"):
        load_model(path, "other")
    with pytest.raises(SavedModelError, match="there is no saved model"):
        load_model(tmp_path / "absent", "toy")
    header = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    foreign = tmp_path / "foreign.safetensors"
    foreign.write_bytes(struct.pack("<Q", len(header)) + header + b"\0\0\0\0")
    with pytest.raises(SavedModelError, match="was not written by predcp"):
        load_model(foreign, "toy")


def test_what_is_not_data_cannot_be_saved(tmp_path):
    target = tmp_path / "model"
    with pytest.raises(TypeError, match=r"arrays\['x'\] must hold numbers"):
        save_model(target, SavedModel("toy", {"x": np.array([print])}, {}))
    with pytest.raises(TypeError, match="config must be plain JSON values"):
        save_model(target, SavedModel("toy", {}, {"f": print}))
    with pytest.raises(TypeError, match="config must be plain JSON values"):
        save_model(target, SavedModel("toy", {}, {"x": float("nan")}))
    assert not list(tmp_path.iterdir())


def test_every_estimator_saves_loads_and_summarises():
    rooms = (predcp.fewshot, predcp.linear, predcp.resnet)
    public = [getattr(room, name) for room in rooms for name in room.__all__]
    estimators = [
        each for each in public if isinstance(each, type) and issubclass(each, BaseEstimator)
    ]
    assert len(estimators) >= 5
    for each in estimators:
        assert all(
            callable(getattr(each, name, None)) for name in ("fit", "save", "load", "summary")
        )
    # The linear ones sample; networks and few-shot models are fitted by optimisation.
    assert isinstance(predcp.linear.LogisticRegression.posterior_, property)
    assert isinstance(predcp.linear.LinearRegression.posterior_, property)
