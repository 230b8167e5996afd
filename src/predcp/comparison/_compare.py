"""Compare models on one table: the entry points."""

import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from predcp._support.check import require_whole
from predcp.comparison._cells import Design, list_cells
from predcp.comparison._comparison import Comparison, summarise
from predcp.comparison._folds import check_folds
from predcp.comparison._models import INFERENCES, Choice, choose
from predcp.comparison._problem import Problem, from_arrays, from_file, save
from predcp.data import FileOptions
from predcp.experiments import Progress, Silent, Store, choose_progress, run

_CELLS, _TABLES = "cells", ".tables"
Models = Mapping[str, Any] | Sequence[str] | None


def compare(
    X: Any,
    y: Any,
    models: Models = None,
    *,
    folds: int = 5,
    repeats: int = 3,
    sample_weight: Any = None,
    classes: bool = False,
    missing: str = "impute",
    drop: str | Sequence[str] = (),
    inference: str = "laplace",
    seed: int = 0,
    jobs: int = 1,
    address: str | None = None,
    max_seconds: float | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Any = None,
    name: str = "table",
) -> Comparison:
    """Find which of several models predicts a table best, and whether its lead is more than chance.

    Every model is fitted to the same folds of repeated (stratified) cross-validation.

    **Arguments**

    - `X`: `(rows, columns)`, an array, a sparse matrix or a data frame; columns of text are categories.
    - `y`: `(rows,)`, numbers or classes.
    - `models`: names (see `MODEL_NAMES`), or a dictionary of names to scikit-learn estimators, where
        None stands for the model of that name; all that suit the target if None. A `Pipeline`
        gets the original columns, other estimators get numbers without gaps.
    - `folds`, `repeats`: of the cross-validation.
    - `sample_weight`: `(rows,)`, how often each row counts, in fits and in scores.
    - `classes`: whether the values of a numeric target are classes.
    - `missing`: `impute` gaps inside the folds (medians; a category of their own), `drop` rows with
        gaps, or `refuse` them.
    - `drop`: columns of a data frame to leave out, such as identifiers: a name or several.
    - `inference`: of our estimators: `laplace` (quick), `auto`, `nuts`, `gibbs` or `vi`.
    - `jobs`: fits at the same time, each in a process of its own.
    - `address`: of a Ray cluster that runs the fits instead.
    - `max_seconds`: time limit; the comparison then uses the folds that every model has finished.
    - `store`: a folder that keeps every finished fit; the same call resumes from it. None keeps
        nothing.
    - `progress`: None, True for a view on standard error, or a `predcp.experiments.Progress`.
    - `name`: of the table in the report.
    """
    _check_missing(missing)
    problem = from_arrays(X, y, sample_weight, classes, missing, name, drop)
    design = _design(folds, repeats, inference, seed)
    return _run(problem, models, design, jobs, address, max_seconds, store, progress)


def compare_file(
    path: str | os.PathLike[str],
    target: str,
    models: Models = None,
    *,
    weights: str | None = None,
    options: FileOptions | None = None,
    folds: int = 5,
    repeats: int = 3,
    inference: str = "laplace",
    seed: int = 0,
    jobs: int = 1,
    address: str | None = None,
    max_seconds: float | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Any = None,
) -> Comparison:
    """`compare` on a CSV or Parquet file.

    **Arguments:** `target` and `weights`, names of columns; `options`, how the file is read (by
    default gaps are imputed); the others as in `compare`.
    """
    problem = from_file(Path(path), target, weights, options or FileOptions(missing="impute"))
    design = _design(folds, repeats, inference, seed)
    return _run(problem, models, design, jobs, address, max_seconds, store, progress)


def _run(
    problem: Problem,
    models: Models,
    design: Design,
    jobs: int,
    address: str | None,
    max_seconds: float | None,
    store: str | os.PathLike[str] | None,
    progress: Any,
) -> Comparison:
    require_whole("jobs", jobs)
    if max_seconds is not None and not (isinstance(max_seconds, int | float) and max_seconds > 0.0):
        raise ValueError(f"max_seconds must be positive or None, got {max_seconds}")
    choices = choose(models, problem.task, problem.weights is not None)
    if models is None and problem.weights is not None and problem.task == "regression":
        warnings.warn("sklearn-ard takes no weights and is left out", stacklevel=3)
    check_folds(problem.target, problem.task, problem.class_names, design.folds)
    # A separate process can be ended when the time is over.
    apart = jobs > 1 or max_seconds is not None
    if apart or address is not None:
        _check_importable(choices)
    kept = nullcontext(store) if store is not None else tempfile.TemporaryDirectory()
    with kept as folder:
        results = Path(str(folder))
        tables = results / _CELLS / _TABLES
        key = problem.fingerprint()
        save(problem, tables, key)
        cells = list_cells(problem, key, choices, design, tables)
        engine = "ray" if address is not None else "pool" if apart else "process"
        run(
            _CELLS,
            cells,
            store=results,
            engine=engine,
            workers=min(jobs, len(cells)),
            address=address,
            stop_after=max_seconds,
            retry_failed=True,
            data_directory=str(tables.resolve()),
            progress=_shown(progress),
            rerun="the same comparison; it keeps what is finished",
        )
        records = Store(results, _CELLS).records()
    wanted = set(cells)
    found = [r for r in (*records.finished, *records.failed) if r.cell in wanted]
    return summarise(problem, choices, design, found, max_seconds)


def _design(folds: int, repeats: int, inference: str, seed: int) -> Design:
    require_whole("folds", folds, 2)
    require_whole("repeats", repeats)
    require_whole("seed", seed, 0)
    if inference not in INFERENCES:
        raise ValueError(f"inference must be one of {', '.join(INFERENCES)}, got {inference!r}")
    return Design(int(folds), int(repeats), inference, int(seed))


def _check_missing(missing: str) -> None:
    FileOptions(missing=missing)  # pyright: ignore[reportArgumentType]


def _check_importable(choices: Sequence[Choice]) -> None:
    for choice in choices:
        if type(choice.estimator).__module__ == "__main__":
            raise ValueError(
                f"models[{choice.name!r}] is defined in __main__, where other processes cannot find "
                "it; put it into a module, or use jobs=1 without max_seconds"
            )


def _shown(progress: Any) -> Progress:
    if progress is None or progress is False:
        return Silent()
    return choose_progress() if progress is True else progress
