"""The first sentence of a comparison: which model to use, and which ones are as good."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from predcp.comparison._models import BASE_RATE, REGRESSION
from predcp.comparison._statistics import FEWEST_FOLDS, LEVEL, Difference

# Of the mean log density of a row: half a percent of the size of an error.
_NO_MATTER = 0.005
# How often a difference is found that is called detectable.
_POWER = 0.8
# A lead in the mean log score that no model which uses the columns would be found by.
_SAME = 0.01
# Percentage points of rows right that are a lead to be seen.
_SEEN = 1.0
# Share of a detectable lead from which more rows or folds may well show it.
_PROMISING = 0.5


@dataclass(frozen=True)
class Verdict:
    """The facts behind the sentence, and which models it calls as good as the best, or worse.

    **Arguments:** `scores`, model to metric to mean, the best model first; `pairs`, all of them;
    `words`, names for people; `folds`, how many each mean is over; `rows` of the table.
    """

    task: str
    scores: Mapping[str, Mapping[str, float]]
    pairs: Sequence[Difference]
    words: Mapping[str, str]
    folds: int
    rows: int

    @property
    def best(self) -> str:
        """The model with the best mean log score."""
        return next(iter(self.scores))

    @property
    def decided(self) -> bool:
        """Whether there are models to compare, and enough folds."""
        return len(self.scores) > 1 and self.folds >= FEWEST_FOLDS

    @property
    def leading(self) -> list[str]:
        """The models that predict clearly better than the base rate, if that is among them."""
        order = list(self.scores)
        above = order[: order.index(BASE_RATE)] if BASE_RATE in order else []
        return [model for model in above if self.differ(model, BASE_RATE)]

    @property
    def tied(self) -> list[str]:
        """The best models in order, down to the last that does not differ from the best.

        Where some lead the base rate, only models above it.
        """
        order = list(self.scores)
        if self.leading:
            order = order[: order.index(BASE_RATE)]
        last = max(place for place, model in enumerate(order) if not self.differ(self.best, model))
        return order[: last + 1]

    @property
    def worse(self) -> list[str]:
        """The models that are clearly worse than one of those."""
        if not self.decided:
            return []
        rivals = [self.best, *self.leading[:1]]
        return [
            model
            for model in self.scores
            if model not in self.tied and any(self.differ(rival, model) for rival in rivals)
        ]

    def pair(self, first: str, second: str) -> Difference:
        """The difference of two models."""
        return next(pair for pair in self.pairs if {pair.first, pair.second} == {first, second})

    def differ(self, first: str, second: str) -> bool:
        """Whether a difference of two models is clear, and large enough to matter."""
        return first != second and self.pair(first, second).clear and not self.alike(first, second)

    def alike(self, first: str, second: str) -> bool:
        """Whether the difference of two models matters to nobody."""
        a, b = (self.scores[model]["log_likelihood"] for model in (first, second))
        # The size of a log density depends on the unit of the target.
        return abs(a - b) < _NO_MATTER if self.task == REGRESSION else f"{a:.3g}" == f"{b:.3g}"


def sentence(verdict: Verdict) -> str:
    """What to do, in words."""
    best, tied, worse, words = verdict.best, verdict.tied, verdict.worse, verdict.words
    if len(verdict.scores) == 1:
        return f"Only {words[best]} was fitted, so there is nothing to compare it with."
    if not verdict.decided:
        return f"One fold is too few to tell models apart; {words[best]} has the best mean so far."
    lost = f" Clearly worse: {_listed(worse, words)}." if worse else ""
    if BASE_RATE in verdict.scores and not verdict.leading:
        return f"{_no_use(verdict)}.{lost}"
    if not worse:
        quickest = min(tied, key=lambda model: verdict.scores[model]["fit_seconds"])
        return (
            f"Use any of these models: nothing separates {_listed(tied, words)}; "
            f"{words[quickest]} is the quickest."
        )
    chosen = verdict.leading[0] if verdict.leading else best
    quality = _quality(verdict, chosen)
    if len(tied) + len(worse) == len(verdict.scores) and tied == [chosen]:
        return f"Use {words[chosen]}: it predicts clearly best ({quality}).{lost}"
    why = "has the best mean score"
    if chosen != best:
        why = "predicts clearly better than the base rate"
    others = f"; nothing separates {_listed(tied, words)}" if len(tied) > 1 else ""
    return f"Use {words[chosen]}: it {why} ({quality}){others}.{lost}"


def _no_use(verdict: Verdict) -> str:
    """Why no model is worth more than the base rate, as far as one can tell."""
    best, words = verdict.best, verdict.words
    others = [model for model in verdict.tied if model != BASE_RATE]
    if not others:
        return "Use none of these models: the base rate predicts better"
    if best != BASE_RATE and verdict.pair(best, BASE_RATE).clear:
        return (
            f"Use none of these models: {words[best]} has the best mean score, but leads by too little "
            f"to matter ({_quality(verdict, best)})"
        )
    found = max(_detectable(verdict, model) for model in others)
    power = f"{_lead(verdict, found)} would be found in {100 * _POWER:.0f} of 100 such tables"
    if best != BASE_RATE and abs(verdict.pair(best, BASE_RATE).mean) > _PROMISING * found:
        return (
            f"Too few rows or folds to tell: {words[best]} leads the base rate "
            f"({_quality(verdict, best)}), but with {verdict.rows} rows in {verdict.folds} folds only "
            f"{power}"
        )
    separates = (
        f"Use none of these models yet: nothing separates {_listed(others, words)} from the base rate, the "
        "prediction without any column"
    )
    if found < _SAME:
        # A model that hardly uses the columns says nothing about what another one would find.
        return f"{separates}; they predict almost the same"
    return f"{separates}. With {verdict.rows} rows {power}"


def _detectable(verdict: Verdict, model: str) -> float:
    """The lead over the base rate that is found with probability `_POWER`."""
    from scipy.stats import t

    pair = verdict.pair(model, BASE_RATE)
    # Those with the best model and with the base rate; see `differences`.
    pairs = len({verdict.best, BASE_RATE}) * (len(verdict.scores) - 1)
    pairs -= verdict.best != BASE_RATE
    quantiles = t.ppf([1.0 - 0.5 * LEVEL / pairs, _POWER], pair.degrees)
    return float(quantiles.sum()) * pair.error


def _lead(verdict: Verdict, found: float) -> str:
    """A model that leads the base rate by so much in the mean log score of a row."""
    if verdict.task == REGRESSION:
        return f"a model with {-100 * math.expm1(-found):.2g}% smaller errors"
    return f"a model that gives the true class {100 * math.expm1(found):.2g}% more probability"


def _quality(verdict: Verdict, model: str) -> str:
    """How well a model predicts, against the base rate where there is one."""
    own, base = verdict.scores[model], verdict.scores.get(BASE_RATE)
    if model == BASE_RATE:
        base = None
    if verdict.task == REGRESSION:
        shown = None if base is None else _explained(base)
        return _against("of the variance explained", _explained(own), shown)
    right = own["accuracy"]
    if base is None or right >= base["accuracy"] + _SEEN:
        shown = None if base is None else f"{base['accuracy']:.1f}%"
        return _against("of the rows right", f"{right:.1f}%", shown)
    # Classes may be equally often right: then the geometric mean that the log score ranks.
    shown, other = (f"{100 * math.exp(s['log_likelihood']):.3g}%" for s in (own, base))
    return _against("probability typically given to the true class", shown, other)


def _against(what: str, own: str, base: str | None) -> str:
    return f"{own} {what}" + ("" if base is None else f", against {base} by the base rate")


def _explained(scores: Mapping[str, float]) -> str:
    # On rows that were left out it can be negative, which means nothing to most people.
    share = 100 * scores["r_squared"]
    return "none" if share < 0.5 else f"{share:.0f}%"


def _listed(models: Sequence[str], words: Mapping[str, str]) -> str:
    names = [words[model] for model in models]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
