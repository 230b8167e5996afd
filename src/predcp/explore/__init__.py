"""The interactive explorer: `predcp explore`.

`scene(Choices(...))` makes all of it without a browser: charts, a summary and the NumPyro code.
`study(model, arguments, name)` and `scale_scene` do the same for a program of your own.
"""

from predcp._support.extras import needs

with needs("explore"):
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
    from predcp.explore._page import group, note, page, program_page, refusal, title
    from predcp.explore._program import (
        ScaleScene,
        Study,
        program_code,
        scale_scene,
        shown_study,
        study,
    )
    from predcp.explore._scene import Scene, scene
    from predcp.explore._sentence import CHANCES, SENTENCE_FAMILIES, STARTS, Sentence
    from predcp.explore._serve import check, serve
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
    "CHANCES",
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
    "SENTENCE_FAMILIES",
    "STARTS",
    "UPPERS",
    "Choices",
    "Curves",
    "Design",
    "ScaleScene",
    "Scene",
    "Sentence",
    "Study",
    "Tail",
    "Upload",
    "UploadError",
    "check",
    "design",
    "features",
    "group",
    "guess_outcome",
    "labels",
    "note",
    "page",
    "parse",
    "program_code",
    "program_page",
    "refusal",
    "scale_scene",
    "scene",
    "serve",
    "shown_study",
    "study",
    "title",
]
