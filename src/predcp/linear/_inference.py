"""Inference objects and their names."""

import dataclasses
import time
from typing import Any, Protocol, runtime_checkable

from predcp.linear._draws import Draws
from predcp.linear._layout import Progress
from predcp.linear._target import Target

# A limit on time must be positive, even where the time is over.
_NO_TIME = 1e-3
INFERENCES = ("auto", "nuts", "gibbs", "vi", "laplace")


@runtime_checkable
class Inference(Protocol):
    """An object that draws from a target: `Nuts`, `Gibbs`, `Laplace`, ..., or a user's own."""

    def sample(self, target: Target, progress: Progress | None = None) -> list[Draws]:
        """Draws of every problem of the target."""
        ...


def as_inference(inference: Any, seed: int) -> Inference:
    """The inference object of a name; an object is returned unchanged, with its own seed."""
    if inference == "auto":
        from predcp.linear._auto import Auto

        return Auto(seed=seed)
    if inference == "nuts":
        from predcp.linear._nuts import Nuts

        return Nuts(seed=seed)
    if inference == "gibbs":
        from predcp.linear._gibbs import Gibbs

        return Gibbs(seed=seed)
    if inference == "laplace":
        from predcp.linear._laplace import Laplace

        return Laplace(seed=seed)
    if inference == "vi":
        from predcp.linear._vi import MeanField

        return MeanField(seed=seed)
    if isinstance(inference, Inference) and not isinstance(inference, type):
        return inference
    raise ValueError(
        "inference must be an object with a `sample(target, progress)` method such as "
        f"predcp.linear.Nuts(), or one of the names {', '.join(map(repr, INFERENCES))}, "
        f"got {inference!r}"
    )


def with_time_left(inference: Inference, began: float) -> Inference:
    """The inference with what is left of its limit on time, if it has one.

    **Arguments**: `began`, when the fit did, on `time.monotonic()`.
    """
    limit = getattr(inference, "max_seconds", None)
    if limit is None or not dataclasses.is_dataclass(inference) or isinstance(inference, type):
        return inference
    left = max(limit - (time.monotonic() - began), _NO_TIME)
    return dataclasses.replace(inference, max_seconds=left)
