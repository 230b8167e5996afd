"""One fit at a time: nothing of an earlier fit survives, and a failed fit changes nothing."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def new_fit(estimator: Any, private: Collection[str] = ()) -> Iterator[None]:
    """Remove what the last fit of an estimator left, and restore it if the new one fails.

    **Arguments**: `private`, attributes of a fit besides those whose names end in an underscore.
    """
    before = dict(vars(estimator))
    for name in before:
        if name in private or (name.endswith("_") and not name.startswith("_")):
            delattr(estimator, name)
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
