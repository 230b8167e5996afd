"""mini-ImageNet from a user's folder: `images/*.jpg` with `train.csv`, `val.csv` and `test.csv`."""

import csv
import os
from pathlib import Path

import numpy as np

from predcp.data._errors import DataError
from predcp.data._images import ImageClasses, checked_part
from predcp.data._locate import locate
from predcp.data._registry import source


def load_mini_imagenet(
    part: str, directory: str | os.PathLike[str] | None = None, size: int = 84
) -> ImageClasses:
    """One part of the lists of Ravi & Larochelle, as `size` x `size` colour images.

    **Arguments:** `directory` is the data directory; the folder is `fewshot/mini-imagenet` in it.
    """
    part = checked_part(part)
    folder = locate(source("mini-imagenet"), directory).parent
    rows = _read_list(folder / ("val.csv" if part == "validation" else f"{part}.csv"))
    names = tuple(sorted({label for _, label in rows}))
    number = {label: index for index, label in enumerate(names)}
    images = np.empty((len(rows), size, size, 3), dtype=np.uint8)
    for row, (filename, _) in enumerate(rows):
        images[row] = _read_image(folder / "images" / filename, size)
    labels = np.array([number[label] for _, label in rows])
    return ImageClasses("mini-imagenet", part, images, labels, names)


def _read_list(path: Path) -> list[tuple[str, str]]:
    if not path.is_file():
        raise DataError(f"mini-ImageNet needs the list {path} (columns filename,label)")
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = {"filename", "label"} - set(reader.fieldnames or ())
        if missing:
            raise DataError(f"{path} lacks the column {', '.join(sorted(missing))}")
        rows = [(row["filename"], row["label"]) for row in reader]
    if not rows:
        raise DataError(f"{path} lists no images")
    for filename, _ in rows:
        # A list must not lead out of its own folder.
        if Path(filename).name != filename:
            raise DataError(f"{path} names {filename!r}, which is not a plain file name")
    return rows


def _read_image(path: Path, size: int) -> np.ndarray:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path, formats=("JPEG",)) as image:
            return np.asarray(image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR))
    except (OSError, UnidentifiedImageError) as error:
        raise DataError(f"cannot read the image {path}: {error}") from error
