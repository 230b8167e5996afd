"""The choices of a visitor: a model, a divergence, and pi or a statement about its tail."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np

from predcp.explore._upload import Design

Model = Literal["linear", "logistic", "network"]
Family = Literal["LogCauchy", "HalfCauchy", "Exponential", "Gamma", "GammaExponential"]
DivergenceName = Literal["kl", "reverse_kl", "squared_hellinger", "jensen_shannon"]

MODELS: dict[str, Model] = {
    "linear regression": "linear",
    "logistic regression": "logistic",
    "residual network": "network",
}
FAMILIES: dict[str, Family] = {
    "log-Cauchy": "LogCauchy",
    "half-Cauchy": "HalfCauchy",
    "exponential": "Exponential",
    "gamma": "Gamma",
    "gamma + exponential": "GammaExponential",
}
DIVERGENCES: dict[str, DivergenceName] = {
    "KL": "kl",
    "reverse KL": "reverse_kl",
    "squared Hellinger": "squared_hellinger",
    "Jensen-Shannon": "jensen_shannon",
}
# Rows times noise draws is constant, so that no slider changes the shape of an array.
ROWS = (8, 16, 32, 64, 128, 256)
COLUMNS = (1, 2, 5, 10, 20, 50)
MOST_LAYERS = 8


class Parameter(NamedTuple):
    """A number that a slider sets: its name, its first value, and the steps of the slider."""

    name: str
    start: float
    steps: tuple[float, ...]


def log_steps(low: float, high: float, count: int = 61) -> tuple[float, ...]:
    """Steps of equal ratio, rounded to three digits; 1 is one of them if it is inside."""
    raw = np.geomspace(low, high, count)
    return tuple(
        sorted({float(f"{step:.3g}") for step in raw} | ({1.0} if low < 1 < high else set()))
    )


def even_steps(low: float, high: float, step: float) -> tuple[float, ...]:
    """Steps of equal size, rounded to six digits."""
    return tuple(float(f"{value:.6g}") for value in np.arange(low, high + step / 2, step))


_SCALES = log_steps(1e-3, 1e2)
_SHAPES = even_steps(0.1, 3.0, 0.1)
NOISES = log_steps(0.1, 10.0, 41)
UPPERS = log_steps(1e-3, 10.0, 49)
PROBABILITIES = even_steps(0.01, 0.99, 0.01)

# The first values are those of the paper's Figure 1.
PARAMETERS: dict[Family, tuple[Parameter, ...]] = {
    "LogCauchy": (
        Parameter("scale", 1.0, log_steps(0.1, 10.0)),
        Parameter("loc", 0.0, even_steps(-10.0, 5.0, 0.25)),
    ),
    "HalfCauchy": (Parameter("scale", 1.0, _SCALES),),
    "Exponential": (Parameter("mean", 0.5, tuple(sorted({*_SCALES, 0.5}))),),
    "Gamma": (
        Parameter("shape", 0.2, _SHAPES),
        Parameter("scale", 2.0, tuple(sorted({*_SCALES, 2.0}))),
    ),
    "GammaExponential": (
        Parameter("weight", 0.5, even_steps(0.05, 0.95, 0.05)),
        Parameter("shape", 0.2, _SHAPES),
        Parameter("scale", 2.0, tuple(sorted({*_SCALES, 2.0}))),
        Parameter("mean", 0.5, tuple(sorted({*_SCALES, 0.5}))),
    ),
}
# The parameters that a statement about the tail does not determine.
FREE_WITH_TAIL: dict[Family, tuple[str, ...]] = {
    "LogCauchy": ("scale",),
    "HalfCauchy": (),
    "Exponential": (),
    "Gamma": ("shape",),
    "GammaExponential": ("weight", "shape", "scale", "mean"),
}


class Tail(NamedTuple):
    """`P(kappa > upper) = probability`."""

    upper: float = 0.1
    probability: float = 0.05


@dataclass(frozen=True)
class Choices:
    """Everything that determines the charts, the summary and the code.

    **Arguments**
    - `model`: `linear`, `logistic` or `network`.
    - `rows`, `columns`: of a standard normal design, if there is no `design`.
    - `noise`: standard deviation of the response, for `linear`.
    - `depth`: layers of a network, 1 to 8.
    - `design`: of a file, for `linear` and `logistic`.
    - `family`, `parameters`: pi and its parameters by name; missing ones have the paper's values.
    - `tail`: a statement about the tail, in place of one parameter.
    - `divergence`: between predictions and those of the reference.
    - `log_axes`: kappa and tau on logarithmic axes.
    """

    model: Model = "linear"
    rows: int = 32
    columns: int = 10
    noise: float = 1.0
    depth: int = 3
    design: Design | None = None
    family: Family = "LogCauchy"
    parameters: Mapping[str, float] = field(default_factory=dict)
    tail: Tail | None = None
    divergence: DivergenceName = "kl"
    log_axes: bool = True

    def __post_init__(self) -> None:
        _one_of("model", self.model, get_args(Model))
        _one_of("family", self.family, get_args(Family))
        _one_of("divergence", self.divergence, get_args(DivergenceName))
        if self.design is not None and self.model == "network":
            raise ValueError(
                "model = 'network' has one input of its own: a file is a design for linear or logistic"
            )
        if self.design is None and self.model != "network":
            _one_of("rows", self.rows, ROWS)
            _one_of("columns", self.columns, COLUMNS)
        if self.model == "network" and self.divergence == "jensen_shannon":
            raise ValueError(
                "divergence = 'jensen_shannon' is not available for networks: it has no closed form for a "
                "normal distribution; choose KL or squared Hellinger"
            )
        if not 1 <= self.depth <= MOST_LAYERS:
            raise ValueError(f"depth must be 1 to {MOST_LAYERS} layers, got {self.depth}")
        if not 0.0 < self.noise < np.inf:
            raise ValueError(f"noise must be a positive number, got {self.noise}")
        known = [parameter.name for parameter in PARAMETERS[self.family]]
        for name in self.parameters:
            if name not in known:
                raise ValueError(
                    f"parameters of {self.family} are {', '.join(known)}, got {name!r}"
                )

    def value(self, name: str) -> float:
        """The chosen value of a parameter of pi, or the paper's."""
        starts = {parameter.name: parameter.start for parameter in PARAMETERS[self.family]}
        return float(self.parameters.get(name, starts[name]))


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}, got {value!r}")
