"""Fill the tables of shift, temperature and switched-off layers: `python docs/make_shift.py`.

`--check` only says whether the page is as the results have it.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from make_depth import marked
from make_tables import PM, fill_pages, markdown, metric, pm, records

from predcp.data import source
from predcp.experiments import Record, mean_and_error

PAGES = ("shift.md",)
PRIORS = ("fixed-0.1", "fixed-1", "inverse-gamma", "predcp")
SETS = ("yacht", "boston", "energy", "concrete", "wine")
# Part of the scores, and the rows held out.
KINDS = {
    "test": ("test", "standard"),
    "noise": ("noise", "standard"),
    "shift": ("shift", "standard"),
    "gap": ("test", "gap"),
}
VARIANTS = {
    "predcp": "PredCP, log-Cauchy (default)",
    "predcp start": "tau starts at .01",
    "predcp warmup": "divergence rises",
    "predcp-half-cauchy": "half-Cauchy",
    "predcp-half-cauchy warmup": "half-Cauchy, divergence rises",
    "predcp-exponential": "exponential",
    "predcp-exponential warmup": "exponential, divergence rises",
    "fixed-0.1": "fixed at .1",
    "fixed-1": "fixed at 1",
    "inverse-gamma": "inverse gamma",
}
_PREDCPS = sum(name.startswith("predcp") for name in VARIANTS) - 1
Runs = dict[int, Record]


class Study(NamedTuple):
    """Cells of one experiment: data sets, priors (the PredCP last), and rows they are scored on."""

    experiment: str
    sets: tuple[str, ...]
    priors: tuple[str, ...]
    kinds: tuple[str, ...]
    comparisons: int

    def rivals(self) -> tuple[str, ...]:
        """What the PredCP is compared with."""
        return tuple(prior for prior in self.priors if prior != "predcp")


SHIFT = Study("shift", SETS, PRIORS, tuple(KINDS), len(SETS) * len(KINDS) * (len(PRIORS) - 1))


@lru_cache(maxsize=2)
def found(experiment: str) -> dict[tuple[str, str, str, float], Runs]:
    """Finished fits by data set, rows, prior and temperature, then by split."""
    cells: dict[tuple[str, str, str, float], Runs] = {}
    for record in records(experiment):
        cell, settings = record.cell, record.cell.settings
        prior = f"{cell.prior} rises" if settings.get("warmup") else cell.prior
        place = cell.data, str(settings["rows"]), prior, float(str(settings["temperature"]))
        cells.setdefault(place, {})[cell.split] = record
    return cells


def temperatures(study: Study = SHIFT) -> list[float]:
    """Those that were run."""
    return sorted({place[-1] for place in found(study.experiment)})


def scores(
    data: str, kind: str, prior: str, temperature: float, score: str, study: Study = SHIFT
) -> dict[int, float]:
    """A score split by split; empty if nothing was run."""
    part, rows = KINDS[kind]
    runs = found(study.experiment).get((data, rows, prior, temperature), {})
    return {split: metric(record, part, score) for split, record in runs.items()}


def paired(ours: dict[int, float], theirs: dict[int, float]) -> list[float]:
    """Differences on common splits."""
    return [ours[split] - theirs[split] for split in sorted(ours.keys() & theirs.keys())]


def levels(score: str, digits: int, study: Study = SHIFT) -> str:
    """Means over splits at T = 1."""
    rows = []
    for data in study.sets:
        for prior in study.priors:
            values = [
                list(scores(data, kind, prior, 1.0, score, study).values()) for kind in study.kinds
            ]
            if any(values):
                texts = (pm(each, digits) if each else "" for each in values)
                rows.append((data, prior, *texts))
    return markdown(("data", "prior", *study.kinds), rows)


def contest(study: Study = SHIFT) -> str:
    """PredCP less every other prior at T = 1, in log likelihood."""
    rows = []
    for data in study.sets:
        for prior in study.rivals():
            gaps = [
                paired(
                    scores(data, kind, "predcp", 1.0, "log_likelihood", study),
                    scores(data, kind, prior, 1.0, "log_likelihood", study),
                )
                for kind in study.kinds
            ]
            if any(gaps):
                texts = (marked(g, 3, study.comparisons) if len(g) > 1 else "" for g in gaps)
                rows.append((data, prior, *texts))
    return markdown(("data", "PredCP less", *study.kinds), rows)


def counts(study: Study = SHIFT) -> str:
    """How many differences of the contest exceed two errors, and which survive the correction."""
    gaps = {
        (prior, kind, data): paired(
            scores(data, kind, "predcp", 1.0, "log_likelihood", study),
            scores(data, kind, prior, 1.0, "log_likelihood", study),
        )
        for kind, data, prior in product(study.kinds, study.sets, study.rivals())
    }
    gaps = {place: values for place, values in gaps.items() if len(values) > 1}
    texts = {place: marked(values, 3, study.comparisons) for place, values in gaps.items()}
    beyond = [place for place, text in texts.items() if "\\*" in text]
    sides = []
    for words, sign in (("worse", "-"), ("better", "+")):
        own = [place for place in beyond if texts[place].startswith(sign)]
        kinds = Counter(kind for _, kind, _ in own)
        where = ", ".join(f"{number} on {kind} rows" for kind, number in kinds.items())
        sides.append(f"{words} in {len(own)}" + (f" ({where})" if own else ""))
    kept = [
        f"less {prior}, {kind} rows of {data}: {text.rstrip('*' + chr(92))}"
        for (prior, kind, data), text in texts.items()
        if text.endswith("\\*\\*")
    ]
    return (
        f"- **{len(beyond)} of {len(gaps)} differences exceed two errors; the PredCP is "
        f"{' and '.join(sides)}.** After the correction {len(kept) or 'none'} remain"
        f"{'s' * (len(kept) < 2)}{': ' * bool(kept)}{'; '.join(kept)}.\n"
    )


def best_temperature(kind: str, study: Study = SHIFT) -> str:
    """Mean log likelihood against T, and what T = 1 loses against the best."""
    rows = []
    for data in study.sets:
        for prior in study.priors:
            runs = {
                t: own
                for t in temperatures(study)
                if (own := scores(data, kind, prior, t, "log_likelihood", study))
            }
            if len(runs) > 1 and 1.0 in runs:
                rows.append((data, prior, *against_temperature(runs, temperatures(study))))
    titles = (f"T = {t:g}" for t in temperatures(study))
    return markdown(("data", "prior", *titles, "T = 1 less best"), rows)


def against_temperature(
    runs: dict[float, dict[int, float]], shown: Sequence[float], comparisons: int = 1
) -> tuple[str, ...]:
    """Means at every temperature, the best in bold, and what T = 1 loses against it."""
    means = {t: mean_and_error(list(own.values()))[0] for t, own in runs.items()}
    best = max(means, key=lambda t: means[t])
    bold = {t: "**" * (t == best and len(means) > 1) for t in means}
    texts = [f"{bold[t]}{means[t]:.3f}{bold[t]}" if t in means else "" for t in shown]
    loss = marked(paired(runs[1.0], runs[best]), 3, comparisons)
    if comparisons == 1:
        loss = loss.replace("\\*\\*", "\\*")
    return (*texts, loss if best != 1.0 else "")


@lru_cache(maxsize=1)
def switched() -> dict[tuple[str, str], Runs]:
    """Fits of the second study by data set and variant, then by split."""
    cells: dict[tuple[str, str], Runs] = {}
    for record in records("switched-off"):
        own = [name for name in ("start", "warmup") if name in record.cell.settings]
        name = " ".join([record.cell.prior, *own])
        cells.setdefault((record.cell.data, name), {})[record.cell.split] = record
    return cells


def variants() -> str:
    """Validation scores of every variant, its layers that act, and its gain over the default."""
    sets = list(dict.fromkeys(data for data, _ in switched()))
    rows = []
    for data in sets:
        base = _validation(data, "predcp")
        for name, words in VARIANTS.items():
            runs = switched().get((data, name), {})
            if not runs:
                continue
            own = _validation(data, name)
            gain = paired(own, base) if name != "predcp" else []
            alive = [record.convergence["live_layers"] or 0.0 for record in runs.values()]
            errors = [metric(record, "validation", "rmse") for record in runs.values()]
            rows.append(
                (
                    data,
                    words,
                    pm(list(own.values())),
                    pm(errors, 4),
                    f"{sum(alive):.0f} of {len(alive)}",
                    marked(gain, 4, _PREDCPS * len(sets)) if len(gain) > 1 else "",
                )
            )
    titles = ("data", "prior", "log likelihood", "RMSE", "splits with the layer", "less default")
    return markdown(titles, rows)


def _validation(data: str, name: str) -> dict[int, float]:
    runs = switched().get((data, name), {})
    return {split: metric(one, "validation", "log_likelihood") for split, one in runs.items()}


def objectives() -> str:
    """The objective at the end of a fit, in nats: does a variant end higher than the default?"""
    rows = []
    for data in dict.fromkeys(data for data, _ in switched()):
        texts = []
        for name in ("predcp warmup", "predcp start"):
            gains = list(_gains(data, name).values())
            mean, error = mean_and_error(gains)
            star = "\\*" if abs(mean) > 2.0 * error else ""
            texts += [
                f"{mean:+.0f}{PM}{error:.0f}{star}",
                f"{sum(gain > 0.0 for gain in gains)} of {len(gains)}",
            ]
        rows.append((data, *texts))
    titles = ("data", "rises less default", "higher in", "starts at .01 less default", "higher in")
    return markdown(titles, rows)


def _nats(record: Record, *, prior: bool) -> float:
    """The objective of a fit, summed over rows, with or without log p(tau)."""
    rows = validation_rows(record.cell.data)
    figures = record.convergence
    if prior:
        return rows * _figure(record, "objective")
    return rows * _figure(record, "expected_log_likelihood") - float(figures["kl"] or 0.0)


def _figure(record: Record, name: str) -> float:
    return float(record.convergence[name] or 0.0)


def validation_rows(data: str) -> int:
    """Training rows that are left when the last tenth of them is for validation."""
    return round(0.9 * round(0.9 * source(data).rows))


def _gains(data: str, name: str) -> dict[int, float]:
    ours, base = switched()[data, name], switched()[data, "predcp"]
    return {n: _nats(ours[n], prior=True) - _nats(base[n], prior=True) for n in sorted(ours)}


def posterior_of_tau() -> str:
    """Power: would a posterior of tau prefer a network without the layer? A bound for every split.

    Of all fits whose layer is off, the best one, with a posterior of tau and a layer for nothing. Of
    those whose layer is on, the best one, which pays for a posterior that is uniform within 5% around its
    tau: the mass of the prior there, and what the weights lose on average, d / 2 E(e^-u - 1 + u) for d
    of them.
    """
    width, weights = 0.05, 50 * 50
    loss = 0.25 * weights * width**2 / 3.0
    rows = []
    for split, gain in _gains("power", "predcp warmup").items():
        fits = {name: switched()["power", name][split] for name in VARIANTS}
        on = {name: _figure(each, "live_layers") > 0.0 for name, each in fits.items()}
        least = max(
            _nats(each, prior=False) - loss + _log_mass(_figure(each, "layer1_kappa"), width)
            for name, each in fits.items()
            if on[name]
        )
        most = max(
            _nats(each, prior=False) + _figure(each, "layer1_kl")
            for name, each in fits.items()
            if not on[name]
        )
        layers = ("on" if on[name] else "off" for name in ("predcp", "predcp warmup"))
        rows.append((str(split), *layers, f"{gain:+.0f}", f"{least - most:+.0f}"))
    titles = ("split", "layer, default", "layer, divergence rises", "gain in the objective")
    return markdown((*titles, "with the layer less without, at least"), rows)


def _log_mass(kappa: float, width: float) -> float:
    """Log probability under log-Cauchy(0, 1) of a divergence within a factor e^+-width."""
    low, high = (math.atan(math.log(kappa) + side * width) for side in (-1.0, 1.0))
    return math.log((high - low) / math.pi)


def made(*experiments: str) -> str:
    """Where fits come from."""
    sources = Counter(
        (
            experiment,
            record.cell.data,
            record.environment["commit"][:12],
            record.environment["device"],
        )
        for experiment in experiments
        for record in records(experiment)
    )
    rows = [(*key[:2], str(count), *key[2:]) for key, count in sorted(sources.items())]
    return markdown(("experiment", "data", "fits", "commit", "device"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "shift-likelihood": lambda: levels("log_likelihood", 3),
    "shift-rmse": lambda: levels("rmse", 3),
    "shift-contest": contest,
    "shift-counts": counts,
    "shift-temperature-test": lambda: best_temperature("test"),
    "shift-temperature-gap": lambda: best_temperature("gap"),
    "shift-variants": variants,
    "shift-objective": objectives,
    "shift-tau": posterior_of_tau,
    "shift-cells": lambda: made("shift", "switched-off"),
}


if __name__ == "__main__":
    fill_pages(__doc__, PAGES, TABLES)
