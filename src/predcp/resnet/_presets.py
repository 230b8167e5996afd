"""Presets of the objective: the paper's protocol, and what the public code computes."""

from dataclasses import dataclass

from predcp.resnet._network import Network
from predcp.resnet._objective import Objective

# Epochs over which the divergence rises by default: a fifth of the estimators' default of 500.
_RISE = 100


@dataclass(frozen=True)
class Preset:
    """Settings of the objective.

    **Arguments**
    - `kl_weight`: of the divergence in the ELBO; 1 is exact.
    - `averaged`: the divergence is averaged over the weights instead of summed, and set against
        the mean log likelihood: a tempered objective.
    - `flips`, `updates`, `slopes`: as in the public code, see `Objective`.
    - `warmup`: epochs over which the weight of the divergence rises. Without it heavy-tailed
        row scales shrink to 0 with the weights before these have learned anything.
    """

    kl_weight: float = 1.0
    averaged: bool = False
    flips: bool = False
    updates: bool = False
    slopes: bool = False
    warmup: int = 0

    def __post_init__(self) -> None:
        if not self.kl_weight >= 0.0 or self.warmup < 0:
            raise ValueError(
                f"kl_weight and warmup must not be negative, got {self.kl_weight!r} and "
                f"{self.warmup!r}"
            )

    @property
    def quirks(self) -> bool:
        """Whether anything besides the weight of the divergence is as in the public code."""
        return self.flips or self.updates or self.slopes

    def objective(self, network: Network, rows: int, choice: int = 0) -> Objective:
        """The objective of a fit to that many rows."""
        unit = network.weights if self.averaged else rows
        return Objective(
            choice,
            self.kl_weight / unit,
            float(self.flips),
            float(self.updates),
            float(self.slopes),
            float(self.warmup),
        )


PRESETS: dict[str, Preset] = {
    # The exact ELBO, flipout as published, the correct updates of the model.
    "paper": Preset(),
    # The public code that the paper follows, quirks included.
    "public-code": Preset(averaged=True, flips=True, updates=True, slopes=True),
    # Only its objective: the weight of the divergence, without the quirks.
    "tempered": Preset(averaged=True),
}


def default_preset(by_gradient: bool, epochs: int) -> Preset:
    """The exact ELBO; if scales move by gradients, the divergence rises over the first epochs.

    If the divergence counts before the weights have learned anything, complexity priors switch off
    layers that would be useful (`studies/shift.md`).
    """
    return Preset(warmup=min(_RISE, epochs // 5) if by_gradient else 0)


def as_preset(preset: str | Preset) -> Preset:
    """A `Preset` as it is, or one by name."""
    if isinstance(preset, Preset):
        return preset
    if preset not in PRESETS:
        raise ValueError(
            f"preset must be one of {', '.join(map(repr, PRESETS))} or a predcp.resnet.Preset, "
            f"got {preset!r}"
        )
    return PRESETS[preset]
