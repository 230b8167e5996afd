"""Load any table by name, whole or as one train/test split."""

import os
from dataclasses import dataclass

from predcp.data._bundled import BUNDLED, load_bundled
from predcp.data._errors import DataError
from predcp.data._file_options import FileOptions
from predcp.data._files import count_rows, load_file
from predcp.data._frame import SUFFIXES
from predcp.data._medical import load_medical
from predcp.data._registry import registry
from predcp.data._splits import Rule, medical_split, random_split, standard_split
from predcp.data._table import Table
from predcp.data._uci import load_uci

Directory = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Split:
    """One train/validation/test division of a table; `validation` may be empty."""

    train: Table
    validation: Table
    test: Table


def is_file_name(name: str) -> bool:
    """Whether `name` means a file of the user's rather than a named data set."""
    return name.lower().endswith(SUFFIXES)


def load(
    name: str,
    directory: Directory = None,
    target: str | None = None,
    options: FileOptions | None = None,
) -> Table:
    """A table by name, or from a `.csv`, `.tsv` or `.parquet` file with a `target` column."""
    if is_file_name(name):
        return load_file(name, _required_target(name, target), options).table
    if name in BUNDLED:
        return load_bundled(name)
    entry = registry().get(name)
    if entry is None:
        known = ", ".join(table_names())
        raise DataError(f"no table is called {name!r}; there are: {known}; or name a .csv file")
    if entry.kind == "few-shot":
        raise DataError(f"{name} holds images, not a table; use predcp.data.load_images")
    reader = load_uci if entry.kind == "regression" else load_medical
    return reader(name, directory)


def load_split(
    name: str,
    split: int,
    directory: Directory = None,
    target: str | None = None,
    options: FileOptions | None = None,
) -> Split:
    """Split number `split` of a table, by the rule published for it (`split_rule`)."""
    rule = split_rule(name)
    if is_file_name(name):
        required = _required_target(name, target)
        rows = rule(count_rows(name, required, options), split)
        table = load_file(name, required, options, fit_rows=rows.train).table
    else:
        table = load(name, directory)
        rows = rule(len(table), split)
    return Split(*(table.rows(part) for part in (rows.train, rows.validation, rows.test)))


def split_rule(name: str) -> Rule:
    """The published rule of a registered table; 80/20 permutations for every other one."""
    entry = registry().get(name)
    if entry is None or entry.kind == "few-shot":
        return random_split
    return standard_split if entry.kind == "regression" else medical_split


def table_names() -> list[str]:
    """Every named table: registered ones, then scikit-learn's."""
    tables = [name for name, entry in registry().items() if entry.kind != "few-shot"]
    return [*tables, *BUNDLED]


def _required_target(name: str, target: str | None) -> str:
    if target is None:
        raise DataError(f"{name} is a file: name its target column with target=NAME")
    return target
