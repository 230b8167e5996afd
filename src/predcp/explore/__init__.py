"""The interactive explorer: `predcp explore`.

`scene(Choices(...))` makes all of it without a browser: charts, a summary and the NumPyro code.
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
from predcp.explore._page import group, note, page, refusal, title
from predcp.explore._scene import Scene, scene
from predcp.explore._serve import serve
from predcp.explore._upload import (
    MOST_BYTES,
    Design,
    Upload,
    UploadError,
    design,
    features,
    guess_outcome,
    labels,
    parse,
)

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
    "features",
    "group",
    "guess_outcome",
    "labels",
    "note",
    "page",
    "parse",
    "refusal",
    "scene",
    "serve",
    "title",
]
