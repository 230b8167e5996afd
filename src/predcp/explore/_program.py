"""A NumPyro program in the explorer: its present priors, and those that sentences give."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

import predcp
from predcp.explore._program_picture import pair_of_charts
from predcp.explore._sentence import SENTENCE_FAMILIES, UNITS, Sentence, Unit, unit_of
from predcp.explore._words import number, percent
from predcp.program import RESPONSES, Audit, ScaleAudit, ScaleTable, audit, scale_tables

_LEVELS = (0.05, 0.5, 0.95)
# Quantiles are looked for between these powers of e, and then between two of them.
_COARSE = np.linspace(-32.0, 32.0, 65)
_FINE = np.linspace(0.0, 1.0, 25)
_RATIOS = ("rate_ratio", "odds_ratio", "noise_ratio")


@dataclass(frozen=True, eq=False)
class Study:
    """A program, its audit, and the tables from which sentences become priors.

    **Arguments**
    - `name`: as the user named it, `module:function`.
    - `audit`: of the present priors; None if the program was refused.
    - `tables`: by label of the scale.
    - `problems`: by label of the scale, why it has no table.
    - `problem`: why the program was refused.
    - `observed`: sites that are predicted without data.
    """

    name: str
    audit: Audit | None = None
    tables: Mapping[str, ScaleTable] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    observed: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """The module of the program, as code imports it."""
        return self.name.rpartition(":")[0].removesuffix(".py").rpartition("/")[2]

    @property
    def function(self) -> str:
        """The name of the program's function."""
        return self.name.rpartition(":")[2]

    @property
    def sites(self) -> list[str]:
        """Names of the sites that sentences can be about."""
        return list(dict.fromkeys(table.site for table in self.tables.values()))

    def units(self, site: str) -> dict[str, Unit]:
        """The units that fit the predictions which a site moves, the best one first."""
        table = next(table for table in self.tables.values() if table.site == site)
        median = self.present(table.scale).tau[1]
        return {name: unit_of(name, table, median) for name in UNITS if name in table.quantities}

    def first_sentence(self, site: str) -> Sentence:
        """The sentence with which the page opens."""
        unit = next(iter(self.units(site).values()))
        return Sentence(unit.name, unit.start)

    def present(self, scale: str) -> ScaleAudit:
        """The audit of a scale."""
        if self.audit is None:
            raise ValueError(self.problem)
        return self.audit[scale]


@dataclass(frozen=True)
class ScaleScene:
    """Contents of the page for one scale: charts in pairs (present, yours), words and code.

    `sentence` is the code of the sentence, `site` the name of the site that it is about.
    """

    scale: str
    charts: list[str]
    present: str
    yours: str
    site: str
    sentence: str


def study(
    model: Callable[..., Any],
    arguments: Mapping[str, Any],
    name: str,
    scales: Sequence[str] = (),
    observed: Sequence[str] = (),
) -> Study:
    """Audit a program and tabulate its maps. A refusal is kept, for the page to show.

    **Arguments**: `model` and `arguments`, a NumPyro program and its keyword arguments; `name`, as the user
    named it; `scales`, all when empty; `observed`, sites to predict without data.
    """
    options = {"observed": list(observed)}
    try:
        # By position, since a column may have the name of an option.
        bound = inspect.signature(model).bind(**arguments)
        found = audit(model, *bound.args, scales=list(scales) or None, **options, **bound.kwargs)
    except Exception as error:  # The program is the user's: whatever it raises is the reason.
        return Study(name, problem=_reason(error), observed=tuple(observed))
    tables: dict[str, ScaleTable] = {}
    problems: dict[str, str] = {}
    for site in dict.fromkeys(each.scale.split("[")[0] for each in found):
        try:
            made = scale_tables(model, site, *bound.args, **options, **bound.kwargs)
            tables |= {table.scale: table for table in made}
        except Exception as error:
            labels = [each.scale for each in found if each.scale.split("[")[0] == site]
            problems |= dict.fromkeys(labels, _reason(error))
    return Study(name, found, tables, problems, "", tuple(observed))


def _reason(error: Exception) -> str:
    """Message of a refusal, with the kind of error if it is not one of ours."""
    words = str(error).strip().rstrip(".")
    return words if isinstance(error, ValueError) and words else f"{type(error).__name__}: {words}"


def prepare(made: Study) -> None:
    """Compile what every move of a control needs, for each family of pi."""
    for table in made.tables.values():
        first = made.first_sentence(table.site)
        for family in SENTENCE_FAMILIES.values():
            scale_scene(made, table.scale, Sentence(first.unit, first.upper, family=family))


@lru_cache(maxsize=256)
def scale_scene(made: Study, scale: str, sentence: Sentence) -> ScaleScene:
    """The present prior of a scale and the one of a sentence, side by side.

    **Arguments**: `made`, from `study`; `scale`, its label; `sentence`. A sentence that no prior makes true
    raises a ValueError with the reason.
    """
    table, present = made.tables[scale], made.present(scale)
    statement = sentence.statement
    pi = table.solve(statement)
    unit = made.units(table.site)[sentence.unit]
    nats = Sentence("divergence", 0.1)
    # Nats have charts of their own: a sentence about nats shows the scale beside them.
    first = Sentence("scale", 1.0) if sentence.unit == "divergence" else sentence
    ratio = next((name for name in _RATIOS if name in table.quantities), "")
    wanted = {"scale", "divergence", ratio, first.unit if unit.log else ""} - {""}
    known = {name: quantiles(table, pi, name) for name in sorted(wanted)}
    charts: list[str] = []
    for shown in (first, nats):
        charts += pair_of_charts(
            made.units(table.site)[shown.unit],
            shown.present(present.draws),
            partial(_shares, table, pi, shown),
            known.get(shown.unit, np.zeros(3)),
            sentence.upper if shown.unit == sentence.unit else None,
            present.prior,
            low=sentence.before,
        )
    return ScaleScene(
        scale,
        charts,
        f"Present: {present.words}",
        _yours(table, sentence, present, known, ratio),
        table.site,
        sentence.code,
    )


def quantiles(table: ScaleTable, pi: predcp.DivergencePrior, unit: str) -> np.ndarray:
    """Quantiles at 5, 50 and 95% of a quantity on a logarithmic axis, on average over the rest.

    **Arguments**: `table`; `pi`; `unit`, as `predcp.tail` names quantities (no change of a probability).
    """
    ratio = unit in RESPONSES and RESPONSES[unit].ends[0] == 1.0
    centre = float(np.median(table.log_tau)) if unit == "scale" else 0.0

    def below(points: np.ndarray) -> np.ndarray:
        # Ratios start at 1, the others at 0.
        values = np.exp(points) + (1.0 if ratio else 0.0)
        return table.share_below(pi, unit, list(values))

    coarse = centre + _COARSE
    shares = below(coarse)
    left = np.clip(np.searchsorted(shares, _LEVELS) - 1, 0, coarse.size - 2)
    fine = coarse[left, None] + (coarse[1] - coarse[0]) * _FINE
    shares = below(fine.ravel()).reshape(fine.shape)
    found = [np.interp(level, y, x) for level, y, x in zip(_LEVELS, shares, fine)]
    return np.exp(found) + (1.0 if ratio else 0.0)


def _shares(
    table: ScaleTable, pi: predcp.DivergencePrior, shown: Sentence, edges: np.ndarray
) -> np.ndarray:
    """The share of the prior between neighbouring edges; the outer bars hold what lies beyond."""
    inner = edges[1:-1]
    below = table.share_below(pi, shown.unit, [shown.value(edge) for edge in inner])
    return np.diff(below, prepend=0.0, append=1.0)


def _yours(
    table: ScaleTable,
    sentence: Sentence,
    present: ScaleAudit,
    known: Mapping[str, np.ndarray],
    ratio: str,
) -> str:
    """The prior of a sentence in words."""
    low, middle, high = known["scale"]
    before = float(np.mean(sentence.present(present.draws) > sentence.upper))
    parts = [
        f"Yours: {sentence.statement} (under the present prior: {percent(before)}).",
        f"{table.scale} has a median of {number(middle)}, and nine tenths of its prior are between "
        f"{number(low)} and {number(high)}.",
        f"Half of the time a prediction moves by less than {number(known['divergence'][1])} nats.",
    ]
    if ratio:
        parts.append(f"The {RESPONSES[ratio].words} has a median of {known[ratio][1]:.3g}.")
    return " ".join(parts)


def program_code(made: Study, scenes: Iterable[ScaleScene]) -> str:
    """The code of the priors shown, for a program of the user's own."""
    sentences = {scene.site: scene.sentence for scene in scenes}
    observed = f", observed={list(made.observed)!r}" if made.observed else ""

    def swapped(priors: str) -> str:
        return f"better = predcp.with_complexity({made.function}, {priors}{observed})\n"

    header = f"import predcp\nfrom {made.module} import {made.function}\n\n"
    if len(sentences) == 1:
        ((site, sentence),) = sentences.items()
        code = f"{header}sentence = {sentence}\n{swapped(f'{{{site!r}: sentence}}')}"
        return code.replace("'", '"')
    lines = "".join(f"    {site!r}: {sentence},\n" for site, sentence in sentences.items())
    one_by_one = "".join(
        f"# {site} alone, as in its charts\n" + swapped(f"{{{site!r}: sentences[{site!r}]}}")
        for site in sentences
    )
    return (
        f"{header}sentences = {{\n{lines}}}\n{one_by_one}"
        "# all: each is given those before it, and those after it are switched off\n"
        + swapped("sentences")
    ).replace("'", '"')


_current: dict[str, Study] = {}


def show(made: Study | None) -> None:
    """Set the study that the page of this process shows."""
    _current.clear()
    if made is not None:
        _current["study"] = made


def shown_study() -> Study:
    """The study that the page shows."""
    if "study" not in _current:
        return Study("", problem="no program was named; start with: predcp explore module:function")
    return _current["study"]
