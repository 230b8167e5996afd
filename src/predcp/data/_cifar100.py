"""CIFAR-100 for few-shot learning, split by superclass (FC100) or by class.

Split by superclass, test classes are far from training classes; split by class, they are nearer.
There is one compressed shard per superclass (`images`, `labels`, `is_test`); `classes.json` names them.
"""

import hashlib
import json
import os
import pickle
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from predcp.data._errors import DataError
from predcp.data._images import ImageClasses, checked_part
from predcp.data._locate import locate
from predcp.data._registry import Source, source
from predcp.data._restricted_pickle import load_arrays

_VALIDATION = (
    "large_carnivores",
    "large_omnivores_and_herbivores",
    "non-insect_invertebrates",
    "small_mammals",
)
_TEST = ("aquatic_mammals", "insects", "medium_mammals", "people")
_SHARD_SHAPE = (3000, 32, 32, 3)
# Classes of the parts of the split by class, in the order of the hashes of their names.
_BY_CLASS = {"train": slice(0, 60), "validation": slice(60, 80), "test": slice(80, 100)}


def load_cifar100(part: str, directory: str | os.PathLike[str] | None = None) -> ImageClasses:
    """One part of FC100: 12, 4 or 4 superclasses of 5 classes of 600 images."""
    part = checked_part(part)
    classes_file = locate(source("cifar100"), directory)
    classes = json.loads(classes_file.read_text("utf-8"))
    wanted = "val" if part == "validation" else part
    split = classes["fc100_split_of_superclass"]
    shards = [
        read_shard(classes_file.parent / f"{superclass}.npz")
        for superclass in classes["superclasses"]
        if split[superclass] == wanted
    ]
    images = np.concatenate([shard["images"] for shard in shards])
    fine = np.concatenate([shard["labels"] for shard in shards])
    present, labels = np.unique(fine, return_inverse=True)
    names = tuple(classes["fine_names"][number] for number in present)
    return ImageClasses("fc100", part, images, labels, names)


def load_cifar100_by_class(
    part: str, directory: str | os.PathLike[str] | None = None
) -> ImageClasses:
    """60, 20 or 20 classes, which share superclasses between parts.

    Sorted by the SHA-256 of their names the first 60 classes are for training, the next 20 for
    validation, the last 20 for testing: a rule that was fixed before anything was run on it.
    """
    part = checked_part(part)
    classes_file = locate(source("cifar100"), directory)
    classes = json.loads(classes_file.read_text("utf-8"))
    order = sorted(
        range(len(classes["fine_names"])),
        key=lambda number: hashlib.sha256(classes["fine_names"][number].encode()).hexdigest(),
    )
    wanted = np.sort(order[_BY_CLASS[part]])
    images, fine = [], []
    for superclass in classes["superclasses"]:
        shard = read_shard(classes_file.parent / f"{superclass}.npz")
        rows = np.isin(shard["labels"], wanted)
        images.append(shard["images"][rows])
        fine.append(shard["labels"][rows])
    labels = np.searchsorted(wanted, np.concatenate(fine))
    names = tuple(classes["fine_names"][number] for number in wanted)
    return ImageClasses("cifar100-by-class", part, np.concatenate(images), labels, names)


def read_shard(path: Path) -> dict[str, np.ndarray]:
    """The arrays of one superclass."""
    try:
        with np.load(path, allow_pickle=False) as content:
            shard = {key: content[key] for key in ("images", "labels", "is_test")}
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path} is missing or damaged ({error}); run `predcp data fetch cifar100`"
        ) from error
    if shard["images"].shape != _SHARD_SHAPE or shard["images"].dtype != np.uint8:
        raise DataError(f"{path}: images are {shard['images'].shape}, expected {_SHARD_SHAPE}")
    return shard


def content_sha256(folder: Path) -> str:
    """A hash of all images with their labels, whatever their order and compression."""
    digests = []
    classes = json.loads((folder / "classes.json").read_text("utf-8"))
    for superclass in classes["superclasses"]:
        shard = read_shard(folder / f"{superclass}.npz")
        for image, label, is_test in zip(shard["images"], shard["labels"], shard["is_test"]):
            head = bytes([int(label), int(is_test)])
            digests.append(hashlib.sha256(head + image.tobytes()).digest())
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


def build_cifar100(entry: Source, archives: list[Path], folder: Path) -> None:
    """Turn the official archive into shards below `folder`."""
    target = (folder / entry.file).parent
    target.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(archives[0]) as archive:
            train, test, meta = (_member(archive, name) for name in ("train", "test", "meta"))
        names, coarse_names = meta["fine_label_names"], meta["coarse_label_names"]
        images = np.concatenate([_images(train), _images(test)])
        fine = np.concatenate([train["fine_labels"], test["fine_labels"]]).astype(np.uint8)
        coarse = np.concatenate([train["coarse_labels"], test["coarse_labels"]])
    except (tarfile.TarError, pickle.UnpicklingError, KeyError, EOFError, ValueError) as error:
        raise DataError(f"{archives[0].name} is not the CIFAR-100 archive: {error}") from error
    is_test = np.arange(len(fine)) >= len(train["fine_labels"])
    superclass_of_fine = np.zeros(len(names), dtype=int)
    superclass_of_fine[fine] = coarse
    for number, superclass in enumerate(coarse_names):
        rows = np.flatnonzero(coarse == number)
        rows = rows[np.lexsort((fine[rows], is_test[rows]))]
        np.savez_compressed(
            target / f"{superclass}.npz",
            images=images[rows],
            labels=fine[rows],
            is_test=is_test[rows],
        )
    classes = {
        "fine_names": list(names),
        "superclasses": list(coarse_names),
        "superclass_of_fine": superclass_of_fine.tolist(),
        "fc100_split_of_superclass": {name: _part_of(name) for name in coarse_names},
    }
    (target / "classes.json").write_text(json.dumps(classes, indent=1), "utf-8")


def _part_of(superclass: str) -> str:
    return "val" if superclass in _VALIDATION else "test" if superclass in _TEST else "train"


def _member(archive: tarfile.TarFile, name: str) -> dict[str, Any]:
    file = archive.extractfile(f"cifar-100-python/{name}")
    if file is None:
        raise KeyError(f"cifar-100-python/{name} is not a file")
    return load_arrays(file)


def _images(batch: dict[str, Any]) -> np.ndarray:
    data = np.asarray(batch["data"], dtype=np.uint8)
    # The archive stores channels first, each a 32 x 32 plane.
    return data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
