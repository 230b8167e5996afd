"""What the sentence costs: on real outcomes, and in time of a sampler."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from studies.scale_priors.compare import COUNTS, Difference, difference
from studies.scale_priors.nuts import CHAINS, DESIGNS, DRAWS, PRIORS
from studies.scale_priors.priors import FIXED
from studies.scale_priors.store import part

PM = "\u00a0±\u00a0"
OURS = {"predcp-gamma": "the default gamma", "predcp-log-cauchy": "the log-Cauchy"}
DEFAULT = "half-t"
# Differences of held-out rows that are told, in nats a row.
_TOLD = 0.05
# A fifth is held out: splits share what they learn from, and are worth fewer than they are.
_HELD = 0.25


class HeldOut(NamedTuple):
    """The log score of a design's held-out rows less that under the half-t."""

    design: str
    kind: str
    found: Difference

    def text(self) -> str:
        """With its standard error over splits."""
        return f"{self.design}, {self.kind} ({self.found.mean:+.2f}{PM}{self.found.error:.2f})"

    @property
    def corrected(self) -> float:
        """The difference in errors that count what overlapping splits share (Nadeau and Bengio)."""
        return self.found.ratio / float(np.sqrt(1.0 + _HELD * self.found.count))


def held_out(ours: str) -> list[HeldOut]:
    """The differences of every design, paired over splits."""
    frame = part("real")
    by = frame.set_index(["design", "kind", "prior"])["score_each"]
    return [
        HeldOut(design, kind, difference(by[design, kind, ours], by[design, kind, DEFAULT]))
        for design, kind in dict.fromkeys(zip(frame["design"], frame["kind"]))
    ]


def told(ours: str, side: int) -> list[HeldOut]:
    """Differences to this side that are large and beyond two errors, the largest first."""
    kept = [
        each
        for each in held_out(ours)
        if side * each.found.mean >= _TOLD and side * each.found.ratio > COUNTS
    ]
    return sorted(kept, key=lambda each: -side * each.found.mean)


def slower(ours: str) -> dict[str, tuple[float, float, float]]:
    """How many times fewer effective draws a second than the median default, by design.

    The ratio of the medians over runs, and the smallest and largest ratio of single runs.
    """
    frame = part("nuts")
    speed = frame.groupby(["prior", "design"])["ess_per_second"].median()
    places = frame.set_index(["prior", "design", "scale", "simulation"]).sort_index()
    runs = places["ess_per_second"]
    found = {}
    for design in dict.fromkeys(frame[frame["prior"] == ours]["design"]):
        usual = float(np.median([speed[prior, design] for prior in FIXED]))
        each = [
            float(np.median([runs[(prior, design, *run)] for prior in FIXED])) / value
            for run, value in runs[ours, design].items()
        ]
        found[design] = usual / float(speed[ours, design]), min(each), max(each)
    return found


def unfinished() -> list[tuple[str, str]]:
    """Designs and priors whose runs of NUTS did not end in the time that they had."""
    done = set(zip(part("nuts")["design"], part("nuts")["prior"]))
    return [(d, p) for d in DESIGNS for p in PRIORS if (d, p) not in done]


def _listed(found: Iterable[HeldOut]) -> str:
    return "; ".join(each.text() for each in found) or "nowhere"


def costs() -> str:
    """Two paragraphs of the page."""
    lines = []
    for ours, words in OURS.items():
        sure = [each for each in held_out(ours) if abs(each.corrected) > COUNTS]
        lines.append(
            f"Under {words}, worse in {_listed(told(ours, -1))}; better in {_listed(told(ours, 1))}. "
            f"With errors that count what splits share, {len(sure)} of {len(held_out(ours))} differences "
            f"of any size exceed two of them" + (f" ({_listed(sure)})" if sure else "") + "."
        )
    times, worst = [], part("nuts")
    for ours, words in OURS.items():
        texts = (
            f"{design} {ratio:.1f} ({low:.1f} to {high:.1f} in single runs)"
            for design, (ratio, low, high) in slower(ours).items()
        )
        times.append(f"under {words}, {', '.join(texts)}")
    ours = worst[worst["prior"].isin(OURS)]
    least = ours.loc[ours["ess"].idxmin()]
    missing = ", ".join(f"{design} under {prior}" for design, prior in unfinished())
    return (
        f"**On real outcomes**, log score of held-out rows in nats a row less that under the half-t, "
        f"differences of at least {_TOLD:g} and two standard errors over splits, which overlap (so these "
        f"errors are too small). {' '.join(lines)}\n\n"
        f"**In a sampler** a map is evaluated at every step. NUTS gave fewer effective draws a second than "
        f"under the median default by these factors: {'; '.join(times)}. The worst run had "
        f"{least['ess']:.0f} effective draws of {CHAINS * DRAWS} and an R-hat of {least['rhat']:.3f} "
        f"({least['design']}, {least['prior']})"
        + (f". Not finished in the time they had: {missing}" if missing else "")
        + ".\n"
    )


def clause() -> str:
    """The same in half a sentence."""
    worse = [each.text() for each in told("predcp-gamma", -1)]
    factors = {ours: slower(ours) for ours in OURS}
    design = max(factors["predcp-gamma"], key=lambda name: factors["predcp-gamma"][name][0])
    low, high = sorted(factors[ours][design][0] for ours in OURS)
    return (
        f"under the default gamma real outcomes held out were predicted worse in {'; '.join(worse)}, "
        f"in nats a row and with errors over splits, not corrected; and NUTS gave up to {low:.0f} (gamma) "
        f"and {high:.0f} times (log-Cauchy) fewer effective draws a second ({design})"
    )
