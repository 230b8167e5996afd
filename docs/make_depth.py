"""Fill the tables of the depth study from the stored results: `python docs/make_depth.py`.

`--check` only says whether the page is as the results have it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby

from make_tables import PM, RESULTS, fill_pages, markdown, metric, records
from scipy.stats import t as student

from predcp.experiments import Record, Store, mean_and_error
from predcp.paper import depth_table, layer_table

PAGES = ("depth.md",)
EXPERIMENT = "depth"
DATA = ("boston", "concrete", "energy", "yacht")
PRIORS = ("fixed-0.1", "fixed-1", "inverse-gamma", "predcp")
SHALLOW = 2
# Two scores of every prior on every data set; of every other prior against the PredCP.
COSTS = 2 * len(PRIORS) * len(DATA)
CONTESTS = 2 * (len(PRIORS) - 1) * len(DATA)
LEVEL = 0.05


@lru_cache(maxsize=1)
def found() -> dict[tuple[str, str, int], dict[int, Record]]:
    """Finished cells by data set, prior and depth, then by split."""
    cells: dict[tuple[str, str, int], dict[int, Record]] = {}
    for record in records(EXPERIMENT):
        cell = record.cell
        place = cell.data, cell.prior, int(str(cell.settings["layers"]))
        cells.setdefault(place, {})[cell.split] = record
    return cells


def deepest(data: str) -> int:
    """The largest depth that was run on a data set."""
    return max(layers for name, _, layers in found() if name == data)


def paired(first: tuple[str, str, int], second: tuple[str, str, int], score: str) -> list[float]:
    """Differences of a test score on the splits that both have."""
    ours, theirs = found()[first], found()[second]
    splits = sorted(ours.keys() & theirs.keys())
    return [metric(ours[n], "test", score) - metric(theirs[n], "test", score) for n in splits]


def marked(values: Sequence[float], digits: int, comparisons: int, unit: float = 1.0) -> str:
    """Mean ± standard error; * beyond two errors, ** after the correction; a single value as it is."""
    mean, error = mean_and_error([value * unit for value in values])
    if error is None:
        return f"{mean:+.{digits}f}"
    limit = student.ppf(1.0 - LEVEL / (2 * comparisons), len(values) - 1)
    stars = "\\*" * sum(bool(abs(mean) > bar * error) for bar in (2.0, max(2.0, limit)))
    return f"{mean:+.{digits}f}{PM}{error:.{digits}f}{stars}"


def by_depth(name: str, digits: int) -> str:
    """Means over splits against depth."""
    table = depth_table(Store(RESULTS, EXPERIMENT))
    depths = sorted(set(table["layers"]))
    rows = []
    for (data, prior), group in groupby(
        table.to_dict("records"), lambda row: (row["data"], row["prior"])
    ):
        cells = {row["layers"]: row for row in group}
        texts = [
            f"{cells[n][name]:.{digits}f}{PM}{cells[n][f'{name}_error']:.{digits}f}"
            if n in cells
            else ""
            for n in depths
        ]
        rows.append((str(data), str(prior), *texts))
    return markdown(("data", "prior", *(f"{n} layers" for n in depths)), rows)


def cost() -> str:
    """The deepest network less the one with two layers, prior by prior."""
    rows = []
    for data in DATA:
        for prior in PRIORS:
            deep, shallow = (data, prior, deepest(data)), (data, prior, SHALLOW)
            gaps = paired(deep, shallow, "rmse")
            base = mean_and_error(
                [metric(record, "test", "rmse") for record in found()[shallow].values()]
            )[0]
            mean, error = mean_and_error(gaps)
            assert error is not None
            rows.append(
                (
                    data,
                    prior,
                    f"{SHALLOW} to {deep[2]}",
                    str(len(gaps)),
                    marked(gaps, 1, COSTS, 100.0 / base),
                    f"{100.0 * (mean + 2.0 * error) / base:+.0f}%",
                    marked(paired(deep, shallow, "log_likelihood"), 3, COSTS),
                )
            )
    titles = ("data", "prior", "layers", "splits", "RMSE, per cent", "at most")
    return markdown((*titles, "log likelihood"), rows)


def times() -> str:
    """How much more depth costs under other priors than under the PredCP, on the deepest networks."""
    texts = []
    for data in ("energy", "yacht"):
        ranges = []
        for score, words in (("rmse", "as much RMSE"), ("log_likelihood", "as many nats")):
            costs = {prior: _cost(data, prior, score) for prior in PRIORS}
            ratios = [costs[prior] / costs["predcp"] for prior in PRIORS[:-1]]
            ranges.append(f"{min(ratios):.1f} to {max(ratios):.1f} times {words}")
        texts.append(f"on {data} {' and '.join(ranges)}")
    return f"- **Under every other prior it costs more**: {', '.join(texts)}.\n"


def _cost(data: str, prior: str, score: str) -> float:
    """The deepest network less the one with two layers: a share of its RMSE, or nats."""
    deep, shallow = (data, prior, deepest(data)), (data, prior, SHALLOW)
    gap = mean_and_error(paired(deep, shallow, score))[0]
    base = [metric(record, "test", score) for record in found()[shallow].values()]
    return gap / mean_and_error(base)[0] if score == "rmse" else gap


def contest() -> str:
    """The PredCP less every other prior at the largest depth."""
    rows = []
    for data in DATA:
        layers = deepest(data)
        for prior in PRIORS[:-1]:
            pair = (data, "predcp", layers), (data, prior, layers)
            rows.append(
                (
                    data,
                    str(layers),
                    prior,
                    marked(paired(*pair, "rmse"), 3, CONTESTS),
                    marked(paired(*pair, "log_likelihood"), 3, CONTESTS),
                )
            )
    return markdown(("data", "layers", "PredCP less", "RMSE", "log likelihood"), rows)


def scales() -> str:
    """Prior variance of a weight of the median layer, at two layers and at the largest depth."""
    layers = layer_table(Store(RESULTS, EXPERIMENT))
    medians = layers.groupby(["data", "layers", "prior"])["acting_scale"].median()
    rows = [
        (data, str(depth), *(f"{medians[data, depth, prior]:.2g}" for prior in PRIORS))
        for data in DATA
        for depth in (SHALLOW, deepest(data))
    ]
    return markdown(("data", "layers", *PRIORS), rows)


def made() -> str:
    """Where the cells come from."""
    sources = Counter(
        (record.environment["commit"][:12], record.environment["device"], data, layers)
        for (data, _, layers), cells in found().items()
        for record in cells.values()
    )
    rows = [
        (data, str(layers), str(count), commit, device)
        for (commit, device, data, layers), count in sorted(
            sources.items(), key=lambda item: item[0][2:]
        )
    ]
    return markdown(("data", "layers", "cells", "commit", "device"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "depth-rmse": lambda: by_depth("rmse", 3),
    "depth-likelihood": lambda: by_depth("log_likelihood", 3),
    "depth-live": lambda: by_depth("live_layers", 1),
    "depth-cost": cost,
    "depth-contest": contest,
    "depth-times": times,
    "depth-scales": scales,
    "depth-cells": made,
}


if __name__ == "__main__":
    fill_pages(__doc__, PAGES, TABLES)
