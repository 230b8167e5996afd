"""What was expected, and what came out: each prediction of the protocol with its measure."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from studies.scale_priors.compare import comparisons, paired, verdict
from studies.scale_priors.costs import slower
from studies.scale_priors.priors import FIXED, OTHERS, OURS, PER
from studies.scale_priors.situations import MANY_GROUPS, SITUATIONS
from studies.scale_priors.store import cells, part, simulated

ALL = (*OTHERS, *OURS)
SCHOOLS = SITUATIONS["3 to 8 studies"]
UNSCALED = ("half-cauchy", "half-normal", "half-t")


class Finding(NamedTuple):
    """A prediction in short, the figures, and whether it held by the stated rule."""

    expected: str
    found: str
    held: bool


def _places(designs: Sequence[str], scales: Sequence[str]) -> list[tuple[str, str]]:
    return [(d, s) for d, s in cells() if d in designs and s in scales]


def _word(held: bool) -> str:
    return "held" if held else "**did not hold**"


def many_groups() -> list[Finding]:
    """1: priors differ little with many groups and scales that are there."""
    error, spread = simulated()["effect_error"], {}
    places = _places(MANY_GROUPS, ("middling", "large"))
    for place in places:
        values = [error[(*place, prior)] for prior in ALL]
        spread[place] = 100.0 * (max(values) / min(values) - 1.0)
    alike = sum(value < 2.0 for value in spread.values())
    widest = max(spread, key=lambda place: spread[place])
    return [
        Finding(
            "15 or more groups, middling or large: effect errors of all priors within 2%",
            f"{alike} of {len(places)} cells; widest {spread[widest]:.0f}% ({', '.join(widest)})",
            alike == len(places),
        )
    ]


def few_studies() -> list[Finding]:
    """2: few studies, no or little heterogeneity."""
    frame, found = simulated(), []
    for ours in ("predcp-gamma", "predcp-log-cauchy"):
        for other in (*UNSCALED, "pc"):
            places = _places(SCHOOLS, ("none", "small"))
            sides = [
                verdict(paired(*p, ours, other, "effect_error"), "effect_error", comparisons())
                for p in places
            ]
            better, worse = (sum(side == sign for side, _ in sides) for sign in (1, -1))
            none = [d for d, s in places if s == "none"]
            claims = [
                100.0 * np.mean([frame.loc[(d, "none", p), "claim"] for d in none])
                for p in (ours, other)
            ]
            held = better == len(places) and claims[0] < claims[1]
            if other == "pc":
                held = better + worse == 0
            what = "about as good as" if other == "pc" else "better than"
            found.append(
                Finding(
                    f"3 to 8 studies, none or small: {ours} {what} {other}",
                    f"effect error better in {better}, worse in {worse} of {len(places)} cells; "
                    f"false claims {claims[0]:.0f}% and {claims[1]:.0f}%",
                    held,
                )
            )
    return found


def far_units() -> list[Finding]:
    """3: outcomes far from unit scale."""
    frame, found = simulated(), []
    error = frame["effect_error"]
    for prior in ALL:
        bad = []
        for design in ("dyestuff", "mcycle"):
            for scale in ("none", "small", "middling", "large"):
                if (design, scale) not in cells():
                    continue
                best = min(error[design, scale, each] for each in ALL)
                excess = error[design, scale, prior] / best - 1.0
                covered = frame.loc[(design, scale, prior), "covered"]
                if covered < 0.8 or (scale not in ("none",) and excess > 0.1):
                    bad.append(f"{design} {scale}")
        wrong = prior in ("half-cauchy", "inverse-gamma")
        found.append(
            Finding(
                f"dyestuff and mcycle: {prior} {'misbehaves' if wrong else 'does not misbehave'}",
                f"coverage below 80%, or effect error 10% above the best, at small to large: "
                f"{', '.join(bad) or 'nowhere'}",
                bool(bad) == wrong,
            )
        )
    return found


def base_rates() -> list[Finding]:
    """4: drift with the base rate."""
    frame = part("drift").set_index(["prior", "rate"])["probability"]
    found = []
    for prior in FIXED:
        low, high = frame[prior, 0.01], frame[prior, 100.0]
        found.append(
            Finding(
                f"{prior}: below .2 at rate .01, above .9 at rate 100",
                f"{low:.2g} and {high:.2g}",
                bool(low < 0.2 and high > 0.9),
            )
        )
    for ours in ("predcp-gamma", "predcp-log-cauchy"):
        values = [frame[ours, rate] for rate in (0.01, 0.1, 1.0, 10.0, 100.0)]
        steady = bool(np.allclose(values, 0.05, atol=0.002))
        texts = ", ".join(f"{value:.3f}" for value in values)
        found.append(Finding(f"{ours}: .05 at every rate", texts, steady))
        for other in ("exponential", "pc"):
            places = _places(("ticks-0.01", "ticks-0.1"), ("none", "small", "middling", "large"))
            sides = [
                verdict(paired(*p, ours, other, "effect_error"), "effect_error", comparisons())[0]
                for p in places
            ]
            found.append(
                Finding(
                    f"rates .01 and .1: {ours} no better than {other} in effect error",
                    f"better in {sides.count(1)}, worse in {sides.count(-1)} of {len(places)} cells",
                    sides.count(1) == 0,
                )
            )
    return found


def objection() -> list[Finding]:
    """5: conditioning on precise data shrinks heterogeneity harder."""
    covered, found = simulated()["covered"], []
    places = _places(("schools-8-precise", "ticks-10", "ticks-100"), ("middling", "large"))
    rules: tuple[tuple[str, str, Callable[[float], bool]], ...] = (
        ("predcp-gamma", "below 80%", lambda value: value < 0.8),
        ("predcp-log-cauchy", "above 85%", lambda value: value > 0.85),
        (PER[0], "above 85% (removed by `per=`)", lambda value: value > 0.85),
        (PER[1], "above 85%", lambda value: value > 0.85),
    )
    for prior, words, rule in rules:
        values = {place: covered[(*place, prior)] for place in places}
        texts = ", ".join(f"{d} {s} {100 * v:.0f}%" for (d, s), v in values.items())
        found.append(
            Finding(
                f"precise data: coverage of the scale under {prior} {words}",
                texts,
                all(rule(value) for value in values.values()),
            )
        )
    return found


def joint_or_not() -> list[Finding]:
    """6: ECP and PredCP."""
    error, found = simulated()["effect_error"], []
    for family in ("gamma", "log-cauchy"):
        shares = {}
        for words, designs in (
            ("small groups", ("dyestuff", *SCHOOLS, "ticks-0.01", "ticks-0.1", "ticks-1")),
            ("large groups", ("election", "radon")),
        ):
            places = _places(designs, ("none", "small", "middling", "large"))
            gaps = [
                abs(error[(*p, f"ecp-{family}")] / error[(*p, f"predcp-{family}")] - 1.0)
                for p in places
            ]
            shares[words] = 100.0 * float(np.mean(gaps)) if gaps else np.nan
        small, large = shares["small groups"], shares["large groups"]
        found.append(
            Finding(
                f"ECP and PredCP, {family}: effect errors differ less where groups are small",
                f"mean difference {small:.0f}% with small groups, {large:.0f}% with large ones",
                small < large,
            )
        )
    return found


def cautious() -> list[Finding]:
    """7: the log-Cauchy pi."""
    frame, designs = simulated(), [d for d, s in cells() if s == "none"]
    claims = {
        prior: 100.0 * np.mean([frame.loc[(d, "none", prior), "claim"] for d in designs])
        for prior in ALL
    }
    places = _places(designs, ("small",))
    errors = {
        prior: float(np.mean([frame.loc[(*p, prior), "scale_error"] for p in places]))
        for prior in ALL
    }
    fewest, largest = min(claims, key=claims.__getitem__), max(errors, key=errors.__getitem__)
    ours = "predcp-log-cauchy"
    return [
        Finding(
            f"{ours} makes fewest false claims",
            f"{claims[ours]:.1f}% of simulations at none; fewest: {fewest} ({claims[fewest]:.1f}%)",
            bool(claims[ours] <= claims[fewest]),
        ),
        Finding(
            f"{ours} has the largest error of the scale at small",
            f"{errors[ours]:.2f}; largest: {largest} ({errors[largest]:.2f})",
            largest == ours,
        ),
    ]


def samplers() -> list[Finding]:
    """8: NUTS."""
    frame = part("nuts")
    if frame.empty:
        return [Finding("NUTS", "not run", False)]
    found = []
    for ours in ("predcp-gamma", "predcp-log-cauchy"):
        rows = frame[frame["prior"] == ours]
        found.append(
            Finding(
                f"{ours}: no more than 5 divergent steps of 2000 in a run",
                f"at most {rows['divergent'].max():.0f} in a run, {rows['divergent'].sum():.0f} in all",
                bool(rows["divergent"].max() <= 5),
            )
        )
        factors = {design: ratio for design, (ratio, _, _) in slower(ours).items()}
        texts = ", ".join(f"{design} {factor:.1f}" for design, factor in factors.items())
        found.append(
            Finding(
                f"{ours}: fewer effective draws per second than the median default by a factor of 2 to 5",
                texts,
                all(2.0 <= factor <= 5.0 for factor in factors.values()),
            )
        )
    return found


PREDICTIONS: dict[str, Callable[[], list[Finding]]] = {
    "prediction-1": many_groups,
    "prediction-2": few_studies,
    "prediction-3": far_units,
    "prediction-4": base_rates,
    "prediction-5": objection,
    "prediction-6": joint_or_not,
    "prediction-7": cautious,
    "prediction-8": samplers,
}


def table(name: str) -> Callable[[], str]:
    """The findings on one prediction."""

    def made() -> str:
        from studies.scale_priors.page_tables import markdown

        rows = [(f.expected, f.found, _word(f.held)) for f in PREDICTIONS[name]()]
        return markdown(("expected", "found", ""), rows)

    return made
