"""The paper's printed figures (`paper.toml`)."""

import tomllib
from functools import lru_cache
from importlib import resources
from typing import Any

from predcp.experiments import PublishedFigure


def paper_figures(experiment: str) -> dict[tuple[str, str, str, str], PublishedFigure]:
    """`(data, prior, inference, metric)` to the printed figure; empty where there is none."""
    return {
        (entry["data"], prior, inference, metric): PublishedFigure(entry["mean"], entry["error"])
        for entry in _content().get(experiment, ())
        for prior in entry["priors"]
        for inference in entry["inferences"]
        for metric in entry["metrics"]
    }


def paper_notes(experiment: str) -> tuple[str, ...]:
    """How to read the printed figures."""
    return tuple(_content()["notes"].get(experiment, ()))


@lru_cache(maxsize=1)
def _content() -> dict[str, Any]:
    text = resources.files("predcp.paper").joinpath("paper.toml").read_text("utf-8")
    return tomllib.loads(text)
