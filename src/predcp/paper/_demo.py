"""The demo: half-Cauchy against ECP against PredCP, on a table that needs no download.

Run it with `make demo` or `predcp demo`: about eighty seconds on two cores. It leaves a table, a picture
and a report, and the store of results they were made from.
"""

from collections.abc import Sequence
from pathlib import Path

from predcp.experiments import (
    Cell,
    Record,
    Store,
    choose_progress,
    mean_and_error,
    run,
    write_report,
)

NAME, PICTURE = "demo", "demo.png"
PRIORS = {"half-cauchy": "#999999", "ecp": "#0072B2", "predcp": "#D55E00"}
_SPLITS = 2
_SETTINGS = {
    "chains": 4,
    "warmup": 300,
    "draws": 500,
    "intercept": True,
    "precision": "single",
}


def cells() -> list[Cell]:
    """Logistic regression of a diagnosis on thirty measurements, three priors, a few splits."""
    return [
        Cell("breast-wisconsin", "logistic", prior, "nuts", split, settings=_SETTINGS)
        for prior in PRIORS
        for split in range(_SPLITS)
    ]


def table(records: Sequence[Record]) -> str:
    """One row per prior: how well it predicts, and how hard the sampler had to work."""
    lines = [
        f"{'prior':<13}{'test log-likelihood':>22}{'accuracy':>10}{'R-hat':>8}"
        f"{'divergent':>11}{'gradients per draw':>20}"
    ]
    for prior in PRIORS:
        mine = [record for record in records if record.cell.prior == prior]
        mean, error = mean_and_error([_metric(record, "log_likelihood") for record in mine])
        accuracy = mean_and_error([_metric(record, "accuracy") for record in mine])[0]
        rhat = max(_figure(record, "rhat_max") for record in mine)
        divergent = mean_and_error([_figure(record, "divergences") for record in mine])[0]
        steps = mean_and_error([_figure(record, "steps_mean") for record in mine])[0]
        likelihood = f"{mean:.4f} ± {error or 0.0:.4f}"
        lines.append(
            f"{prior:<13}{likelihood:>22}{accuracy:>9.1f}%{rhat:>8.3f}{divergent:>11.2%}{steps:>20.0f}"
        )
    return "\n".join(lines)


def draw(records: Sequence[Record], path: Path) -> None:
    """Save the picture: predictions and work, one dot per split."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    panels = (
        (left, "test log-likelihood", lambda record: _metric(record, "log_likelihood")),
        (right, "gradients per draw", lambda record: _figure(record, "steps_mean")),
    )
    for ax, title, value in panels:
        for height, (prior, colour) in enumerate(PRIORS.items()):
            values = [value(record) for record in records if record.cell.prior == prior]
            ax.plot(values, [height] * len(values), "o", color=colour, alpha=0.5)
            ax.plot(
                [sum(values) / len(values)], [height], "|", color=colour, markersize=26, mew=2.5
            )
        ax.set(title=title, yticks=range(len(PRIORS)), yticklabels=list(PRIORS), ylim=(-0.6, 2.6))
        ax.invert_yaxis()
        ax.locator_params(axis="x", nbins=5)
        ax.spines[["top", "right"]].set_visible(False)
    left.set_xlabel("mean log likelihood per patient (higher is better)")
    right.set_xlabel("leapfrog steps of NUTS (fewer is faster)")
    figure.suptitle("Benign or malignant, 30 measurements: dots are splits, bars their means")
    figure.savefig(path, dpi=120)


def demo(output: str | Path = "demo_output") -> None:
    """Fit, print the table, save the picture and the report.

    **Arguments**: `output`, the folder of all three; what is finished there is not run again.
    """
    print(
        f"Logistic regression with local scales on the Wisconsin breast cancer table: NUTS under\n"
        f"{len(PRIORS)} priors on the global scale, {_SPLITS} splits each. The first of each compiles.\n",
        flush=True,
    )
    run(NAME, cells(), output, engine="pool", progress=choose_progress(), rerun="predcp demo")
    store = Store(Path(output), NAME)
    records = store.records().finished
    print(f"\n{table(records)}\n")
    print(
        "R-hat is the largest of log tau, the log density and the test probabilities; up to 1.01 is\n"
        "mixed. Priors are compared split by split in the report."
    )
    picture = Path(output) / PICTURE
    draw(records, picture)
    report = write_report(store)
    print(f"picture: {picture}\nreport:  {report[1]}")


def _metric(record: Record, name: str) -> float:
    return next(value for part, metric, value in record.metrics if (part, metric) == ("test", name))


def _figure(record: Record, name: str) -> float:
    value = record.convergence[name]
    return float("nan") if value is None else value
