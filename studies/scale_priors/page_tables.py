"""Tables of the page, from the store."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from studies.scale_priors.compare import COUNTS, comparisons, difference, pooled, tally, verdict
from studies.scale_priors.designs import SCALES
from studies.scale_priors.nuts import CHAINS, DRAWS
from studies.scale_priors.priors import OTHERS, OURS, PER
from studies.scale_priors.situations import SITUATIONS
from studies.scale_priors.store import AGAIN, PRIMARY, cells, part, simulated, stored

PM = "\u00a0±\u00a0"
TITLES = {
    "effect_error": "error of effects",
    "new_score": "log score, new groups",
    "scale_error": "error of the scale",
}


def markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _priors() -> tuple[str, ...]:
    return (*OTHERS, *OURS)


def made() -> str:
    """Where the results come from."""
    source = stored()[1]
    counts = part("simulated")["count"]
    rows = [
        ("simulated cells", str(len(cells()))),
        ("simulations per cell", f"{counts.min():.0f} to {counts.max():.0f}"),
        ("comparisons", f"{comparisons():,}"),
        ("fits to real outcomes", f"{part('real')['count'].sum():.0f}"),
        ("runs of NUTS", f"{len(part('nuts'))}"),
        *((_TITLES.get(key, key), _short(key, value)) for key, value in source.items()),
    ]
    return markdown(("what", "value"), rows)


_TITLES = {AGAIN: "run again (largest change of a mean effect error, units)"}


def _short(key: str, value: str) -> str:
    if key == AGAIN:
        return value.replace(", then ", ", ")
    return (
        ", then ".join(each[:12] for each in value.split(", then ")) if key == "commit" else value
    )


def summary() -> str:
    """Cells better, alike and worse, of every pair."""
    rows = []
    for ours in OURS:
        for other in OTHERS:
            texts = []
            for score in PRIMARY:
                t = tally(ours, other, score)
                texts.append(
                    f"{t['better']} ({t['surely better']}) / {t['alike']} / "
                    f"{t['worse']} ({t['surely worse']})"
                )
            rows.append((ours, other, *texts))
    return markdown(("ours", "against", *(TITLES[score] for score in PRIMARY)), rows)


def places_of(designs: Sequence[str], scale: str) -> list[tuple[str, str]]:
    """The cells of these designs at a true scale."""
    return [(d, s) for d, s in cells() if d in designs and s == scale]


def situations(ours: str) -> Callable[[], str]:
    """The effect error of one prior against the others, by situation and true scale."""

    def table() -> str:
        base = simulated()["effect_error"]
        rows = []
        for name, designs in SITUATIONS.items():
            for scale in SCALES:
                places = places_of(designs, scale)
                if not places:
                    continue
                texts = []
                for other in OTHERS:
                    found = pooled(places, ours, other, "effect_error")
                    unit = 100.0 / np.mean([base[d, s, other] for d, s in places])
                    side, sure = verdict(found, "effect_error", comparisons())
                    stars = "\\*" * (abs(side) + sure)
                    texts.append(f"{found.mean * unit:+.1f}{PM}{found.error * unit:.1f}{stars}")
                rows.append((name, scale, *texts))
        return markdown(("situation", "true scale", *OTHERS), rows)

    return table


def by_situation(score: str, digits: int, unit: float = 1.0) -> Callable[[], str]:
    """Means of a score over the designs of each situation, for every prior."""

    def table() -> str:
        frame, rows = simulated(), []
        for name, designs in SITUATIONS.items():
            for scale in SCALES:
                places = places_of(designs, scale)
                texts = [_mean(frame, places, prior, score, digits, unit) for prior in _priors()]
                if any(texts):
                    rows.append((name, scale, *texts))
        return markdown(("situation", "true scale", *_priors()), rows)

    return table


def _mean(
    frame: Any, places: list[tuple[str, str]], prior: str, score: str, digits: int, unit: float
) -> str:
    """The mean over cells, which are independent, with its standard error; empty if there is none."""
    cells = [frame.loc[(*place, prior)] for place in places]
    mean = np.mean([cell[score] for cell in cells]) if cells else np.nan
    if np.isnan(mean):
        return ""
    error = np.sqrt(np.sum([cell[f"{score}_error"] ** 2 for cell in cells])) / len(cells)
    return f"{unit * mean:.{digits}f}{PM}{unit * error:.{digits}f}"


def all_cells(score: str, digits: int, unit: float = 1.0) -> Callable[[], str]:
    """A score of every prior in every cell, and each prior's largest standard error."""

    def table() -> str:
        frame, rows = simulated(), []
        for design, scale in cells():
            values = [unit * frame.loc[(design, scale, prior), score] for prior in _priors()]
            if not np.all(np.isnan(values)):
                rows.append((design, scale, *(f"{value:.{digits}f}" for value in values)))
        errors = frame[f"{score}_error"].groupby("prior").max()
        largest = (f"{unit * errors[prior]:.{max(digits, 1)}f}" for prior in _priors())
        rows.append(("*largest standard error*", "", *largest))
        return markdown(("design", "true scale", *_priors()), rows)

    return table


def drift() -> str:
    """Prior probability of more than half a nat at every base rate."""
    frame = part("drift")
    rates = sorted(set(frame["rate"]))
    by = frame.set_index(["prior", "rate"])["probability"]
    names = [*OTHERS, *OURS, *PER]
    rows = [(name, *(f"{100 * by[name, rate]:.2g}%" for rate in rates)) for name in names]
    scales = frame.drop_duplicates("rate").set_index("rate")["half_nat"]
    rows.append(("*scale at half a nat*", *(f"{scales[rate]:.2f}" for rate in rates)))
    return markdown(("prior", *(f"rate {rate:g}" for rate in rates)), rows)


def precise() -> str:
    """Coverage and bias of the scale where data are precise."""
    frame, rows = simulated(), []
    for design in ("schools-8", "schools-8-precise", "ticks-10", "ticks-100"):
        for scale in SCALES[2:]:
            if (design, scale) not in cells():
                continue
            for prior in ("half-t", *OURS, *PER):
                cell = frame.loc[(design, scale, prior)]
                rows.append(
                    (
                        design,
                        scale,
                        prior,
                        f"{100 * cell['covered']:.0f}{PM}{100 * cell['covered_error']:.0f}",
                        f"{cell['scale_bias']:+.2f}{PM}{cell['scale_bias_error']:.2f}",
                        f"{100 * cell['effect_coverage']:.0f}{PM}"
                        f"{100 * cell['effect_coverage_error']:.1f}",
                        f"{cell['effect_error']:.3f}{PM}{cell['effect_error_error']:.3f}",
                        f"{cell['new_score']:.2f}{PM}{cell['new_score_error']:.2f}",
                    )
                )
    titles = ("design", "true scale", "prior", "coverage of the scale, %", "bias of its log")
    more = ("coverage of effects, %", "error of effects", "log score, new groups")
    return markdown((*titles, *more), rows)


def per_units() -> str:
    """The sentence in other units against the same sentence per row or trial."""
    rows = []
    designs = [d for d in dict.fromkeys(d for d, _ in cells()) if (d, PER[0]) in _pairs()]
    for design in designs:
        for scale in SCALES:
            texts = []
            for name in PER:
                base = name.removesuffix("-per")
                found = pooled([(design, scale)], name, base, "effect_error")
                mark = "\\*" if abs(found.ratio) > COUNTS else ""
                gap = [100 * simulated().loc[(design, scale, p), "covered"] for p in (base, name)]
                shown = "" if np.isnan(gap[0]) else f"{gap[0]:.0f} to {gap[1]:.0f}"
                texts += [f"{found.mean:+.3f}{PM}{found.error:.3f}{mark}", shown]
            rows.append((design, scale, *texts))
    titles = []
    for name in PER:
        base = name.removesuffix("-per")
        titles += [f"{base}: error of effects", "coverage of the scale, %"]
    return markdown(("design", "true scale", *titles), rows)


def _pairs() -> set[tuple[str, str]]:
    frame = part("simulated")
    return set(zip(frame["design"], frame["prior"]))


def real() -> str:
    """Log scores of held-out rows, less the half-t's, with errors over splits, paired."""
    frame = part("real")
    by = frame.set_index(["design", "kind", "prior"])["score_each"]
    rows = []
    for design, kind in dict.fromkeys(zip(frame["design"], frame["kind"])):
        base = np.asarray(by[design, kind, "half-t"], float)
        texts = []
        for prior in _priors():
            if prior == "half-t":
                own = difference(base, np.zeros(len(base)))
                texts.append(f"{own.mean:.3f}{PM}{own.error:.3f}")
                continue
            gap = difference(by[design, kind, prior], base)
            texts.append(f"{gap.mean:+.3f}{PM}{gap.error:.3f}")
        rows.append((design, kind, str(len(base)), *texts))
    titles = [f"{prior}, itself" if prior == "half-t" else prior for prior in _priors()]
    return markdown(("design", "held out", "splits", *titles), rows)


def nuts() -> str:
    """What NUTS makes of the priors, and how far the quadrature is from it."""
    frame, rows = part("nuts"), []
    for (design, prior), found in frame.groupby(["design", "prior"], sort=False):
        shares = [_over_runs(100.0 * found[f"share_{level}"], 1) for level in (0.05, 0.5, 0.95)]
        rows.append(
            (
                str(design),
                str(prior),
                str(len(found)),
                f"{found['divergent'].sum():.0f} of {CHAINS * DRAWS * len(found)}",
                f"{found['rhat'].max():.3f}",
                f"{found['ess'].min():.0f}",
                f"{found['ess_per_second'].median():.0f}",
                _over_runs(found["ess_per_second"], 0),
                _over_runs(found["steps"], 0),
                *shares,
            )
        )
    titles = ("design", "prior", "runs", "divergent", "largest R-hat", "fewest effective draws")
    speeds = ("effective draws a second, median", "mean", "steps per draw")
    return markdown((*titles, *speeds, "at 5%", "at 50%", "at 95%"), rows)


def _over_runs(values: Any, digits: int) -> str:
    """Mean over runs with its standard error."""
    found = difference(values, np.zeros(len(values)))
    return f"{found.mean:.{digits}f}{PM}{found.error:.{digits}f}"


TABLES: dict[str, Callable[[], str]] = {
    "made": made,
    "summary": summary,
    **{f"against-{ours}": situations(ours) for ours in OURS},
    "drift": drift,
    "precise": precise,
    "per": per_units,
    "claims": by_situation("claim", 1, 100.0),
    "coverage": by_situation("covered", 1, 100.0),
    "effect-coverage": by_situation("effect_coverage", 1, 100.0),
    "real": real,
    "nuts": nuts,
    "cells-effect-error": all_cells("effect_error", 3),
    "cells-new-score": all_cells("new_score", 3),
    "cells-scale-error": all_cells("scale_error", 2),
    "cells-scale-bias": all_cells("scale_bias", 2),
    "cells-covered": all_cells("covered", 0, 100.0),
    "cells-width": all_cells("log_width", 2),
    "cells-effect-coverage": all_cells("effect_coverage", 0, 100.0),
    "cells-effect-sd": all_cells("effect_sd", 3),
    "cells-claim": all_cells("claim", 0, 100.0),
}
