"""Fill the page on cost from the stored measurements and draw its picture: `python docs/make_speed.py`.

`--check` only says whether the page is as the results have it.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from make_tables import fill_pages
from make_tables import markdown as text_table

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"
PICTURE = HERE / "images" / "speed.png"
PAGES = ("speed.md",)
SAMPLERS = ("gibbs", "makalic-schmidt", "numpyro")


def stored(name: str) -> dict[str, Any]:
    """A result, empty if there is none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def markdown(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """A table of texts and numbers."""
    return text_table(header, [tuple(map(str, row)) for row in rows])


def missing(name: str) -> str:
    """What the page says instead of a result that there is none of."""
    return f"Not measured: `python -m benchmarks.{name}`.\n"


def device(*found: Mapping[str, Any]) -> str:
    """One line on where results were measured; cells may have an environment of their own."""
    places = []
    for result in found:
        own = [result["environment"]] if "environment" in result else []
        cells = [value for value in result.values() if isinstance(value, dict)]
        for place in own + [cell["environment"] for cell in cells if "environment" in cell]:
            commit, _, changes = place["commit"].partition("+")
            text = f"{place['device']}; commit {commit[:9]}{'+' if changes else ''}{changes}"
            if text not in places:
                places.append(text)
    return f"{'. '.join(places)}.\n"


def sizes(found: Mapping[str, Any], prefix: str, axis: int) -> dict[int, Any]:
    """Entries named `prefix, N x D` by N or D."""
    cells = {}
    for name, value in found.items():
        label, _, shape = name.partition(", ")
        if label == prefix and " x " in shape:
            cells[int(shape.split(" x ")[axis])] = value
    return dict(sorted(cells.items()))


def slope(points: Mapping[int, float]) -> float:
    """Least-squares slope on log axes."""
    return float(np.polyfit(np.log(list(points)), np.log(list(points.values())), 1)[0])


def wide() -> str:
    """A sweep against the columns."""
    found = stored("wide")
    cells = sizes(found, "sweep", 1)
    if not cells:
        return missing("wide")
    rows = [
        (
            f"{columns:,}",
            cell["parts"],
            f"{cell['reads_of_the_design']:.2f}",
            f"{1e3 * cell['product']['shortest']:.1f}",
            f"{1e3 * cell['sweep']['shortest']:.0f}",
            f"{cell['sweep_in_products']['shortest']:.0f}",
            f"{cell['sweep_in_products']['cpu_seconds']:.0f}",
        )
        for columns, cell in cells.items()
    ]
    header = (
        "columns",
        "parts",
        "reads a sweep",
        "product, ms",
        "sweep, ms",
        "in products",
        "in products (processor)",
    )
    bars, largest = found["bars"], max(cells)
    words = f"{device(found)}Wanted at 100,000 columns: at most {bars['products']:g} products"
    if len(cells) > 1:
        words += f"; a slope of at most {bars['slope']:g}, which is {found['slope_in_columns']['shortest']}"
    reached = cells[largest]["sweep_in_products"]
    if reached["shortest"] > bars["products"]:
        words += (
            f". The {reached['shortest']:.0f} of {largest:,} columns (the shortest time; the median is "
            f"{reached['seconds']:.0f}) are more than that"
        )
    return "\n".join((markdown(header, rows), f"{words}.\n"))


def memory() -> str:
    """Memory in units of the design."""
    found = stored("wide")
    rows = [
        (
            name.split(", ")[1],
            name.split(", ")[2],
            cell["mebibytes_design"],
            cell["mebibytes_fit"],
            cell["mebibytes_predict"],
            cell.get("designs_of_memory", ""),
        )
        for name, cell in found.items()
        if name.startswith("memory")
    ]
    if not rows:
        return missing("wide --columns 100000 --inference gibbs laplace")
    header = (
        "method",
        "table",
        "design, MiB",
        "after fit, MiB",
        "after predictions, MiB",
        "designs",
    )
    words = (
        "Memory is the peak during a fit and its predictions. In units of the design (in single "
        "precision), it is the increase over a table of 9,000 columns."
    )
    return "\n".join((markdown(header, rows), f"{words}\n"))


def long() -> str:
    """Laplace's method against the rows."""
    found = stored("long")
    cells = sizes(found, "laplace", 0)
    if not cells:
        return missing("long")
    rows = [
        (f"{count:,}", cell["seconds"], cell["cpu_seconds"], cell["gibibytes"])
        for count, cell in cells.items()
    ]
    table = markdown(("rows", "seconds", "processor, s", "memory, GiB"), rows)
    bars = found["bars"]
    words = (
        f"Wanted for a million rows: at most {bars['seconds']:g} s and {bars['gibibytes']:g} GiB, and a "
        f"slope in the rows of at most {bars['slope']:g}, which is {found['slope']}."
    )
    return "\n".join((table, f"{device(found)}{words}\n"))


def peers() -> str:
    """Ours beside what people would pick."""
    found = stored("peers")
    rows = []
    for name, cell in found.items():
        peer, table = name.split(", ")
        rate, rhat = cell.get("effective_draws_a_second", ""), cell.get("rhat", "")
        rows.append((table, peer, cell["cpu_seconds"], cell["log_score"], rhat, rate))
    header = ("table", "model", "processor, s", "log score", "R-hat", "effective draws a second")
    title = "## What people would pick instead\n"
    words = (
        "Simulated tables of 100 rows, and real ones. `makalic-schmidt` is the Gibbs sampler of Makalic "
        "and Schmidt (2016),\nwritten in NumPy from the formulas of the paper; `numpyro` is the horseshoe "
        "as a plain program, sampled by NUTS.\n"
    )
    if not rows:
        return "\n".join((title, missing("peers")))
    return "\n".join((title, words, markdown(header, rows), device(found)))


def limits() -> str:
    """Time limits and how long fits took."""
    found = stored("limits")
    rows = []
    for name, cell in found.items():
        method, table, limit = name.split(", ")
        answer = cell.get("answer", "TimeoutError")
        draws, kept = cell.get("draws", ""), "yes" if cell["kept"] else "no"
        spent = cell.get("cpu_seconds", "")
        rows.append((method, table, limit, cell["seconds"], spent, kept, answer, draws))
    if not rows:
        return missing("limits")
    header = ("method", "table", "limit", "seconds", "processor, s", "kept", "answer", "draws")
    words = (
        "`answer` is what a fit ended with. A limit counts as kept if the fit took at most a tenth, or "
        "half a second,\nlonger: a step that has begun is finished.\n"
    )
    return "\n".join((words, markdown(header, rows), device(found)))


def auto() -> str:
    """Processor's seconds for 400 effective draws."""
    found = stored("auto")
    cases: dict[str, dict[str, Any]] = {}
    for name, cell in found.items():
        family, table, sampler = name.split(", ")
        cases.setdefault(f"{family}, {table}", {})[sampler] = cell
    if not cases:
        return missing("auto")
    rows = [
        (case, *(cells.get(sampler, {}).get("needed", "") for sampler in ("Nuts", "Gibbs")))
        for case, cells in cases.items()
    ]
    return "\n".join((markdown(("table", "NUTS", "Gibbs"), rows), device(found)))


def compared() -> str:
    """How long the command takes on one table."""
    found = stored("compare")
    rows = []
    for name, cell in found.items():
        if name != "environment":
            models = len(cell["scores"])
            rows.append((name, models, cell["jobs"], cell["seconds"], cell["bar_seconds"]))
    if not rows:
        return missing("compare")
    header = ("table", "models", "jobs", "seconds", "wanted at most")
    return "\n".join((markdown(header, rows), device(found)))


# Times as many effective draws of log tau a second as Stan that are wanted of the quickest of ours.
STAN_BARS = {"breast": 10.0, "colon": 40.0, "allaml": 40.0}


def stan_ratios() -> dict[str, dict[str, tuple[float, float]]]:
    """Posterior to sampler to effective draws of log tau a second of the clock, ours and Stan's."""
    rates: dict[str, dict[str, tuple[float, float]]] = {}
    for file in ("stan", "stan-allaml"):
        for name, cell in stored(file).items():
            if not isinstance(cell, dict) or "ours" not in cell:
                continue
            theirs = cell["stan"]["log_tau"]["effective_draws_a_wall_second"]
            rates[name.split()[0]] = {
                sampler: (ours["log_tau"]["effective_draws_a_wall_second"], theirs)
                for sampler, ours in cell["ours"].items()
            }
    return rates


def stan() -> str:
    """Effective draws of log tau a second of the clock, ours over Stan's."""
    rows = [
        (name, sampler, ours, theirs, f"{ours / theirs:.1f}", f"{STAN_BARS[name]:g}")
        for name, samplers in stan_ratios().items()
        for sampler, (ours, theirs) in samplers.items()
    ]
    header = ("posterior", "ours", "effective draws a second", "Stan's", "ratio", "wanted of one")
    if not rows:
        return missing("stan")
    return "\n".join((markdown(header, rows), device(stored("stan"), stored("stan-allaml"))))


def unmet() -> str:
    """Goals that the stored results do not reach, or that nothing stored says anything about."""
    lines = []

    def goal(words: str, found: float | None, most: float, how: str, unit: str = "") -> None:
        if found is None:
            lines.append(f"- {words}: not measured ({how}).")
        elif found > most:
            lines.append(f"- {words}: {found:.3g}{unit}.")

    def of(name: str, *path: str) -> Any:
        value: Any = stored(name)
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    gpu = "needs a GPU; `python -m benchmarks.wide`, which says how"
    sweep, wide_gpu = "sweep, 500 x 100000", "wide-gpu"
    products = of("wide", sweep, "sweep_in_products")
    goal(
        "A sweep of 500 x 100,000 in at most 40 products with the design on two cores, the median",
        products and products["seconds"],
        40.0,
        "`python -m benchmarks.wide`",
        f" (the shortest: {products['shortest']:.3g})" if products else "",
    )
    seconds = of(wide_gpu, sweep, "sweep", "seconds")
    goal("The same in at most 12 ms on one H200", seconds, 0.012, gpu, " s")
    million = of(wide_gpu, "sweep, 500 x 1000000", "sweep", "seconds")
    goal("A sweep of a million columns on one H200", million, np.inf, gpu)
    for method in ("gibbs", "laplace"):
        designs = of("wide", f"memory, {method}, 500 x 100000", "designs_of_memory")
        command = f"`python -m benchmarks.wide --columns 100000 --inference {method}`"
        goal(f"Memory of at most 3 designs of 500 x 100,000 by {method}", designs, 3.0, command)
    rhats = [r for cell in stored("unseen").values() for r in cell.get("rhats", [])]
    goal(
        "R-hat below 1.01 in all splits of a table of more than 5,000 columns that no setting was chosen "
        "on, in 4 minutes of one H200, the largest",
        max(np.inf if r is None else r for r in rhats) if rhats else None,
        1.01,
        "needs a GPU and a file; `python -m benchmarks.unseen`",
    )
    for name, samplers in stan_ratios().items():
        best, bar = max(ours / theirs for ours, theirs in samplers.values()), STAN_BARS[name]
        if best < bar:
            lines.append(
                f"- {bar:g} times the effective draws of log tau a second of Stan on {name}: {best:.1f}."
            )
    laplace = of("interactive", "laplace, 82 x 5966")
    goal(
        "`laplace` on 82 x 5,966 in at most 8 s on two cores, compilation included",
        laplace and laplace["seconds"],
        8.0,
        "`python -m benchmarks.interactive`",
        " s",
    )
    late = [name for name, cell in stored("limits").items() if not cell["kept"]]
    if late:
        lines.append(f"- A limit on time that is always kept: not kept by {'; '.join(late)}.")
    for table in ("500 x 100000", "1000000 x 50"):
        if not any(f"Auto, {table}" in name for name in stored("limits")):
            lines.append(
                f"- A limit on time on {table}: not measured (`python -m benchmarks.limits`)."
            )
    if not stored("peers"):
        lines.append(
            "- Time and effective draws beside NumPyro, Makalic and Schmidt, and scikit-learn: not "
            "measured (`python -m benchmarks.peers`)."
        )
    return "\n".join(lines) + "\n"


def draw() -> None:
    """Cost against the columns and the rows on log axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    lines: list[dict[str, dict[int, float]]] = [{}, {}]
    sweep = {p: c["sweep"]["shortest"] for p, c in sizes(stored("wide"), "sweep", 1).items()}
    lines[0]["a sweep of four chains, 500 rows"] = sweep
    for peer in ("gibbs", "laplace", "makalic-schmidt", "numpyro", "sklearn-l1", "sklearn-l2"):
        cells = sizes(stored("peers"), peer, 1)
        lines[0][f"{peer}, 100 rows"] = {p: c["cpu_seconds"] for p, c in cells.items()}
    cells = sizes(stored("long"), "laplace", 0)
    lines[1]["laplace, 50 columns"] = {n: c["seconds"] for n, c in cells.items()}
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, panel, name in zip(axes, lines, ("columns", "rows")):
        for label, points in panel.items():
            if len(points) > 1:
                text = f"{label}: slope {slope(points):.2f}"
                axis.plot(list(points), list(points.values()), "o-", label=text)
        axis.set(xscale="log", yscale="log", xlabel=name, ylabel="seconds")
        if axis.lines:
            # Whole decades: a narrow range would make any slope look steep.
            values = np.concatenate([np.asarray(line.get_ydata(), float) for line in axis.lines])
            low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))
            axis.set_ylim(10.0**low, 10.0 ** max(high, low + 1.0))
            axis.legend(fontsize=7)
    figure.savefig(PICTURE, dpi=120, metadata={"Software": None})


def picture() -> str:
    """The picture."""
    return f"![Seconds against columns and rows on log axes](images/{PICTURE.name})\n"


TABLES = {
    "picture": picture,
    "wide": wide,
    "memory": memory,
    "long": long,
    "auto": auto,
    "limits": limits,
    "compare": compared,
    "peers": peers,
    "stan": stan,
    "unmet": unmet,
}

if __name__ == "__main__":
    if "--check" not in sys.argv:
        draw()
    fill_pages(__doc__, PAGES, TABLES)
