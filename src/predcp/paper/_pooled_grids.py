"""Table 3 with a second network, tuned for MAML alone: four blocks with 2 x 2 max-pooling.

`studies/table-3-pooled.md` has the protocol. The search looks at validation classes only; what it chose
is written here, and a test holds it to the stored search.
"""

from collections.abc import Iterable, Mapping
from itertools import product

from predcp.experiments import Cell, Setting

SEEDS = 5
OMNIGLOT_SEEDS = 3
PRIORS = (
    "maml",
    "flat",
    "shrinkage-log-cauchy-1e-2",
    "shrinkage-half-cauchy-1e-2",
    "predcp-log-cauchy-1e-3",
    "predcp-log-cauchy-1e-4",
    "predcp-half-cauchy-1e-3",
)
FEWER_PRIORS = (
    "maml",
    "flat",
    "shrinkage-half-cauchy-1e-2",
    "predcp-log-cauchy-1e-3",
    "predcp-log-cauchy-1e-4",
)
# Data of a cell: its images, shots, priors, seeds.
TABLES: dict[str, tuple[str, int, tuple[str, ...], int]] = {
    "fc100-1shot": ("fc100", 1, PRIORS, SEEDS),
    "fc100-5shot": ("fc100", 5, PRIORS, SEEDS),
    "omniglot-1shot": ("omniglot-rotated", 1, FEWER_PRIORS, OMNIGLOT_SEEDS),
    "cifar100-by-class-1shot": ("cifar100-by-class", 1, FEWER_PRIORS, SEEDS),
    "cifar100-by-class-5shot": ("cifar100-by-class", 5, FEWER_PRIORS, SEEDS),
}
# Searched on validation classes with MAML alone; the classes of the third set choose nothing.
SEARCHED = ("fc100-1shot", "fc100-5shot", "omniglot-1shot")
_SEARCH_ITERATIONS = {"fc100-1shot": 6000, "fc100-5shot": 4000, "omniglot-1shot": 4000}
# The settings that a search may choose.
CHOICES = ("inner_rate", "final_rate", "weight_decay", "inner_steps", "inner_steps_test")

Choice = Mapping[str, Setting]
# What the search chose, and how long runs are: as long as the time on the device allowed.
_FC100: dict[str, Setting] = {
    **{"inner_rate": 0.1, "final_rate": 1.0, "weight_decay": 0.0},
    **{"inner_steps": 5, "inner_steps_test": 10, "iterations": 6000},
}
_FC100_5: dict[str, Setting] = {
    **_FC100,
    **{"final_rate": 0.0, "weight_decay": 0.3, "iterations": 4000},
}
CHOSEN: dict[str, Choice] = {
    "fc100-1shot": _FC100,
    "fc100-5shot": _FC100_5,
    "omniglot-1shot": {
        **{"inner_rate": 0.4, "final_rate": 0.0, "inner_steps": 1, "inner_steps_test": 3},
        "iterations": 16_000,
    },
    # Nothing is chosen here.
    "cifar100-by-class-1shot": _FC100,
    "cifar100-by-class-5shot": _FC100_5,
}
# Longer runs on Omniglot: MAML with the chosen inner rate and with twice that, as the choice was at the
# edge of the search; the priors with the chosen rate.
_LONG: dict[str, Setting] = {
    **CHOSEN["omniglot-1shot"],
    **{"iterations": 48_000, "meta_batch": 16, "validate_every": 1000},
}


def table3_pooled_search() -> list[Cell]:
    """Which setting is best for MAML with pooling? One seed, validation classes only."""
    cells = []
    for data in SEARCHED:
        length: dict[str, Setting] = {"iterations": _SEARCH_ITERATIONS[data], "tested": False}
        cells += [pooled_cell(data, "maml", 0, {**length, **choice}) for choice in _tried(data)]
    # Does half precision cost anything?
    exact: dict[str, Setting] = {
        **{"iterations": _SEARCH_ITERATIONS["fc100-1shot"], "tested": False},
        **{"precision": "default", "inner_rate": 0.03, "final_rate": 0.0},
    }
    return [*cells, pooled_cell("fc100-1shot", "maml", 0, exact)]


def table3_pooled(choices: Mapping[str, Choice] | None = None) -> list[Cell]:
    """Every prior with the setting that is best for MAML: FC100, CIFAR-100 by class and Omniglot.

    **Arguments**: `choices`, settings by data set, if not what the stored search chose.
    """
    chosen = CHOSEN if choices is None else choices
    cells = []
    for data, (_, _, priors, seeds) in TABLES.items():
        if data in chosen:
            cells += [
                pooled_cell(data, prior, seed, chosen[data])
                for seed, prior in product(range(seeds), priors)
            ]
    return cells


def table3_pooled_long() -> list[Cell]:
    """Does MAML exceed 98% on Omniglot if it trains longer, and what do priors do there? One seed."""
    faster = pooled_cell("omniglot-1shot", "maml", 0, {**_LONG, "inner_rate": 0.8})
    return [
        *(pooled_cell("omniglot-1shot", prior, 0, _LONG) for prior in FEWER_PRIORS),
        faster,
    ]


def pooled_cell(data: str, prior: str, seed: int, changes: Mapping[str, Setting]) -> Cell:
    """One run on a table's data."""
    images, shots, *_ = TABLES[data]
    settings: dict[str, Setting] = {
        "images": images,
        "network": "pooled",
        "precision": "bfloat16",
        "ways": 5,
        "shots": shots,
        "queries": 15,
        "meta_batch": 8 if images.startswith("omniglot") else 4,
        "inner_steps": 5,
        "inner_steps_test": 10,
        "outer_rate": 1e-3,
        "validate_every": 500,
        "test_tasks": 1000,
    }
    return Cell(data, "fewshot", prior, "map", seed=seed, settings={**settings, **changes})


def chosen_by(validation: Iterable[tuple[Cell, float]], data: str) -> dict[str, Setting]:
    """The settings of the cell of a search with the best accuracy on validation classes.

    **Arguments**: finished cells with that accuracy. Cells of another precision do not count.
    """
    found = [
        (accuracy, cell)
        for cell, accuracy in validation
        if cell.data == data and cell.settings["precision"] == "bfloat16"
    ]
    if not found:
        raise ValueError(f"the search holds no cells of {data}; run table3-pooled-search first")
    _, best = max(found, key=lambda pair: pair[0])
    return {name: best.settings[name] for name in CHOICES if name in best.settings}


def _tried(data: str) -> list[dict[str, Setting]]:
    if data == "omniglot-1shot":
        return [
            {"inner_rate": rate, "final_rate": 0.0, "inner_steps": steps, "inner_steps_test": test}
            for (steps, test), rate in product(((1, 3), (3, 5)), (0.1, 0.2, 0.4))
        ]
    rates = (0.01, 0.03, 0.1, 0.3)
    finals = (0.0, 1.0) if data == "fc100-1shot" else (0.0,)
    tried: list[dict[str, Setting]] = [
        {"inner_rate": rate, "final_rate": final, "weight_decay": decay}
        for rate, final, decay in product(rates, finals, (0.0, 0.3))
    ]
    if data == "fc100-1shot":
        tried += [
            {"inner_rate": rate, "final_rate": 0.0, "inner_steps": 2, "inner_steps_test": 4}
            for rate in (0.1, 0.3)
        ]
    return tried
