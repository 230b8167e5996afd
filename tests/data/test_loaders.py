import shutil

import numpy as np
import pytest

from predcp.data import DataError, Standardiser, load, load_split, registry, source, verify

SHAPES = {
    name: (entry.rows, entry.columns)
    for name, entry in registry().items()
    if entry.kind != "few-shot"
}


@pytest.mark.parametrize("name", SHAPES)
def test_registered_tables_load(real_data, name):
    table = load(name, real_data)
    assert table.features.shape == SHAPES[name]
    assert table.features.dtype == np.float64
    assert np.isfinite(table.features).all()
    assert len(table.feature_names) == SHAPES[name][1]


@pytest.mark.parametrize(
    ("name", "counts"), [("allaml", [47, 25]), ("colon", [40, 22]), ("breast", [52, 64])]
)
def test_medical_classes(real_data, name, counts):
    assert np.bincount(load(name, real_data).target).tolist() == counts


def test_known_values(real_data):
    boston = load("boston", real_data)
    assert boston.features[0, 0] == 0.00632
    assert boston.target[0] == 24.0
    breast = load("breast", real_data)
    assert breast.feature_names[:2] == ("Age", "BMI")
    assert breast.features[0].tolist()[:2] == [48.0, 23.5]


def test_standard_split_of_a_real_table(real_data):
    split = load_split("yacht", 19, real_data)
    assert (len(split.train), len(split.test)) == (277, 31)


@pytest.mark.parametrize("damage", ["truncated", "altered"])
def test_damaged_file_is_one_clear_error(real_data, tmp_path, damage):
    path = tmp_path / source("yacht").file
    path.parent.mkdir(parents=True)
    content = (real_data / source("yacht").file).read_bytes()
    path.write_bytes(content[:-100] if damage == "truncated" else b"9" + content[1:])
    with pytest.raises(DataError, match=r"yacht\.txt.*damaged.*predcp data fetch yacht"):
        load("yacht", tmp_path)


def test_absent_file_names_the_cure(tmp_path):
    with pytest.raises(DataError, match=r"predcp data fetch boston.*PREDCP_DATA"):
        load("boston", tmp_path)


def test_images_are_not_a_table():
    with pytest.raises(DataError, match="load_images"):
        load("omniglot")


@pytest.mark.parametrize("name", [*SHAPES, "cifar100", "omniglot"])
def test_real_files_are_intact(real_data, name):
    assert "pinned hash" in verify(source(name), real_data)


def test_verify_finds_an_altered_image(real_data, tmp_path):
    folder = tmp_path / "fewshot" / "cifar100"
    shutil.copytree(real_data / "fewshot" / "cifar100", folder)
    folder.chmod(0o755)
    with np.load(folder / "fish.npz") as content:
        shard = dict(content)
    shard["images"][17, 3, 3, 0] ^= 1
    (folder / "fish.npz").unlink()
    np.savez_compressed(folder / "fish.npz", **shard)
    with pytest.raises(DataError, match="hash to"):
        verify(source("cifar100"), tmp_path)


def test_standardiser_leaves_constant_columns_at_zero():
    values = np.array([[1.0, 0.1], [2.0, 0.1], [6.0, 0.1]])
    standardiser = Standardiser.fit(values)
    scores = standardiser.transform(values)
    assert scores[:, 1].tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(scores[:, 0].std(), 1.0)
    np.testing.assert_allclose(standardiser.inverse(scores), values)
