import hashlib
import io
import json
import pickle
import struct
import tarfile
import types
import zipfile
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from predcp.data import PARTS, DataError, ImageClasses, _cifar100, _omniglot, load_images, source
from predcp.data._cifar100 import build_cifar100
from predcp.data._omniglot import build_omniglot
from predcp.data._restricted_pickle import load_arrays

COUNTS = {
    "fc100": {"train": (36000, 60), "validation": (12000, 20), "test": (12000, 20)},
    "omniglot": {"train": (20560, 1028), "validation": (3440, 172), "test": (8460, 423)},
}


class OldPickler(pickle._Pickler):
    """Writes strings and bytes as Python 2 did, as in the official archive."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_old_string(self, value):
        data = value.encode("latin1") if isinstance(value, str) else value
        self.write(pickle.BINSTRING + struct.pack("<i", len(data)) + data)

    dispatch[str] = dispatch[bytes] = save_old_string

    def save_global(self, value, name=None):
        module = "numpy.core.multiarray" if value.__name__ == "_reconstruct" else value.__module__
        self.write(pickle.GLOBAL + f"{module}\n{value.__name__}\n".encode())

    dispatch[type] = dispatch[types.BuiltinFunctionType] = save_global


def old_pickle(value) -> bytes:
    buffer = io.BytesIO()
    OldPickler(buffer, protocol=2).dump(value)
    return buffer.getvalue()


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(f"cifar-100-python/{name}")
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("part", PARTS)
def test_real_image_sets(real_data, name, part):
    classes = load_images(name, part, real_data)
    assert (len(classes), len(classes.class_names)) == COUNTS[name][part]
    per_class = len(classes) // len(classes.class_names)
    assert (np.bincount(classes.labels) == per_class).all()
    assert classes.images.dtype == np.uint8


@pytest.mark.parametrize("name", COUNTS)
def test_no_class_is_in_two_parts(real_data, name):
    names = [set(load_images(name, part, real_data).class_names) for part in PARTS]
    assert not names[0] & names[1] and not names[0] & names[2] and not names[1] & names[2]


def test_the_split_by_class_is_a_rule_of_names(tmp_path, monkeypatch):
    names = [f"class{number}" for number in range(100)]
    file = tmp_path / source("cifar100").file
    file.parent.mkdir(parents=True)
    superclasses = [str(number) for number in range(20)]
    file.write_text(json.dumps({"fine_names": names, "superclasses": superclasses}))

    def read(path):
        labels = np.repeat(5 * int(path.stem) + np.arange(5, dtype=np.uint8), 2)
        return {"labels": labels, "images": np.tile(labels[:, None, None, None], (1, 2, 2, 3))}

    monkeypatch.setattr(_cifar100, "read_shard", read)
    parts = [load_images("cifar100-by-class", part, tmp_path) for part in PARTS]
    assert [len(part.class_names) for part in parts] == [60, 20, 20]
    assert sorted(name for part in parts for name in part.class_names) == sorted(names)
    for part in parts:
        assert len(part) == 2 * len(part.class_names)
        own = [f"class{pixel}" for pixel in part.images[:, 0, 0, 0]]
        assert own == [part.class_names[label] for label in part.labels]
    assert hashlib.sha256(b"class16").hexdigest() < hashlib.sha256(b"class79").hexdigest()
    assert "class16" in parts[0].class_names and "class79" in parts[2].class_names


def test_training_characters_are_turned(monkeypatch):
    images = np.arange(2 * 9, dtype=np.uint8).reshape(2, 3, 3, 1)

    def load(part, directory=None):
        return ImageClasses("omniglot", part, images, np.arange(2), ("a", "b"))

    monkeypatch.setattr(_omniglot, "load_omniglot", load)
    turned = load_images("omniglot-rotated", "train")
    assert turned.labels.tolist() == list(range(8)) and turned.class_names[3] == "b, turned 90"
    np.testing.assert_array_equal(turned.images[3, ..., 0], np.rot90(images[1, ..., 0]))
    assert len(load_images("omniglot-rotated", "test").class_names) == 2


def test_official_cifar_archive_becomes_shards(tmp_path):
    generator = np.random.default_rng(0)
    coarse_names = ["aquatic_mammals", "fish"]
    batches = {}
    for part, count in (("train", 40), ("test", 8)):
        fine = generator.integers(0, 4, count).tolist()
        batches[part] = {
            "data": generator.integers(0, 256, (count, 3072), dtype=np.uint8),
            "fine_labels": fine,
            "coarse_labels": [label // 2 for label in fine],
            "filenames": [f"image_{row}.png" for row in range(count)],
        }
    batches["meta"] = {
        "fine_label_names": ["a", "b", "c", "d"],
        "coarse_label_names": coarse_names,
    }
    path = tmp_path / "cifar.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in batches.items():
            add(archive, name, old_pickle(content))
    build_cifar100(source("cifar100"), [path], tmp_path)
    folder = (tmp_path / source("cifar100").file).parent
    classes = json.loads((folder / "classes.json").read_text())
    assert classes["fc100_split_of_superclass"] == {"aquatic_mammals": "test", "fish": "train"}
    assert classes["superclass_of_fine"] == [0, 0, 1, 1]
    shards = [dict(np.load(folder / f"{name}.npz")) for name in coarse_names]
    assert sum(len(shard["labels"]) for shard in shards) == 48
    assert all((np.diff(shard["is_test"].astype(int)) >= 0).all() for shard in shards)
    row = batches["train"]["fine_labels"].index(2)
    first = np.flatnonzero((shards[1]["labels"] == 2) & ~shards[1]["is_test"])[0]
    expected = batches["train"]["data"][row].reshape(3, 32, 32)
    np.testing.assert_array_equal(shards[1]["images"][first][..., 1], expected[1])


def test_pickles_may_not_call_anything():
    class Dangerous:
        def __reduce__(self):
            return (print, ("executed",))

    with pytest.raises(pickle.UnpicklingError, match=r"asks for .*print"):
        load_arrays(io.BytesIO(pickle.dumps({"data": Dangerous()})))
    with pytest.raises(pickle.UnpicklingError, match="expected a dictionary"):
        load_arrays(io.BytesIO(pickle.dumps([1, 2])))


def test_foreign_archive_is_a_data_error(tmp_path):
    path = tmp_path / "cifar.tar.gz"
    path.write_bytes(b"not an archive")
    with pytest.raises(DataError, match="is not the CIFAR-100 archive"):
        build_cifar100(source("cifar100"), [path], tmp_path)
    with tarfile.open(path, "w:gz") as archive:
        for name in ("train", "test", "meta"):
            add(archive, name, pickle.dumps({"data": print}))
    with pytest.raises(DataError, match="which no data file needs"):
        build_cifar100(source("cifar100"), [path], tmp_path)


def test_missing_shard_is_named(real_data, tmp_path):
    folder = tmp_path / "fewshot" / "cifar100"
    folder.mkdir(parents=True)
    content = (real_data / "fewshot" / "cifar100" / "classes.json").read_bytes()
    (folder / "classes.json").write_bytes(content)
    with pytest.raises(DataError, match=r"aquatic_mammals\.npz is missing or damaged"):
        load_images("fc100", "test", tmp_path)


def test_official_omniglot_archives_become_one_file(tmp_path):
    paths = []
    for archive_name, characters in (
        ("images_background", ["Latin/character01", "Hebrew/character02"]),
        (
            "images_evaluation",
            ["Gurmukhi/character41", "Gurmukhi/character42", "Keble/character01"],
        ),
    ):
        path = tmp_path / f"{archive_name}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for number, character in enumerate(characters):
                image = Image.new("1", (105, 105), 1)
                image.putpixel((52, 10 * number), 0)
                buffer = io.BytesIO()
                image.save(buffer, "PNG")
                for drawing in range(2):
                    name = f"{archive_name}/{character}/{number}_{drawing}.png"
                    archive.writestr(name, buffer.getvalue())
        paths.append(path)
    build_omniglot(source("omniglot"), paths, tmp_path)
    with np.load(tmp_path / source("omniglot").file, allow_pickle=False) as content:
        split = dict(zip(content["char_names"].tolist(), content["vinyals_split"].tolist()))
        assert content["images"].shape == (10, 28, 28)
        assert set(np.unique(content["images"])) <= {0, 255}
        assert content["labels"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
        assert content["is_background_char"].tolist() == [False, False, True, False, True]
    assert split == {
        "Gurmukhi/character41": "train",
        "Gurmukhi/character42": "test",
        "Hebrew/character02": "val",
        "Keble/character01": "test",
        "Latin/character01": "train",
    }


def test_omniglot_split_rule_gives_the_prepared_files_split(real_data):
    from predcp.data._omniglot import _part_of

    with np.load(real_data / source("omniglot").file) as content:
        ours = [
            _part_of(str(name), bool(background))
            for name, background in zip(content["char_names"], content["is_background_char"])
        ]
        assert ours == content["vinyals_split"].tolist()


def test_truncated_omniglot_is_one_clear_error(real_data, tmp_path):
    path = tmp_path / source("omniglot").file
    path.parent.mkdir(parents=True)
    path.write_bytes((real_data / source("omniglot").file).read_bytes()[:5000])
    with pytest.raises(DataError, match=r"damaged.*predcp data fetch omniglot"):
        load_images("omniglot", "train", tmp_path)


@pytest.fixture
def mini_imagenet(tmp_path):
    """A small folder of the layout users bring."""
    folder = tmp_path / "fewshot" / "mini-imagenet"
    (folder / "images").mkdir(parents=True)
    for part, labels in (("train", "ab"), ("val", "c"), ("test", "d")):
        lines = ["filename,label"]
        for label in labels:
            for number in range(3):
                name = f"{label}{number}.jpg"
                shade = 60 * number + ord(label)
                Image.new("RGB", (50, 40), (shade, 0, 0)).save(folder / "images" / name)
                lines.append(f"{name},{label}")
        (folder / f"{part}.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_mini_imagenet_from_a_folder(mini_imagenet, tmp_path):
    classes = load_images("mini-imagenet", "train", tmp_path)
    assert classes.images.shape == (6, 84, 84, 3)
    assert classes.class_names == ("a", "b")
    assert classes.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert abs(int(classes.images[4, 40, 40, 0]) - (60 + ord("b"))) < 4
    assert load_images("mini-imagenet", "validation", tmp_path).class_names == ("c",)


def test_mini_imagenet_mistakes_are_named(mini_imagenet, tmp_path):
    (mini_imagenet / "test.csv").write_text("filename,label\n../secret.jpg,d\n")
    with pytest.raises(DataError, match="not a plain file name"):
        load_images("mini-imagenet", "test", tmp_path)
    (mini_imagenet / "test.csv").write_text("file,label\nd0.jpg,d\n")
    with pytest.raises(DataError, match="lacks the column filename"):
        load_images("mini-imagenet", "test", tmp_path)
    (mini_imagenet / "images" / "a0.jpg").write_bytes(b"not an image")
    with pytest.raises(DataError, match=r"cannot read the image .*a0\.jpg"):
        load_images("mini-imagenet", "train", tmp_path)
    with pytest.raises(ValueError, match="part must be one of train, validation, test"):
        load_images("mini-imagenet", "val", tmp_path)
    with pytest.raises(DataError, match="no image set is called 'imagenet'"):
        load_images("imagenet", "train", tmp_path)
