"""Show the progress of training: iterations and accuracy."""

import contextlib
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from predcp._support.progress import bar
from predcp.fewshot._fit import ReportProgress


@contextlib.contextmanager
def progress_bar(progress: Any, words: str) -> Iterator[ReportProgress | None]:
    """The function that training reports to.

    **Arguments**: `progress`, None (or False) for silence, True for a bar on standard error, or a
    function of the iterations done, their total, and the validation accuracy of every run.
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with bar(words) as report:

            def report_progress(done: int, total: int, accuracy: np.ndarray) -> None:
                best = 100.0 * float(np.max(accuracy))
                report(done, total, f"{words}, accuracy {best:.1f}%")

            yield report_progress
    else:
        if not callable(progress):
            raise ValueError(
                "progress must be None, True or a function of (done, total, accuracy), got "
                f"{progress!r}"
            )
        yield cast(ReportProgress, progress)
