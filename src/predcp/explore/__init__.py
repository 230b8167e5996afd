"""The interactive explorer: `predcp explore`.

`scene(Choices(...))` is all of it without a browser: a picture, a summary and the NumPyro code.
"""

from predcp.explore._choices import (
    COLUMNS,
    DIVERGENCES,
    FAMILIES,
    FREE_WITH_TAIL,
    MODELS,
    MOST_LAYERS,
    NOISES,
    PARAMETERS,
    PROBABILITIES,
    ROWS,
    UPPERS,
    Choices,
    Tail,
)
from predcp.explore._curves import Curves
from predcp.explore._page import error, group, note, page, title
from predcp.explore._scene import Scene, scene
from predcp.explore._serve import serve
from predcp.explore._upload import MOST_BYTES, Design, Upload, UploadError, design, parse

__all__ = [
    "COLUMNS",
    "DIVERGENCES",
    "FAMILIES",
    "FREE_WITH_TAIL",
    "MODELS",
    "MOST_BYTES",
    "MOST_LAYERS",
    "NOISES",
    "PARAMETERS",
    "PROBABILITIES",
    "ROWS",
    "UPPERS",
    "Choices",
    "Curves",
    "Design",
    "Scene",
    "Tail",
    "Upload",
    "UploadError",
    "design",
    "error",
    "group",
    "note",
    "page",
    "parse",
    "scene",
    "serve",
    "title",
]
