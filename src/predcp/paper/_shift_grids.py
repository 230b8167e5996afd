"""Residual networks away from the data, at other temperatures, and where a layer is switched off.

`studies/shift.md` and `studies/classes-and-nuts.md` have the protocols.
"""

from collections.abc import Mapping
from itertools import product

from predcp.experiments import Cell, Setting

PRIORS = ("fixed-0.1", "fixed-1", "inverse-gamma", "predcp")
TEMPERATURES = (0.01, 0.03, 0.1, 0.3, 1.0)
SPLITS = 10
# Features with at least four values: the middle third by any other is no gap. At most eight, the first.
GAPS: dict[str, tuple[int, ...]] = {
    "yacht": (0, 1, 2, 3, 4, 5),
    "boston": (0, 1, 2, 4, 5, 6, 7, 8),
    "energy": (0, 1, 2, 3, 5, 6, 7),
    "concrete": (0, 1, 2, 3, 4, 5, 6, 7),
    "wine": (0, 1, 2, 3, 4, 5, 6, 7),
}
# Sets of classes; on none of them was a network tuned.
CLASS_GAPS: dict[str, tuple[int, ...]] = {
    "breast": tuple(range(8)),
    "wine-cultivars": tuple(range(8)),
    "breast-wisconsin": tuple(range(8)),
}
# Of the posteriors by NUTS: a small network on the smallest set.
NUTS_PRIORS = ("fixed-1", "inverse-gamma", "predcp")
NUTS_TEMPERATURES = (0.1, 0.3, 1.0)
NUTS_SPLITS = 5
SWITCHED_OFF = ("power", "yacht", "boston", "energy", "concrete", "wine")
# Against a pole of the prior's density, a start that is too large, and a divergence that comes too early.
VARIANTS: tuple[tuple[str, dict[str, Setting]], ...] = (
    ("fixed-0.1", {}),
    ("fixed-1", {}),
    ("inverse-gamma", {}),
    ("predcp", {}),
    ("predcp", {"start": 0.01}),
    ("predcp", {"warmup": 100}),
    ("predcp-half-cauchy", {}),
    ("predcp-half-cauchy", {"warmup": 100}),
    ("predcp-exponential", {}),
    ("predcp-exponential", {"warmup": 100}),
)


def shift() -> list[Cell]:
    """Table 2's network on gaps and on moved inputs, at five temperatures."""
    return _tempered(GAPS)


def shift_classes() -> list[Cell]:
    """The same for classes, and the PredCP with a divergence that rises over 100 epochs."""
    rise: dict[str, Setting] = {
        "rows": "standard",
        "moved": True,
        "temperature": 1.0,
        "warmup": 100,
    }
    return [
        *_tempered(CLASS_GAPS),
        *(_cell(data, "predcp", split, rise) for data, split in product(CLASS_GAPS, range(SPLITS))),
    ]


def shift_nuts() -> list[Cell]:
    """Tempered posteriors of a small network on yacht, by NUTS and by variational inference."""
    cells = []
    for split, prior, temperature in product(range(NUTS_SPLITS), NUTS_PRIORS, NUTS_TEMPERATURES):
        common: dict[str, Setting] = {
            "rows": "standard",
            "moved": True,
            "temperature": temperature,
            "width": 10,
        }
        sampled: dict[str, Setting] = {"chains": 2, "tuning": 500, "draws": 500, **common}
        cells += [
            Cell("yacht", "resnet-nuts", prior, "nuts", split, settings=sampled),
            _cell("yacht", prior, split, common),
        ]
    return cells


def _tempered(sets: Mapping[str, tuple[int, ...]]) -> list[Cell]:
    cells = []
    for data, gaps in sets.items():
        held: tuple[tuple[range | tuple[int, ...], dict[str, Setting]], ...] = (
            (range(SPLITS), {"rows": "standard", "moved": True}),
            (gaps, {"rows": "gap"}),
        )
        for splits, rows in held:
            cells += [
                _cell(data, prior, split, {**rows, "temperature": temperature})
                for temperature, prior, split in product(TEMPERATURES, PRIORS, splits)
            ]
    return cells


def switched_off() -> list[Cell]:
    """Why does the PredCP switch off a layer that would pay? Validation rows only."""
    return [
        _cell(data, prior, split, {"rows": "validation", **settings})
        for data, (prior, settings), split in product(SWITCHED_OFF, VARIANTS, range(SPLITS))
    ]


def _cell(data: str, prior: str, split: int, changes: dict[str, Setting]) -> Cell:
    settings: dict[str, Setting] = {
        "width": 50,
        # An epoch of power has 242 steps, of the others 8 to 44.
        "epochs": 600 if data == "power" else 1500,
        "batch": 32,
        "samples": 10,
        "learning_rate": 1e-3,
        "noise_precision": 20.0,
        "prediction_samples": 200,
    }
    return Cell(data, "resnet", prior, "vi", split, settings={**settings, **changes})
