"""The sentence about one scale of a program: its unit, its numbers, and the code that states it."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import predcp
from predcp.explore._choices import FAMILIES, PROBABILITIES, UPPERS, even_steps, log_steps
from predcp.program import RESPONSES, ScaleTable, Tail, tail

SENTENCE_FAMILIES = {
    "gamma (half-normal scale)": "Gamma",
    **{label: name for label, name in FAMILIES.items() if name != "Gamma"},
}


class Unit(NamedTuple):
    """A quantity that a sentence is about.

    **Arguments**
    - `name`: as `predcp.tail` calls it.
    - `label`: in the menu; `axis`: under its chart.
    - `steps`, `start`: of the slider of the upper value.
    - `log`: whether its axis is logarithmic; `low`, `high`: its ends, None where data decide.
    """

    name: str
    label: str
    axis: str
    steps: tuple[float, ...]
    start: float
    log: bool
    low: float | None = None
    high: float | None = None


_RATIOS = tuple(
    sorted({*even_steps(1.05, 2.0, 0.05), *even_steps(2.1, 4.0, 0.1), 5.0, 7.0, 10.0, 20.0})
)
_SHARES = even_steps(0.01, 0.99, 0.01)
UNITS = {
    unit.name: unit
    for unit in (
        Unit("rate_ratio", "rate ratio of two groups", "", _RATIOS, 2.0, True, low=1.0),
        Unit("odds_ratio", "odds ratio of two groups", "", _RATIOS, 2.0, True, low=1.0),
        Unit(
            "noise_ratio", "effect in units of the noise", "effect in units of the noise",
            log_steps(0.05, 10.0), 1.0, True,
        ),
        Unit("r_squared", "R²: variance explained", "", _SHARES, 0.5, False, 0.0, 1.0),
        Unit(
            "probability_change", "change of a probability", "probability, one sd of the effect up",
            _SHARES, 0.7, False, None, 1.0,
        ),
        Unit("scale", "the scale itself", "scale", (), 1.0, True),
        Unit("divergence", "nats", "nats that a prediction moves", UPPERS, 0.1, True),
    )
}  # fmt: skip
CHANCES = PROBABILITIES
STARTS = even_steps(0.05, 0.9, 0.05)


def unit_of(name: str, table: ScaleTable, median: float) -> Unit:
    """The unit with its slider; the steps of the scale itself are around the present median."""
    unit = UNITS[name]
    if name in RESPONSES and not unit.axis:
        unit = unit._replace(axis=RESPONSES[name].words)
    if name != "scale":
        return unit
    middle = median if 0.0 < median < math.inf else math.exp(float(np.median(table.log_tau)))
    decade = 10.0 ** round(math.log10(middle))
    steps = log_steps(1e-3 * decade, 1e3 * decade, 73)
    start = min(steps, key=lambda step: abs(math.log(step / middle)))
    return unit._replace(steps=steps, start=start, axis=table.scale)


@dataclass(frozen=True)
class Sentence:
    """`P(quantity > upper) = probability`, as the controls of one scale state it.

    **Arguments**: `unit`, as `predcp.tail` names quantities; `upper`; `probability`; `family` of pi;
    `before`, the probability that changes, for the unit `probability_change`.
    """

    unit: str
    upper: float
    probability: float = 0.05
    family: str = "Gamma"
    before: float = 0.5

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"unit must be one of {', '.join(UNITS)}, got {self.unit!r}")
        if self.family not in SENTENCE_FAMILIES.values():
            known = ", ".join(SENTENCE_FAMILIES.values())
            raise ValueError(f"family must be one of {known}, got {self.family!r}")
        if self.unit == "probability_change" and not self.upper > self.before:
            raise ValueError(
                f"the probability after the change must be above the one before, {self.before:g}; "
                f"it is {self.upper:g}"
            )

    @property
    def statement(self) -> Tail:
        """The statement for `with_complexity`."""
        return tail(
            probability=self.probability,
            family=getattr(predcp, self.family),
            **{self.unit: self.value(self.upper)},
        )

    def value(self, upper: Any) -> Any:
        """A value of the quantity as `tail` takes it: a number, or a pair for a change."""
        if self.unit == "probability_change":
            return (self.before, float(upper))
        return float(upper)

    def present(self, draws: dict[str, np.ndarray]) -> np.ndarray:
        """The quantity in the draws of an audit."""
        if self.unit == "scale":
            return draws["tau"]
        with np.errstate(over="ignore", divide="ignore"):
            if self.unit == "divergence":
                return np.exp(draws["log_kappa"])
            if self.unit != "probability_change":
                return draws[self.unit]
            moved = RESPONSES["odds_ratio"].to_displacement(draws["odds_ratio"])
            return 1.0 / (1.0 + np.exp(-moved) * (1.0 - self.before) / self.before)

    @property
    def code(self) -> str:
        """The call of `predcp.tail`."""
        family = "" if self.family == "Gamma" else f", family=predcp.{self.family}"
        upper = self.value(self.upper)
        return f"predcp.tail({self.unit}={upper!r}, probability={self.probability!r}{family})"
