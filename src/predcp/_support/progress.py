"""Show the progress of a fit."""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

# Called with the work done and the total work; the total may grow.
Progress = Callable[..., None]


class Bar(Protocol):
    """`bar(done, total, words)` shows the work done; new words, if given, replace the old."""

    def __call__(self, done: int, total: int, words: str | None = None) -> None: ...


@contextlib.contextmanager
def progress_bar(
    progress: Any, words: str, describe: Callable[[Any], str] | None = None
) -> Iterator[Progress | None]:
    """The function that a fit reports to.

    **Arguments**
    - `progress`: None (or False) for silence, True for a bar on standard error, or a function of
        the steps done, their total and, if it takes three arguments, words for what is being done
        (`compiling`, `sampling`; None for no change).
    - `words`: the label of the bar.
    - `describe`: for a fit whose third argument is a value instead of words (an accuracy, say):
        the words of a bar for that value.
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with bar(words if describe is None else f"{words}, compiling") as report:
            if describe is None:
                yield report
            else:
                yield lambda done, total, value: report(done, total, f"{words}, {describe(value)}")
    else:
        if not callable(progress):
            arguments = "(done, total)" if describe is None else "(done, total, value)"
            raise ValueError(
                f"progress must be None, True or a function of {arguments}, got {progress!r}"
            )
        given = cast(Progress, progress)
        yield as_report(given) if describe is None else given


def as_report(progress: Progress | None) -> Bar:
    """A function `report(done, total, words)` of any function of progress, or of None.

    Words are passed only to a function of three arguments.
    """
    if progress is None:
        return lambda done, total, words=None: None
    try:
        inspect.signature(progress).bind(0, 1, "words")
    except TypeError:
        return lambda done, total, words=None: progress(done, total)
    return cast(Bar, progress)


@contextlib.contextmanager
def bar(words: str) -> Iterator[Bar]:
    """A bar on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as shown_bar:
        task = shown_bar.add_task(words, total=None)

        def report(done: int, total: int, words: str | None = None) -> None:
            shown_bar.update(task, completed=done, total=total, description=words)

        yield report
