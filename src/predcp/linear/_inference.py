"""Ways to a posterior by name."""

from typing import Any, Protocol, runtime_checkable

from predcp.linear._draws import Draws
from predcp.linear._layout import Progress
from predcp.linear._target import Target

INFERENCES = ("nuts", "gibbs", "vi", "laplace")


@runtime_checkable
class Inference(Protocol):
    """Anything that draws from a target: `Nuts`, `Gibbs`, `Laplace`, ..., or a user's own."""

    def sample(self, target: Target, progress: Progress | None = None) -> list[Draws]:
        """Draws of every problem of the target."""
        ...


def as_inference(inference: Any, seed: int) -> Inference:
    """The object a name stands for; an object is taken as it is, its own seed included."""
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
        f"inference must be one of {', '.join(map(repr, INFERENCES))} or an object with a "
        f"`sample(target, progress)` method such as predcp.linear.Nuts(), got {inference!r}"
    )
