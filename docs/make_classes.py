"""Fill the tables of classes and of tempered posteriors by NUTS: `python docs/make_classes.py`.

`--check` only says whether the page is as the results have it.
"""

from collections.abc import Callable

from make_depth import marked
from make_shift import (
    Study,
    against_temperature,
    best_temperature,
    contest,
    counts,
    levels,
    made,
    paired,
)
from make_tables import fill_pages, markdown, metric, pm, records

from predcp.experiments import Record

PAGES = ("classes-and-nuts.md",)
SETS = ("breast", "wine-cultivars", "breast-wisconsin")
PRIORS = ("fixed-0.1", "fixed-1", "inverse-gamma", "predcp rises", "predcp")
# Three priors on four kinds of rows, and the PredCP that rises on three.
CLASSES = Study("shift-classes", SETS, PRIORS, ("test", "noise", "shift", "gap"), 3 * (4 * 3 + 3))
NUTS, SAMPLED, FITTED = "shift-nuts", "nuts", "vi"
NUTS_PRIORS = ("fixed-1", "inverse-gamma", "predcp")
# Six losses of T = 1, three of the variational fit, six of the PredCP against others.
NUTS_COMPARISONS = 15


def runs(inference: str, prior: str, temperature: float) -> dict[int, Record]:
    """Finished cells by split."""
    return {
        record.cell.split: record
        for record in records(NUTS)
        if (record.cell.inference, record.cell.prior) == (inference, prior)
        and record.cell.settings["temperature"] == temperature
    }


def scores(
    inference: str,
    prior: str,
    temperature: float,
    score: str = "log_likelihood",
    part: str = "test",
) -> dict[int, float]:
    """A score split by split."""
    found = runs(inference, prior, temperature)
    return {split: metric(record, part, score) for split, record in found.items()}


def temperatures() -> list[float]:
    """Those that were run."""
    return sorted({float(str(record.cell.settings["temperature"])) for record in records(NUTS)})


def nuts_temperatures() -> str:
    """Log likelihood of test rows against T, by NUTS and by variational inference."""
    rows = []
    for inference in (SAMPLED, FITTED):
        for prior in NUTS_PRIORS:
            own = {t: runs for t in temperatures() if (runs := scores(inference, prior, t))}
            if 1.0 in own:
                texts = against_temperature(own, temperatures(), NUTS_COMPARISONS)
                rows.append((inference, prior, str(len(own[1.0])), *texts))
    titles = (f"T = {t:g}" for t in temperatures())
    return markdown(("inference", "prior", "splits", *titles, "T = 1 less best"), rows)


def nuts_levels() -> str:
    """Scores at T = 1, and NUTS less the variational fit."""
    rows = []
    for prior in NUTS_PRIORS:
        pair = [scores(inference, prior, 1.0) for inference in (SAMPLED, FITTED)]
        for inference in (SAMPLED, FITTED):
            if not scores(inference, prior, 1.0):
                continue
            texts = [
                pm(list(scores(inference, prior, 1.0, score, part).values()))
                for score, part in (
                    ("log_likelihood", "test"),
                    ("log_likelihood", "noise"),
                    ("log_likelihood", "shift"),
                    ("rmse", "test"),
                )
            ]
            own = paired(*pair) if inference == SAMPLED else []
            gap = marked(own, 3, NUTS_COMPARISONS) if own else ""
            rows.append((prior, inference, *texts, gap))
    titles = ("prior", "inference", "test", "noise", "shift", "test RMSE")
    return markdown((*titles, "NUTS less variational, test"), rows)


def nuts_contest() -> str:
    """PredCP less other priors at T = 1, by NUTS."""
    rows = []
    for prior in NUTS_PRIORS[:-1]:
        gaps = [
            paired(
                scores(SAMPLED, "predcp", 1.0, part=part), scores(SAMPLED, prior, 1.0, part=part)
            )
            for part in ("test", "noise", "shift")
        ]
        if all(gaps):
            rows.append((prior, *(marked(each, 3, NUTS_COMPARISONS) for each in gaps)))
    return markdown(("PredCP less", "test", "noise", "shift"), rows)


def nuts_chains() -> str:
    """How far the chains can be trusted."""
    rows = []
    for prior in NUTS_PRIORS:
        for temperature in temperatures():
            figures = [one.convergence for one in runs(SAMPLED, prior, temperature).values()]
            if not figures:
                continue
            rhats = sorted(float(each["rhat_outputs"] or "inf") for each in figures)
            divergent = [float(each["divergences"] or 0.0) for each in figures]
            taus = [float(each["layer1_tau"] or 0.0) for each in figures]
            rows.append(
                (
                    prior,
                    f"{temperature:g}",
                    str(len(figures)),
                    f"{rhats[len(rhats) // 2]:.2f}",
                    f"{rhats[-1]:.2f}",
                    f"{100 * max(divergent):.1f}%",
                    f"{sum(taus) / len(taus):.2g}",
                )
            )
    titles = ("prior", "T", "splits", "R-hat of outputs, median split", "largest")
    titles += ("divergent, at most",)
    return markdown((*titles, "tau, mean of medians"), rows)


def nuts() -> str:
    """Everything about posteriors by NUTS, or that there is nothing yet."""
    if not records(NUTS):
        return "Not run yet.\n"
    tables = (
        ("Log likelihood of test rows", nuts_temperatures),
        ("At T = 1", nuts_levels),
        ("The PredCP against other priors by NUTS, at T = 1", nuts_contest),
        ("The chains", nuts_chains),
    )
    made = ((title, table()) for title, table in tables)
    # Titles and a rule alone: nothing to compare yet.
    return "\n".join(f"{title}:\n\n{text}" for title, text in made if text.count("\n") > 2)


TABLES: dict[str, Callable[[], str]] = {
    "classes-likelihood": lambda: levels("log_likelihood", 3, CLASSES),
    "classes-accuracy": lambda: levels("accuracy", 1, CLASSES),
    "classes-calibration": lambda: levels("calibration_error", 3, CLASSES),
    "classes-contest": lambda: contest(CLASSES),
    "classes-counts": lambda: counts(CLASSES),
    "classes-temperature": lambda: best_temperature("test", CLASSES),
    "classes-temperature-gap": lambda: best_temperature("gap", CLASSES),
    "nuts": nuts,
    "classes-cells": lambda: made(CLASSES.experiment, NUTS),
}


if __name__ == "__main__":
    fill_pages(__doc__, PAGES, TABLES)
