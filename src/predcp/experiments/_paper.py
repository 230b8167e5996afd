"""The paper's printed figures (`paper.toml`)."""

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class PaperFigure:
    """A printed mean and what follows its plus-minus sign."""

    mean: float
    error: float


def paper_figures(experiment: str) -> dict[tuple[str, str, str, str], PaperFigure]:
    """`(data, prior, inference, metric)` to the printed figure; empty where there is none."""
    return {
        (entry["data"], prior, inference, metric): PaperFigure(entry["mean"], entry["error"])
        for entry in _content().get(experiment, ())
        for prior in entry["priors"]
        for inference in entry["inferences"]
        for metric in entry["metrics"]
    }


def paper_notes(experiment: str) -> list[str]:
    """What to know when reading the printed figures."""
    return list(_content()["notes"].get(experiment, ()))


@lru_cache(maxsize=1)
def _content() -> dict[str, Any]:
    text = resources.files("predcp.experiments").joinpath("paper.toml").read_text("utf-8")
    return tomllib.loads(text)
