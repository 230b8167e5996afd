"""The table of a comparison, in one form for this process and for workers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from predcp.data import DataError, Encoder, FileOptions, FrameTable, frame_table, load_frame

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Problem:
    """Columns, a target and weights.

    **Arguments:**

    - `features`: numbers in double precision (NaN for a gap) or text (None or NaN for a gap, as
        pandas has it).
    - `target`: `(rows,)`, numbers, or class numbers from 0.
    - `task`: `regression`, `binary` or `multiclass`; `class_names` of the class numbers.
    - `weights`: `(rows,)`, how often each row counts; None if all count once.
    - `left_out`: names of the columns that hold one value or none.
    """

    name: str
    features: pandas.DataFrame
    target: np.ndarray
    task: str
    class_names: tuple[str, ...]
    weights: np.ndarray | None
    left_out: tuple[str, ...] = ()

    @property
    def categories(self) -> list[str]:
        """Names of the columns of text."""
        from pandas.api import types

        return [
            str(name)
            for name, column in self.features.items()
            if not types.is_numeric_dtype(column)
        ]

    @property
    def gaps(self) -> int:
        """Number of missing values."""
        return int(self.features.isna().to_numpy().sum())

    def fingerprint(self) -> str:
        """A hash of everything but the name."""
        digest = hashlib.sha256(f"{self.task} {self.class_names}".encode())
        texts = set(self.categories)
        for name, column in self.features.items():
            digest.update(f"\0{name}\0".encode())
            values = column.to_numpy()
            if str(name) in texts:
                gaps = column.isna()
                parts = ("\1" if gap else str(value) for value, gap in zip(values, gaps))
                digest.update("\0".join(parts).encode())
            else:
                digest.update(values.tobytes())
        digest.update(self.target.tobytes())
        digest.update(b"" if self.weights is None else self.weights.tobytes())
        return digest.hexdigest()


def from_arrays(
    x: Any,
    y: Any,
    weights: Any,
    classes: bool,
    missing: str,
    name: str,
    drop: str | Sequence[str] = (),
) -> Problem:
    """A problem from arrays or data frames, as scikit-learn's estimators take them."""
    import pandas

    frame: Any
    target: Any
    drop = [drop] if isinstance(drop, str) else list(drop)
    if isinstance(x, pandas.DataFrame):
        frame = x.reset_index(drop=True)
        frame.columns = [str(column) for column in frame.columns]
        repeated = sorted({name for name in frame.columns if list(frame.columns).count(name) > 1})
        if repeated:
            raise ValueError(f"X has the column {', '.join(repeated)} more than once")
        unknown = [column for column in drop if column not in frame.columns]
        if unknown:
            raise ValueError(f"drop names the column {', '.join(unknown)}, which X does not have")
        frame = frame.drop(columns=drop)
    else:
        values = x.toarray() if hasattr(x, "toarray") else np.asarray(x)
        if values.ndim != 2:
            raise ValueError(f"X must have shape (rows, columns), got {values.shape}")
        if drop:
            raise ValueError("drop names columns of a data frame, and X is an array")
        names = [f"x{number}" for number in range(values.shape[1])]
        frame = pandas.DataFrame(values, columns=names).infer_objects()
    target = pandas.Series(np.asarray(y).ravel() if np.ndim(y) == 2 else np.asarray(y), name="y")
    if target.ndim != 1 or len(target) != len(frame):
        raise ValueError(f"y must have shape ({len(frame)},) like the rows of X, got {np.shape(y)}")
    if target.isna().any():
        raise ValueError(
            f"y has {int(target.isna().sum())} missing values; leave those rows out of X and y"
        )
    if any(np.iscomplexobj(column) for _, column in frame.items()):
        raise ValueError("X holds complex numbers; give real and imaginary parts as columns")
    if missing == "drop":
        kept = frame.notna().all(axis=1).to_numpy()
        if not kept.any():
            raise ValueError("every row of X has a missing value; use missing='impute'")
        frame, target = frame[kept].reset_index(drop=True), target[kept].reset_index(drop=True)
        weights = None if weights is None else np.asarray(weights)[kept]
    if weights is not None and np.shape(weights) != (len(frame),):
        raise ValueError(f"sample_weight must have shape ({len(frame)},), got {np.shape(weights)}")
    table = frame_table(frame, target, classes, "X, y")
    return _checked(name, table, weights, missing, "X")


def from_file(path: Path, target: str, weights: str | None, options: FileOptions) -> Problem:
    """A problem from a CSV or Parquet file.

    **Arguments:** `weights`, the column that says how often each row counts.
    """
    table = load_frame(path, target, options)
    values = None
    if weights is not None:
        if weights not in table.features.columns:
            raise DataError(f"{path} lacks the column {weights}, named as weights={weights!r}")
        values = table.features[weights].to_numpy()
        features = table.features.drop(columns=[weights])
        table = FrameTable(features, table.target, table.task, table.class_names)
    return _checked(path.stem, table, values, options.missing, str(path))


def _checked(name: str, table: FrameTable, weights: Any, missing: str, where: str) -> Problem:
    import pandas

    # Dates, identifiers, infinite values and refused gaps are named here; levels and medians of
    # all rows are not used: folds learn their own.
    allowed = "impute" if missing == "impute" else "refuse"
    encoder = Encoder.fit(table.features, allowed, where)
    encoder.transform(table.features, where)
    # All at once: a frame of many columns is slow to write to.
    arrays: dict[str, np.ndarray] = {}
    for column in encoder.columns:
        series: Any = table.features[column.name]
        if column.levels:
            texts = [None if gap else str(v) for v, gap in zip(series, series.isna())]
            arrays[column.name] = np.array(texts, dtype=object)
        else:
            arrays[column.name] = series.to_numpy(dtype=np.float64, na_value=np.nan)
    features: Any = pandas.DataFrame(arrays)
    kept = _weights(weights)
    if kept is not None:
        counted = kept > 0.0
        features, kept = features[counted].reset_index(drop=True), kept[counted]
        table = FrameTable(features, table.target[counted], table.task, table.class_names)
    texts = {column.name: object for column in encoder.columns if column.levels}
    features = features.astype(texts) if texts else features
    left_out = tuple(str(name) for name in table.features.columns if str(name) not in arrays)
    return Problem(name, features, table.target, table.task, table.class_names, kept, left_out)


def _weights(weights: Any) -> np.ndarray | None:
    if weights is None:
        return None
    try:
        values = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise ValueError("weights must be numbers") from None
    if not (np.isfinite(values).all() and (values >= 0.0).all() and (values > 0.0).any()):
        raise ValueError("weights must be finite and not negative, and some must be positive")
    return values


def save(problem: Problem, folder: Path, key: str) -> None:
    """Write a problem for workers; equal problems are written once."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {
        "target": problem.target,
        "class_names": np.array(problem.class_names, dtype=str),
    }
    if problem.weights is not None:
        arrays["weights"] = problem.weights
    staging = folder / f".{key}.npz"
    np.savez(staging, **arrays)
    problem.features.to_parquet(folder / f"{key}.parquet")
    # Written last, so that a problem with this file is complete.
    staging.replace(folder / f"{key}.npz")


@lru_cache(maxsize=2)
def load(folder: str, key: str, name: str, task: str) -> Problem:
    """The inverse of `save`."""
    import pandas

    arrays = dict(np.load(Path(folder) / f"{key}.npz", allow_pickle=False))
    features = pandas.read_parquet(Path(folder) / f"{key}.parquet")
    names = tuple(map(str, arrays["class_names"]))
    return Problem(name, features, arrays["target"], task, names, arrays.get("weights"))
