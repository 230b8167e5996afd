"""Images in classes, the raw material of few-shot tasks."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")


@dataclass(frozen=True)
class ImageClasses:
    """Labelled images of one part of a data set; no class is in two parts.

    **Arguments:**

    - `images`: `(count, height, width, channels)`, unsigned bytes.
    - `labels`: `(count,)`, numbers into `class_names`.
    """

    name: str
    part: Part
    images: np.ndarray
    labels: np.ndarray
    class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)


def checked_part(part: str) -> Part:
    """`part` if it is one, else an error that lists them."""
    for known in PARTS:
        if part == known:
            return known
    raise ValueError(f"part must be one of {', '.join(PARTS)}, got {part!r}")
