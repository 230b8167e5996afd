"""Programs as their authors write them, each with the divergence of its predictions by hand.

A hand-written divergence takes the scale and one draw: by site, the noise of what the scale moves and
the value of the rest. It is plain NumPy and shares no code with the library.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpyro import handlers
from numpyro.infer.reparam import LocScaleReparam

import predcp
from predcp.program import Tail

Draw = Mapping[str, np.ndarray]
# Predictions rarely move by more than a nat.
RARELY = predcp.tail(divergence=1.0, probability=0.05)


@dataclass(frozen=True)
class Example:
    """A program, its arguments, one of its scales, and `D` of one draw by hand.

    `power` is the power of the scale as which predictions move, None where they do not move as one.
    `noncentred` is the same program written the other way round; its noise sites have names in `renamed`.
    """

    model: Callable[..., Any]
    args: Callable[[], tuple[Any, ...]]
    scale: str
    divergence: Callable[..., Any]
    power: float | None = 1.0
    options: dict[str, Any] = field(default_factory=dict)
    noncentred: Callable[..., Any] | None = None
    renamed: dict[str, str] = field(default_factory=dict)
    # Effects that a sampler needs in non-centred form, or the program written so.
    reparam: tuple[str, ...] = ()
    sampled: Callable[..., Any] | None = None
    # Latent sites with one mode; all when left out.
    identified: tuple[str, ...] | None = None
    # What a modeller says instead of the author's prior.
    statement: Tail = RARELY

    def for_sampling(self) -> Callable[..., Any]:
        """The program in the form that a sampler needs."""
        if self.sampled is not None:
            return self.sampled
        config = {name: LocScaleReparam(0.0) for name in self.reparam}
        return handlers.reparam(self.model, config=config)


EXAMPLES: dict[str, Example] = {}


def normal(shift, noise):
    """Mean over rows of the divergence between normals that differ in location."""
    return np.mean(np.asarray(shift) ** 2 / (2.0 * np.asarray(noise) ** 2))


def softplus(x):
    return np.logaddexp(0.0, x)


def bernoulli(logits, start, trials=1.0):
    """Mean over trials of the divergence between coins."""
    p = 1.0 / (1.0 + np.exp(-logits))
    each = p * (logits - start) - softplus(logits) + softplus(start)
    return np.average(each, weights=np.broadcast_to(trials, each.shape))


def poisson(log_rate, start):
    step = log_rate - start
    return np.mean(np.exp(start) * (np.exp(step) * step - np.expm1(step)))


def classes(p, start):
    return np.mean(np.sum(p * np.log(p / start), -1))
