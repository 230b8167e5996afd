"""The command line: `predcp data|run|results|report|fit|predict|figures|explore|demo`."""

import contextlib
import importlib.util
import json
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from predcp._version import __version__

FAILED, USAGE, MISSING_INPUT, UNAVAILABLE, INTERRUPTED = 1, 2, 3, 4, 130
_EXIT_CODES = (
    "Exit codes: 0 done; 1 some cells failed or some data is damaged; 2 wrong usage; "
    "3 a file or data set is missing, damaged or refused; 4 not available in this version or "
    "without an extra; 130 interrupted."
)

# Columns of scripts' formats that would squeeze all others on a terminal.
_TOO_WIDE = ("device", "settings", "key")

app = typer.Typer(
    help="Predictive complexity priors: data, experiments, reports and models.",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="The data sets predcp knows.", no_args_is_help=True)
app.add_typer(data_app, name="data")

StoreOption = Annotated[Path, typer.Option(help="Folder of results.")]
DataOption = Annotated[list[str] | None, typer.Option(help="Data set, pattern or file; repeat.")]
PriorOption = Annotated[list[str] | None, typer.Option(help="Prior or pattern; repeat.")]
InferenceOption = Annotated[list[str] | None, typer.Option(help="Inference; repeat.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
DirectoryOption = Annotated[
    Path | None, typer.Option(help="Data directory (default: PREDCP_DATA, else the cache).")
]
MissingOption = Annotated[
    str, typer.Option(help="Missing values in a file: refuse, impute (medians) or drop (rows).")
]


def main() -> None:
    """Entry point of the `predcp` script and of `python -m predcp`."""
    warnings.showwarning = _show_warning
    app(prog_name="predcp")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"predcp {__version__}")
        raise typer.Exit


@data_app.command("list", epilog="Example: predcp data list --json")
def data_list(directory: DirectoryOption = None, as_json: JsonOption = False) -> None:
    """List the data sets, and which are on this machine."""
    from predcp import data

    rows = [
        {
            "name": entry.name,
            "title": entry.title,
            "kind": entry.kind,
            "rows": entry.rows,
            "columns": entry.columns,
            "file": entry.file,
            "present": data.is_present(entry, directory),
        }
        for entry in data.registry().values()
    ]
    rows += [
        {"name": name, "title": "bundled with scikit-learn", "kind": task, "present": True}
        for name, (_, task) in data.BUNDLED.items()
    ]
    if as_json:
        _print_json_lines(rows)
        return
    print(f"data directory: {data.data_directory(directory)}")
    for row in rows:
        state = "present" if row["present"] else "absent "
        print(f"{state}  {row['name']:<16} {row['kind']:<15} {row['title']}")


@data_app.command("fetch", epilog="Example: predcp data fetch boston breast")
def data_fetch(
    names: Annotated[list[str], typer.Argument(help="Data sets, or 'all'.")],
    directory: DirectoryOption = None,
    url: Annotated[
        list[str] | None,
        typer.Option(help="Another address of the same file (the hash must still match); repeat."),
    ] = None,
) -> None:
    """Download data sets, check their hashes, and put them in the data directory."""
    from predcp import data

    with _errors():
        chosen = list(data.registry()) if names == ["all"] else names
        if url and len(chosen) != 1:
            _fail("--url goes with a single data set", USAGE)
        for name in chosen:
            entry = data.source(name)
            if names == ["all"] and not entry.downloads:
                continue
            print(f"{name}: {data.fetch(entry, directory, tuple(url or ()))}")


@data_app.command("check", epilog="Example: predcp data check")
def data_check(
    names: Annotated[list[str] | None, typer.Argument(help="Default: all on disk.")] = None,
    directory: DirectoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the files on disk with their pinned hashes."""
    from predcp import data

    with _errors():
        entries = [data.source(name) for name in names or data.registry()]
        if not names:
            entries = [entry for entry in entries if data.is_present(entry, directory)]
        if not entries:
            _fail(f"no data set is in {data.data_directory(directory)}", MISSING_INPUT)
    reports = []
    for entry in entries:
        try:
            message, intact = data.verify(entry, directory), True
        except data.DataError as error:
            message, intact = str(error), False
        reports.append({"name": entry.name, "intact": intact, "message": message})
    if as_json:
        _print_json_lines(reports)
    else:
        for report in reports:
            print(f"{'ok ' if report['intact'] else 'BAD'}  {report['name']}: {report['message']}")
    if not all(report["intact"] for report in reports):
        raise typer.Exit(FAILED)


@app.command("run", epilog="Example: predcp run toy --splits 5 --engine pool")
def run_command(
    experiment: Annotated[
        str,
        typer.Argument(help="toy, table1, table2, table3, appendix-..., or 'module:function'."),
    ],
    data: DataOption = None,
    prior: PriorOption = None,
    inference: InferenceOption = None,
    splits: Annotated[str | None, typer.Option(help="5 (the first five), 0,3 or 2-4.")] = None,
    seeds: Annotated[str | None, typer.Option(help="3 (seeds 0 to 2), 0,7 or 2-4.")] = None,
    cell: Annotated[list[str] | None, typer.Option(help="Beginning of a cell's key.")] = None,
    target: Annotated[str | None, typer.Option(help="Target column of a --data file.")] = None,
    missing: MissingOption = "refuse",
    engine: Annotated[str, typer.Option(help="process, pool, batch or ray.")] = "process",
    workers: Annotated[int | None, typer.Option(help="Of the pool (default: cores).")] = None,
    address: Annotated[str | None, typer.Option(help="Of the Ray cluster.")] = None,
    gpus: Annotated[float, typer.Option(help="GPUs a cell needs on the cluster.")] = 0.0,
    store: StoreOption = Path("results"),
    directory: DirectoryOption = None,
    keep_posterior: Annotated[bool, typer.Option(help="Store posterior draws (netCDF).")] = False,
    retry_failed: Annotated[bool, typer.Option(help="Also run cells that failed before.")] = False,
    dry_run: Annotated[bool, typer.Option(help="List the cells, run nothing.")] = False,
    quiet: Annotated[bool, typer.Option(help="No progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run an experiment's cells; finished ones are kept, so the same command resumes."""
    from predcp import experiments

    # A user's own module lies where the command was given.
    sys.path.insert(0, os.getcwd())
    signal.signal(signal.SIGTERM, _interrupt)
    with _errors():
        folder, cells = experiments.experiment_cells(experiment)
        cells = experiments.place_on_data(cells, data or (), target, missing)
        cells = experiments.select(
            cells,
            prior=prior or (),
            inference=inference or (),
            splits=splits,
            seeds=seeds,
            keys=cell or (),
        )
        if dry_run:
            _print_json_lines([{"key": item.key, **item.to_json()} for item in cells])
            return
        grid_options = {"--data": data, "--target": target, "--seeds": seeds}
        if missing != "refuse":
            grid_options["--missing"] = missing
        try:
            tally = experiments.run(
                folder,
                cells,
                store=store,
                engine=experiments.engine_name(engine),
                workers=workers,
                address=address,
                gpus=gpus,
                data_directory=None if directory is None else str(directory),
                keep_posterior=keep_posterior,
                retry_failed=retry_failed,
                progress=experiments.choose_progress(quiet),
                rerun=_command(["run", experiment], grid_options),
            )
        except KeyboardInterrupt:
            resume = shlex.join(["predcp", *sys.argv[1:]])
            _fail(
                f"stopped; finished cells are kept in {store / folder}. Resume: {resume}",
                INTERRUPTED,
            )
    if as_json:
        print(json.dumps(vars(tally)))
    else:
        print(
            f"{folder}: {tally.already_finished + tally.finished} of {tally.total} cells finished, "
            f"{tally.failed} failed; see `predcp report {folder} --store {store}`"
        )
    if tally.failed:
        raise typer.Exit(FAILED)


@app.command("results", epilog="Example: predcp results --format json table1")
def results_command(
    table: Annotated[str | None, typer.Argument(help="Experiment (default: list them).")] = None,
    store: StoreOption = Path("results"),
    output_format: Annotated[str, typer.Option("--format", help="table, json or csv.")] = "table",
    data: DataOption = None,
    prior: PriorOption = None,
    inference: InferenceOption = None,
    metric: Annotated[list[str] | None, typer.Option(help="Metric; repeat.")] = None,
    cells: Annotated[bool, typer.Option(help="One row a cell instead of means.")] = False,
) -> None:
    """Query the store: means and standard errors, or every cell."""
    from predcp import experiments

    with _errors():
        if output_format not in ("table", "json", "csv"):
            _fail(f"--format must be table, json or csv, got {output_format!r}", USAGE)
        if table is None:
            names = experiments.experiments(store)
            _print_rows([{"experiment": name} for name in names], output_format)
            return
        chosen = experiments.Store(store, table)
        if not chosen.folder.is_dir():
            _fail(f"{chosen.folder} does not exist; run `predcp run {table}` first", MISSING_INPUT)
        rows = experiments.result_rows(
            chosen,
            cells,
            data=data or (),
            prior=prior or (),
            inference=inference or (),
            metric=metric or (),
        )
        if not rows:
            _fail(f"no finished cell in {chosen.folder} matches", MISSING_INPUT)
        _print_rows(rows, output_format)


@app.command("report", epilog="Example: predcp report table1 --output report/")
def report_command(
    table: Annotated[str, typer.Argument(help="Experiment.")],
    store: StoreOption = Path("results"),
    output: Annotated[Path | None, typer.Option(help="Folder (default: in the store).")] = None,
    times: Annotated[bool, typer.Option(help="Show times, which differ between runs.")] = True,
) -> None:
    """Write report.md and a self-contained report.html."""
    from predcp import experiments

    with _errors():
        for path in experiments.write_report(experiments.Store(store, table), output, times):
            print(path)


@app.command("fit", epilog="Example: predcp fit houses.csv --target price --output model.st")
def fit_command(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet file.")],
    target: Annotated[str, typer.Option(help="Target column.")],
    model: Annotated[str | None, typer.Option(help="ridge, linear, logistic or resnet.")] = None,
    prior: Annotated[str | None, typer.Option(help="The model's prior.")] = None,
    inference: Annotated[str | None, typer.Option(help="nuts (default), vi or laplace.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the draws.")] = None,
    missing: MissingOption = "refuse",
    output: Annotated[Path, typer.Option(help="Where to save it.")] = Path("model.safetensors"),
    as_json: JsonOption = False,
) -> None:
    """Fit a model to a file and save it (arrays and JSON, never code)."""
    from predcp import experiments

    with _errors():
        # A bar in a pipe or a log file is noise.
        progress = sys.stderr.isatty() and not as_json
        fitted = experiments.fit_file(
            file, target, output, model, prior, missing, inference, seed, progress
        )
    if as_json:
        print(json.dumps({**vars(fitted), "output": str(output)}))
    else:
        if fitted.summary is not None:
            print(f"{fitted.summary}\n")
        print(
            f"{fitted.estimator} ({fitted.task}) on {fitted.rows} rows and "
            f"{len(fitted.features)} features, saved as {output}"
        )


@app.command("predict", epilog="Example: predcp predict model.safetensors new.csv > out.csv")
def predict_command(
    model: Annotated[Path, typer.Argument(help="A saved model.")],
    file: Annotated[Path, typer.Argument(help="CSV or Parquet file with the same columns.")],
    output: Annotated[Path | None, typer.Option(help="CSV file (default: print).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Predict the rows of a file with a saved model."""
    from predcp import experiments

    with _errors():
        frame = experiments.predict_file(model, file)
        if as_json:
            _print_json_lines(frame.to_dict(orient="records"))
        else:
            frame.to_csv(output or sys.stdout, index=False)


@app.command("figures", epilog="Example: predcp figures figure-1 --output figures/")
def figures_command(
    names: Annotated[list[str] | None, typer.Argument(help="Figures (default: all).")] = None,
    output: Annotated[Path, typer.Option(help="Folder of the figures.")] = Path("figures"),
    list_them: Annotated[bool, typer.Option("--list", help="List them, make nothing.")] = False,
    points: Annotated[
        int | None, typer.Option(min=4, help="Points a curve (default: each figure's own).")
    ] = None,
    keep_data: Annotated[bool, typer.Option("--data", help="Also save the numbers (npz).")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make the paper's figures: PDF, PNG, and a caption that says what to see and what is wrong."""
    with _errors():
        import jax

        # The curves run from 1e-8 to poles and tails.
        jax.config.update("jax_enable_x64", True)
        from predcp.paper import figures

        chosen = figures.select(names or [])
        if list_them:
            rows = [
                {"name": figure.name, "paper": figure.paper, "title": figure.title}
                for figure in chosen
            ]
            if as_json:
                _print_json_lines(rows)
            else:
                for row in rows:
                    print(f"{row['name']:<22} {row['paper']}: {row['title']}")
            return
        for index, figure in enumerate(chosen, start=1):
            print(f"{index} of {len(chosen)}: {figure.name}", file=sys.stderr, flush=True)
            paths = [str(path) for path in figures.write(figure, output, points, keep_data)]
            if as_json:
                print(json.dumps({"name": figure.name, "files": paths}), flush=True)
            else:
                print("\n".join(paths), flush=True)


@app.command("explore", epilog="Example: predcp explore --port 8000")
def explore_command(
    port: Annotated[int, typer.Option(min=1, help="Port, or the next free one.")] = 2718,
    host: Annotated[
        str, typer.Option(help="Address; any but this machine's own lets others in.")
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Explore priors in the browser: charts, a summary in words, and the NumPyro code."""
    with _errors():
        if importlib.util.find_spec("marimo") is None:
            _fail("the explorer needs an extra: pip install 'predcp[explore]'", UNAVAILABLE)
        from predcp.explore import serve

        serve(host, port, browser)


@app.command("demo", epilog="Example: predcp demo")
def demo_command() -> None:
    """Compare half-Cauchy, ECP and PredCP on an embedded table: NUTS, a picture, a report."""
    with _errors():
        try:
            from predcp import demo  # pyright: ignore[reportAttributeAccessIssue]
        except ImportError:
            _fail(f"the demo is not available in this version ({__version__})", UNAVAILABLE)
        demo.main()


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Turn the library's errors into one line and a documented exit code."""
    from predcp import experiments
    from predcp.data import DataError

    try:
        yield
    except (experiments.ModelUnavailable, experiments.EstimatorUnavailable) as error:
        _fail(str(error), UNAVAILABLE)
    except ModuleNotFoundError as error:
        _fail(f"{error}; an extra may be missing: pip install 'predcp[experiments]'", UNAVAILABLE)
    except BrokenPipeError:
        # The reader (`head`, say) has seen enough; nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (DataError, experiments.SavedModelError, LookupError, OSError) as error:
        _fail(str(error), MISSING_INPUT)
    except ValueError as error:
        _fail(str(error), USAGE)
    except FloatingPointError as error:
        _fail(str(error), FAILED)
    except KeyboardInterrupt:
        _fail("stopped", INTERRUPTED)


def _fail(message: str, code: int) -> NoReturn:
    print(f"predcp: {message}", file=sys.stderr)
    raise typer.Exit(code)


def _interrupt(number: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"predcp: note: {message}", file=sys.stderr)


def _command(words: list[str], options: dict[str, list[str] | str | None]) -> str:
    parts = ["predcp", *words]
    for name, value in options.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                parts += [name, item]
    return shlex.join(parts)


def _print_json_lines(rows: list[Any]) -> None:
    for row in rows:
        print(json.dumps(row))


def _print_rows(rows: list[dict[str, Any]], output_format: str) -> None:
    if output_format == "json":
        _print_json_lines(rows)
    elif output_format == "csv":
        import csv

        writer = csv.DictWriter(sys.stdout, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
    else:
        from rich.console import Console
        from rich.table import Table

        columns = [name for name in (rows[0] if rows else ()) if name not in _TOO_WIDE]
        grid = Table(*columns)
        for row in rows:
            grid.add_row(*(_shown(row[name]) for name in columns))
        # A pipe has no width of its own.
        Console(width=None if sys.stdout.isatty() else 160).print(grid)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
