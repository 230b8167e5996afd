"""Omniglot at 28 x 28 pixels: 1623 hand-written characters, 20 drawings of each."""

import os
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np

from predcp.data._errors import DataError
from predcp.data._images import ImageClasses, checked_part
from predcp.data._locate import locate
from predcp.data._registry import Source, source

_VALIDATION = ("Armenian", "Bengali", "Early_Aramaic", "Hebrew", "Mkhedruli_(Georgian)")
_TRAINING_FROM_EVALUATION = (
    *("Angelic", "Atemayar_Qelisayer", "Atlantean", "Aurek-Besh", "Avesta", "Ge_ez"),
    *("Glagolitic", "Gurmukhi"),
)
# The published split cuts one alphabet: its last four characters are for testing.
_GURMUKHI_TEST = tuple(f"Gurmukhi/character{number}" for number in range(42, 46))
_KEYS = ("images", "labels", "char_names", "is_background_char", "vinyals_split")


def load_omniglot(part: str, directory: str | os.PathLike[str] | None = None) -> ImageClasses:
    """One part of the split of Vinyals et al.: 1028, 172 or 423 characters."""
    part = checked_part(part)
    content = read_omniglot(locate(source("omniglot"), directory))
    wanted = "val" if part == "validation" else part
    in_part = content["vinyals_split"] == wanted
    rows = in_part[content["labels"]]
    number = np.cumsum(in_part) - 1
    labels = number[content["labels"][rows]]
    names = tuple(str(name) for name in content["char_names"][in_part])
    return ImageClasses("omniglot", part, content["images"][rows][..., None], labels, names)


def load_omniglot_rotated(
    part: str, directory: str | os.PathLike[str] | None = None
) -> ImageClasses:
    """As `load_omniglot`, every training character also turned by 90, 180 and 270 degrees.

    A turned character is a separate class: 4112 classes to train on.
    """
    upright = load_omniglot(part, directory)
    if upright.part != "train":
        return upright
    turns, count = range(4), len(upright.class_names)
    return ImageClasses(
        "omniglot-rotated",
        "train",
        np.concatenate([np.rot90(upright.images, turn, (1, 2)) for turn in turns]),
        np.concatenate([upright.labels + turn * count for turn in turns]),
        tuple(f"{name}, turned {90 * turn}" for turn in turns for name in upright.class_names),
    )


def read_omniglot(path: Path) -> dict[str, np.ndarray]:
    """The arrays of the prepared file, with their sizes checked."""
    try:
        with np.load(path, allow_pickle=False) as file:
            content = {key: file[key] for key in _KEYS}
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path} is damaged or is another file ({error}); delete it and run "
            "`predcp data fetch omniglot`"
        ) from error
    drawings = np.bincount(content["labels"], minlength=len(content["char_names"]))
    if content["images"].shape != (32460, 28, 28) or not (drawings == 20).all():
        raise DataError(
            f"{path}: images are {content['images'].shape} with {drawings.min()} to "
            f"{drawings.max()} drawings a character, expected (32460, 28, 28) with 20"
        )
    return content


def build_omniglot(entry: Source, archives: list[Path], folder: Path) -> None:
    """Turn the two official archives (background, evaluation) into one array file."""
    drawings: dict[str, list[np.ndarray]] = {}
    background: set[str] = set()
    for position, path in enumerate(archives):
        try:
            with zipfile.ZipFile(path) as archive:
                for member in sorted(archive.namelist()):
                    if not member.endswith(".png"):
                        continue
                    name = "/".join(member.split("/")[1:3])
                    drawings.setdefault(name, []).append(_small(archive.read(member)))
                    if position == 0:
                        background.add(name)
        except zipfile.BadZipFile as error:
            raise DataError(f"{path.name} is not the Omniglot archive: {error}") from error
    names = sorted(drawings)
    target = folder / entry.file
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        target,
        images=np.stack([image for name in names for image in drawings[name]]),
        labels=np.repeat(np.arange(len(names)), [len(drawings[name]) for name in names]),
        char_names=np.array(names),
        is_background_char=np.array([name in background for name in names]),
        vinyals_split=np.array([_part_of(name, name in background) for name in names]),
    )


def _part_of(name: str, background: bool) -> str:
    alphabet = name.split("/")[0]
    if alphabet in _VALIDATION:
        return "val"
    training = background or alphabet in _TRAINING_FROM_EVALUATION
    return "train" if training and name not in _GURMUKHI_TEST else "test"


def _small(png: bytes) -> np.ndarray:
    from PIL import Image

    with Image.open(BytesIO(png), formats=("PNG",)) as image:
        small = image.convert("L").resize((28, 28), Image.Resampling.NEAREST)
    return np.asarray(small, dtype=np.uint8)
