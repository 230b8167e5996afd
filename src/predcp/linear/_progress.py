"""Show how far a fit is."""

import contextlib
from collections.abc import Iterator
from typing import Any, cast

from predcp.linear._layout import Progress


@contextlib.contextmanager
def shown(progress: Any, words: str) -> Iterator[Progress | None]:
    """The function that a sampler reports to.

    **Arguments**: `progress`, None (or False) for silence, True for a bar on standard error, or a
    function of the steps done and their total.
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with _bar(words) as report:
            yield report
    else:
        if not callable(progress):
            raise ValueError(
                f"progress must be None, True or a function of (done, total), got {progress!r}"
            )
        yield cast(Progress, progress)


@contextlib.contextmanager
def _bar(words: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
