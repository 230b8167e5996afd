"""The report of an experiment: who won, tables, differences, convergence, how to rerun."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from predcp.experiments._convergence import flags
from predcp.experiments._document import (
    Block,
    Code,
    Grid,
    Heading,
    Paragraph,
    write_document,
)
from predcp.experiments._experiments import Experiment, registered_experiments
from predcp.experiments._headline import headline
from predcp.experiments._metrics import is_test_metric, metric_title
from predcp.experiments._numbers import plus_minus, rounded
from predcp.experiments._pictures import mean_picture, pair_picture
from predcp.experiments._progress import duration
from predcp.experiments._record import CorruptRecord, Record
from predcp.experiments._statistics import TIE, Pair, Row, Summary, summarise
from predcp.experiments._store import REPORT_FOLDER, Store


def write_report(store: Store, folder: Path | None = None, times: bool = True) -> list[Path]:
    """Write `report.md`, `report.html` and the pictures; the paths of the first two.

    **Arguments:** `folder` defaults to `report/` in the experiment's; without `times` equal
    results give equal reports.
    """
    folder = folder or store.folder / REPORT_FOLDER
    return write_document(folder, f"predcp: {store.experiment}", report(store, times))


def report(store: Store, times: bool = True) -> list[Block]:
    """The report's blocks; an experiment without any cell is a `LookupError`."""
    records = store.records()
    finished, failed, corrupt = records.finished, records.failed, records.corrupt
    if not finished and not failed and not corrupt:
        raise LookupError(
            f"{store.folder} holds no cells; run `predcp run {store.experiment}` first"
        )
    summary = summarise(finished)
    experiment = registered_experiments().get(store.experiment, Experiment(list))
    blocks: list[Block] = [Heading(store.experiment, 1)]
    blocks += headline(summary, experiment.name)
    blocks += _overview(finished, failed, corrupt, times)
    blocks += _results(experiment, summary, times)
    blocks += _differences(experiment, summary.pairs)
    blocks += _convergence(finished)
    blocks += _failures(failed, corrupt)
    blocks += _reruns([*finished, *failed])
    return blocks


def _overview(
    finished: Sequence[Record],
    failed: Sequence[Record],
    corrupt: Sequence[CorruptRecord],
    times: bool,
) -> list[Block]:
    records = [*finished, *failed]
    counts = f"{len(finished)} cells finished, {len(failed)} failed, {len(corrupt)} damaged."
    if times:
        counts += f" Computing time: {duration(sum(record.seconds for record in records))}."
    made_with = _MadeWith(records)
    return [Paragraph(counts), Grid(("made with", "cells"), made_with.rows())]


class _MadeWith:
    """How many cells each device, commit and set of versions made."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._counts: dict[str, int] = defaultdict(int)
        for record in records:
            environment = record.environment
            versions = ", ".join(f"{n} {v}" for n, v in sorted(environment["versions"].items()))
            python = environment["python"]
            text = f"{environment['device']}; {environment['commit']}; Python {python}, {versions}"
            self._counts[text] += 1

    def rows(self) -> list[tuple[str, ...]]:
        """Most cells first."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        return [(text, str(count)) for text, count in ordered]


def _results(experiment: Experiment, summary: Summary, times: bool) -> list[Block]:
    published = experiment.published()
    by_metric: dict[str, list[Row]] = defaultdict(list)
    for row in summary.rows:
        by_metric[row.metric].append(row)
    blocks: list[Block] = []
    if by_metric:
        blocks = [
            Heading("Results"),
            Paragraph(
                "Mean ± standard error over splits (over seeds where there is one split). R-hat is "
                "the largest over splits; the cells to check are those with doubtful convergence."
            ),
        ]
    header = ("data", "inference", "prior", "mean", "published", "splits", "R-hat")
    header += ("divergent steps", "cells to check")
    header += ("seconds per cell",) if times else ()
    for metric, rows in sorted(by_metric.items()):
        lines = []
        for row in rows:
            printed = published.get((row.data, row.prior, row.inference, metric))
            line = (
                *(row.data, experiment.name(row.inference), experiment.name(row.prior)),
                plus_minus(row.mean, row.se),
                "" if printed is None else f"{printed.mean:g} ± {printed.error:g}",
                str(row.splits),
                "" if row.rhat_max is None else f"{row.rhat_max:.3f}",
                "" if row.divergences is None else f"{100 * row.divergences:.2f}%",
                str(summary.flagged[row.data, row.prior, row.inference] or ""),
            )
            lines.append((*line, rounded(row.seconds)) if times else line)
        blocks += [Heading(metric_title(metric), 3), Grid(header, lines)]
        if is_test_metric(metric):
            blocks.append(mean_picture(metric, rows, published, experiment.name))
    if experiment.notes and by_metric:
        blocks.append(Heading("About the published figures", 3))
        blocks += [Paragraph(note) for note in experiment.notes]
    return blocks


def _differences(experiment: Experiment, pairs: Sequence[Pair]) -> list[Block]:
    if not pairs:
        return []
    blocks: list[Block] = [
        Heading("Paired differences"),
        Paragraph(
            "First prior minus second on the same splits, signed so that positive is better, with "
            f"its standard error. A tie is a split whose values agree to {100 * TIE:g}%."
        ),
    ]
    by_metric: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_metric[pair.metric].append(pair)
    header = ("data", "inference", "first", "second", "difference", "wins, ties, losses")
    for metric, members in by_metric.items():
        lines = [
            (
                *(pair.data, experiment.name(pair.inference)),
                *(experiment.name(pair.first), experiment.name(pair.second)),
                plus_minus(pair.difference, pair.se),
                f"{pair.wins}, {pair.ties}, {pair.losses}",
            )
            for pair in members
        ]
        blocks += [Heading(metric_title(metric), 3), Grid(header, lines)]
        if is_test_metric(metric):
            blocks.append(pair_picture(metric, members, experiment.name))
    return blocks


def _convergence(finished: Sequence[Record]) -> list[Block]:
    lines = []
    for record in finished:
        cell = record.cell
        warnings = flags(cell.inference, record.convergence)
        if not record.convergence and not warnings:
            continue
        figures = ", ".join(
            f"{name} {'not finite' if value is None else rounded(value)}"
            for name, value in sorted(record.convergence.items())
        )
        lines.append((cell.name, figures, "; ".join(warnings) or "none"))
    if not lines:
        return []
    return [
        Heading("Convergence of every sampled cell"),
        Grid(("cell", "figures", "flags"), lines),
    ]


def _failures(failed: Sequence[Record], corrupt: Sequence[CorruptRecord]) -> list[Block]:
    blocks: list[Block] = []
    if failed:
        blocks.append(Heading("Failed cells"))
        for record in failed:
            blocks += [Paragraph(record.cell.name), Code(record.traceback or "")]
    if corrupt:
        blocks += [
            Heading("Damaged cells"),
            Paragraph("They count as not run; the next run of the grid replaces them."),
            Grid(("folder",), [(str(error),) for error in corrupt]),
        ]
    return blocks


def _reruns(records: Sequence[Record]) -> list[Block]:
    lines = [
        (record.cell.name, record.environment["commit"], record.rerun)
        for record in sorted(records, key=lambda record: record.cell.name)
    ]
    return [
        Heading("How to run each cell again"),
        Paragraph("At the commit named; give another --store to keep the stored result."),
        Grid(("cell", "commit", "command"), lines),
    ]
