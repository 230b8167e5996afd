"""Show how far training is, and how well it goes."""

import contextlib
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from predcp.fewshot._fit import Told


@contextlib.contextmanager
def shown(progress: Any, words: str) -> Iterator[Told | None]:
    """The function that training reports to.

    **Arguments**: `progress`, None (or False) for silence, True for a bar on standard error, or a
    function of the iterations done, their total, and the validation accuracy of every run.
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with _bar(words) as told:
            yield told
    else:
        if not callable(progress):
            raise ValueError(
                "progress must be None, True or a function of (done, total, accuracy), got "
                f"{progress!r}"
            )
        yield cast(Told, progress)


@contextlib.contextmanager
def _bar(words: str) -> Iterator[Told]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=None)

        def told(done: int, total: int, accuracy: np.ndarray) -> None:
            best = 100.0 * float(np.max(accuracy))
            bar.update(
                task, completed=done, total=total, description=f"{words}, accuracy {best:.1f}%"
            )

        yield told
