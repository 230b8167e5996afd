"""Fill the tables of the pages from the stored results: `python docs/make_tables.py`.

A table stands between `<!-- table NAME -->` and `<!-- end -->`; `--check` only says whether the
pages are as the results have them.
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from predcp.experiments import Record, Store, mean_and_error
from predcp.paper import EXPERIMENTS, MEDICAL, UCI, layer_table, paper_figures

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
BENCHMARKS = HERE.parent / "benchmarks" / "results"
PAGES = ("table-1.md", "table-2.md", "table-3.md")
# With spaces at which no line breaks.
PM = "\u00a0±\u00a0"
BLOCK = re.compile(r"(<!-- table ([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_TABLE1_PRIORS = ("half-cauchy", "ecp", "predcp")
_TABLE2_PRIORS = ("fixed-0.1", "fixed-1", "inverse-gamma", "predcp")
_NAMES = {"half-cauchy": "half-Cauchy", "ecp": "ECP", "predcp": "PredCP"}
# Mean absolute error / RMSE that an independent run of the public code's objective gave; `fixed` is
# the better of the two scales.
_INDEPENDENT = {
    "boston": ((2.09, 3.00), (2.14, 3.09), (2.12, 2.99)),
    "concrete": ((3.54, 5.02), (3.63, 5.09), (3.56, 5.00)),
    "energy": ((0.489, 0.574), (0.467, 0.519), (0.468, 0.535)),
    "wine": ((0.527, 0.711), (0.542, 0.733), (0.526, 0.719)),
    "yacht": ((0.613, 0.745), (0.602, 0.807), (0.626, 0.788)),
}


@lru_cache(maxsize=3)
def records(experiment: str) -> list[Record]:
    """The finished cells of an experiment."""
    return Store(RESULTS, experiment).records().finished


def chosen(experiment: str, data: str, prior: str, inference: str) -> list[Record]:
    """The cells of one row of a table, in the order of their splits and seeds."""
    found = [
        record
        for record in records(experiment)
        if (record.cell.data, record.cell.prior, record.cell.inference) == (data, prior, inference)
    ]
    return sorted(found, key=lambda record: (record.cell.split, record.cell.seed))


def scores(found: Sequence[Record], metric: str) -> list[float]:
    """A test metric, split by split."""
    return [
        value
        for record in found
        for part, name, value in record.metrics
        if (part, name) == ("test", metric)
    ]


def markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def pm(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± standard error; a single value as it is."""
    mean, error = mean_and_error(values)
    if error is None:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f}{PM}{error:.{digits}f}"


def printed(data: str, prior: str, inference: str, metric: str, experiment: str) -> str:
    """The paper's figure."""
    figure = paper_figures(experiment).get((data, prior, inference, metric))
    return "" if figure is None else f"{figure.mean:.2f}{PM}{figure.error:.2f}"


def table1_mcmc() -> str:
    """Log likelihoods and how far to trust them."""
    titles = (
        "data",
        "prior",
        "log likelihood",
        "paper",
        "draws per chain",
        "R-hat below 1.01",
        "median R-hat",
        "largest",
        "fewest effective draws, median",
        "seconds",
    )
    rows = []
    for data in MEDICAL:
        for prior in _TABLE1_PRIORS:
            found = chosen("table1", data, prior, "mcmc")
            figures = [record.convergence for record in found]
            rhats = [float(each["rhat_probability"] or "inf") for each in figures]
            # None where a probability stood still in some chain: nothing of it is effective.
            sizes = [each["ess_probability_min"] or 0.0 for each in figures]
            rows.append(
                (
                    data,
                    _NAMES[prior],
                    pm(scores(found, "log_likelihood")),
                    printed(data, prior, "mcmc", "log_likelihood", "table1"),
                    f"{(figures[0]['draws'] or 0.0) / 4:.0f}",
                    f"{sum(rhat < 1.01 for rhat in rhats)} of {len(rhats)}",
                    f"{statistics.median(rhats):.3f}",
                    f"{max(rhats):.3f}",
                    f"{statistics.median(sizes):.0f}",
                    f"{sum(record.seconds for record in found):.0f}",
                )
            )
    return markdown(titles, rows)


def table1_vi() -> str:
    """Stan's ADVI."""
    rows = []
    for data in MEDICAL:
        for prior in _TABLE1_PRIORS:
            found = chosen("table1", data, prior, "vi")
            steps = [record.convergence["steps"] or 0.0 for record in found]
            rows.append(
                (
                    data,
                    _NAMES[prior],
                    pm(scores(found, "log_likelihood")),
                    printed(data, prior, "vi", "log_likelihood", "table1"),
                    f"{statistics.median(steps):.0f}",
                    f"{sum(step >= 10_000 for step in steps)} of {len(steps)}",
                )
            )
    titles = ("data", "prior", "log likelihood", "paper", "median steps", "stopped at 10,000")
    return markdown(titles, rows)


def table1_pairs() -> str:
    """Priors against each other on the same splits, MCMC."""
    rows = []
    for data in MEDICAL:
        values = {
            prior: scores(chosen("table1", data, prior, "mcmc"), "log_likelihood")
            for prior in _TABLE1_PRIORS
        }
        row = [data]
        for first, second in (("ecp", "half-cauchy"), ("predcp", "half-cauchy"), ("predcp", "ecp")):
            row.append(pm([a - b for a, b in zip(values[first], values[second], strict=True)]))
        rows.append(row)
    return markdown(
        ("data", "ECP - half-Cauchy", "PredCP - half-Cauchy", "PredCP - ECP"),
        rows,
    )


def table1_rerun() -> str:
    """The stored cells of allaml under the PredCP against a second run of them."""
    path = BENCHMARKS / "rerun-table1-allaml.json"
    measured = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        (
            name,
            f"{each['stored_mean']:.4f}",
            f"{each['new_mean']:.4f}",
            f"{each['mean_difference']:+.4f}{PM}{each['standard_error']:.4f}",
            f"{each['cells_with_the_same_bits']} of {measured['cells']}",
        )
        for name, each in measured["scores"].items()
    ]
    return markdown(("score", "stored", "second run", "difference", "same bits"), rows)


def table2(inference: str, metric: str) -> str:
    """A metric of every prior, the best in bold, `*` where the PredCP is worse by two errors."""
    rows = []
    for data in UCI:
        values = {
            prior: scores(chosen("table2", data, prior, inference), metric)
            for prior in _TABLE2_PRIORS
        }
        sign = 1.0 if metric == "log_likelihood" else -1.0
        means = {prior: sign * statistics.fmean(each) for prior, each in values.items()}
        digits = 4 if data == "kin8nm" else 3
        row = [data]
        behind = []
        for prior, each in values.items():
            text = pm(each, digits)
            row.append(f"**{text}**" if means[prior] == max(means.values()) else text)
            if prior != "predcp":
                gaps = [sign * (a - b) for a, b in zip(each, values["predcp"], strict=True)]
                mean, error = mean_and_error(gaps)
                if error is not None and mean > 2.0 * error:
                    behind.append(f"{prior} ({mean / error:.1f})")
        row.append(", ".join(behind) if behind else "best or tied")
        rows.append(row)
    return markdown(
        ("data", *_TABLE2_PRIORS, "better than the PredCP by two paired errors"),
        rows,
    )


def table2_independent() -> str:
    """The public code's objective: ours against an independent run and the paper."""
    rows = []
    for data, theirs in _INDEPENDENT.items():
        ours = {
            prior: [
                scores(chosen("table2", data, prior, "vi-tempered"), metric)
                for metric in ("mae", "rmse")
            ]
            for prior in _TABLE2_PRIORS
        }
        better = min(("fixed-0.1", "fixed-1"), key=lambda prior: statistics.fmean(ours[prior][0]))
        for prior, other in zip((better, "inverse-gamma", "predcp"), theirs, strict=True):
            row = [data, prior]
            for values, figure in zip(ours[prior], other, strict=True):
                mean, error = mean_and_error(values)
                distance = abs(mean - figure) / (error or 1.0)
                row += [pm(values), f"{figure:g}", f"{distance:.1f}"]
            rows.append([*row, printed(data, prior, "vi-tempered", "mae", "table2")])
    titles = ("data", "prior", "MAE", "independent", "errors apart")
    return markdown((*titles, "RMSE", "independent", "errors apart", "paper"), rows)


def table2_layers() -> str:
    """Share of splits in which the residual layer is alive."""
    found = layer_table(Store(RESULTS, "table2")).set_index(["data", "inference", "prior"])
    rows = []
    for data in UCI:
        row = [data]
        for inference in ("vi", "vi-tempered"):
            for prior in _TABLE2_PRIORS:
                here = found.loc[(data, inference, prior)]
                row.append(f"{float(here['alive']):.2f}")
        rows.append(row)
    titles = [f"{prior}, {words}" for words in ("exact", "public code") for prior in _TABLE2_PRIORS]
    return markdown(("data", *titles), rows)


def stan() -> str:
    """Effective draws a second of every sampler, and how many times Stan's."""
    rows = []
    for path in sorted(BENCHMARKS.glob("stan*.json")):
        results = json.loads(path.read_text(encoding="utf-8"))
        settings = results["settings"]
        for name, measured in results.items():
            if "times_faster" not in measured:
                continue
            peer = measured["stan"]
            for sampler, run in {**measured["ours"], "Stan": peer}.items():
                length = f"{settings['chains']} x ({run['warmup']} + {settings['draws']})"
                row = [name.split()[0], sampler, length, f"{run['wall_seconds']:.0f}"]
                for quantity in ("log_tau", "log_density"):
                    rate = run[quantity]["effective_draws_a_wall_second"]
                    times = rate / peer[quantity]["effective_draws_a_wall_second"]
                    row += [f"{run[quantity]['r_hat']:.3f}", f"{rate:.2f}", f"{times:.1f}"]
                rows.append(row)
    titles = ["data", "sampler", "chains x (warm-up + draws)", "seconds"]
    for quantity in ("log tau", "log density"):
        titles += [f"{quantity}: R-hat", "effective draws a second", "times Stan's"]
    return markdown(titles, rows)


def metric(record: Record, part: str, name: str) -> float:
    """One metric of one cell."""
    return next(value for *key, value in record.metrics if tuple(key) == (part, name))


def omniglot() -> str:
    """Few-shot accuracy on Omniglot, means over seeds and their errors."""
    rows = []
    for prior in dict.fromkeys(cell.prior for cell in EXPERIMENTS["table3-omniglot"]()):
        found = chosen("table3-omniglot", "omniglot-1shot", prior, "map")
        figures = [record.convergence for record in found]
        looks = ", ".join(f"{figure['selected_iteration']:.0f}" for figure in figures)
        tasks = statistics.fmean(figure["task_standard_error"] or 0.0 for figure in figures)
        rows.append(
            (
                prior,
                pm(scores(found, "accuracy"), 2),
                f"{tasks:.2f}",
                pm(scores(found, "log_likelihood")),
                pm(scores(found, "calibration_error")),
                pm([metric(record, "validation", "accuracy") for record in found], 2),
                looks,
            )
        )
    titles = ("prior", "accuracy, error over seeds", "error over tasks of one seed")
    titles += ("log likelihood", "calibration error", "on validation classes", "chosen iterations")
    return markdown(titles, rows)


def fc100(shots: int) -> str:
    """Few-shot accuracy on FC100, task by task: the best on validation classes first."""
    path = RESULTS / "table3-comparison.json"
    parts = json.loads(path.read_text(encoding="utf-8"))
    data = f"fc100-{shots}shot"
    tested = {row["prior"]: row for row in parts["test"] if row["data"] == data}
    rows = []
    for checked in parts["check"]:
        if checked["data"] != data:
            continue
        row = tested[checked["prior"]]
        rows.append(
            (
                row["prior"],
                *(
                    f"{one['accuracy']:.2f}{PM}{one['standard_error']:.2f}"
                    for one in (checked, row)
                ),
                *(_less(row, reference) for reference in ("maml", "flat")),
                f"±\u00a0{row['small_query_interval']:.2f}",
                printed(data, row["prior"], "map", "accuracy", "table3"),
                f"{row['log_likelihood']:.3f}",
                f"{row['calibration_error']:.3f}",
                " ".join(f"{number / 1000:g}" for number in row["selected_iteration"]),
            )
        )
    titles = ("prior", "validation", "test", "less MAML", "less flat", "small-query interval")
    titles += ("paper", "log likelihood", "calibration error", "thousand iterations")
    return markdown(titles, rows)


def _less(row: dict[str, Any], reference: str) -> str:
    """A paired difference."""
    if f"less_{reference}" not in row:
        return ""
    return f"{row[f'less_{reference}']:+.2f}{PM}{row[f'less_{reference}_error']:.2f}"


_VARIANTS = {
    "complexity_draws": "four draws",
    "modules": "body alone",
    "kappa_inputs": "kappa on queries",
}


def fewshot_search() -> str:
    """Accuracy on validation classes of everything tried, the best first."""
    found = sorted(
        records("fewshot-search"), key=lambda record: -metric(record, "validation", "accuracy")
    )
    rows = []
    for record in found:
        settings, figures = record.cell.settings, record.convergence
        accuracy = metric(record, "validation", "accuracy")
        rows.append(
            (
                record.cell.prior,
                "log tau" if settings.get("measure") == "log" else "",
                "" if settings.get("into_shared", True) else "kept out",
                ", ".join(words for name, words in _VARIANTS.items() if name in settings),
                f"{settings['inner_rate']:g}",
                f"{accuracy:.2f}{PM}{figures['validation_standard_error']:.2f}",
                f"{metric(record, 'validation', 'log_likelihood'):.2f}",
                f"{metric(record, 'train', 'accuracy'):.0f}",
                f"{figures['selected_iteration']:.0f}",
            )
        )
    titles = ("prior", "density of", "gradient into phi", "besides", "inner rate")
    titles += ("accuracy, validation", "log likelihood", "accuracy, training", "chosen iteration")
    return markdown(titles, rows)


def fewshot_speed() -> str:
    """Milliseconds an iteration and tasks a second."""
    measured = json.loads((BENCHMARKS / "fewshot.json").read_text(encoding="utf-8"))["parts"]
    names = {
        "maml": "MAML",
        "flat": "flat sigma-MAML",
        "predcp": "PredCP",
        "table": "four priors x three seeds in one program",
        "table_bfloat16": "the same in bfloat16",
        "torch_loop": "PyTorch MAML, a loop over tasks",
        "torch_vmap": "PyTorch MAML, `torch.func` and vmap",
    }
    rows = [
        (words, f"{measured[name]['milliseconds']:.2f}", f"{measured[name]['tasks_a_second']:.0f}")
        for name, words in names.items()
    ]
    return markdown(("", "ms an iteration", "tasks a second"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "mcmc": table1_mcmc,
    "pairs": table1_pairs,
    "vi": table1_vi,
    "rerun": table1_rerun,
    "stan": stan,
    "exact-mae": lambda: table2("vi", "mae"),
    "exact-rmse": lambda: table2("vi", "rmse"),
    "exact-log-likelihood": lambda: table2("vi", "log_likelihood"),
    "public-mae": lambda: table2("vi-tempered", "mae"),
    "independent": table2_independent,
    "layers": table2_layers,
    "fc100-1shot": lambda: fc100(1),
    "fc100-5shot": lambda: fc100(5),
    "omniglot": omniglot,
    "fewshot-search": fewshot_search,
    "fewshot-speed": fewshot_speed,
}


def filled(text: str, tables: Mapping[str, Callable[[], str]] = TABLES) -> str:
    """A page with its tables as the results have them."""
    return BLOCK.sub(lambda match: match[1] + tables[match[2]]() + match[3], text)


def fill_pages(
    description: str | None,
    pages: Sequence[str] = PAGES,
    tables: Mapping[str, Callable[[], str]] = TABLES,
) -> None:
    """Write the pages, or with `--check` say which differ."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    stale = []
    for name in pages:
        page = HERE / name
        text = page.read_text(encoding="utf-8")
        new = filled(text, tables)
        if new != text:
            stale.append(name)
            if not options.check:
                page.write_text(new, encoding="utf-8")
    if options.check and stale:
        sys.exit(f"not as the results have them: {', '.join(stale)}; run {sys.argv[0]}")


if __name__ == "__main__":
    fill_pages(__doc__)
